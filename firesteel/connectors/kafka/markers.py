"""That a commit can be read.

A coordinator decides on a commit, answers, and then writes a marker into each of the transaction's partitions. A
reader of committed records does not get past a transaction without its marker. A coordinator that dies in between
writes them when it is back, but Kafka (4.3 at least) takes partitions without a leader for deleted ones, and a broker
that starts has no leader yet for the partitions that only it has: the coordinator then calls the transaction complete,
and its readers wait for ever. So a commit is not over here before every partition has its marker, and what a
coordinator has left out is written in its place.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from firesteel.connectors.kafka.errors import load_transactions
from firesteel.connectors.kafka.transactions import Partition, Transaction, Transactions

__all__ = ["Markers"]

logger = logging.getLogger("firesteel")

_PATIENCE = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
_COMMIT = True


class _Open(NamedTuple):
    """A partition in which a transaction has no end yet."""

    transaction: Transaction
    partition: Partition
    leader: int
    coordinator_epoch: int


class Markers:
    """Looks for the markers of transactions that were committed, and writes those that are missing."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._errors = load_transactions().errors
        self._forbidden: set[str] = set()
        """Topics that the user may write to, and not look at."""

    def wait(self, committed: Mapping[Transaction, Iterable[Partition]]) -> None:
        """Returns when transactions whose commit is decided have their marker in each partition."""
        waiting = {one: set(partitions) for one, partitions in committed.items()}
        end, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
        complete: set[Transaction] = set()
        while missing := self._missing(waiting):
            # The coordinator was done before the partitions were looked at: it will not write them any more.
            left_out = [one for one in missing if one.transaction in complete]
            if left_out and not self._write(left_out):
                return
            if time.monotonic() > end:
                logger.warning("Kafka: %s", _said(missing, "have no end yet: the broker takes long to write it"))
                return
            known = self._transactions.describe({one.transaction.transactional_id for one in missing})
            states = {found.transaction: found for found in known.values()}
            # What is under way under an id by now is nothing that was committed here.
            waiting = {one: partitions for one, partitions in waiting.items() if one in states}
            complete = {one for one, found in states.items() if found.state == "CompleteCommit"}
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _missing(self, waiting: Mapping[Transaction, set[Partition]]) -> list[_Open]:
        producers = {(one.producer_id, one.epoch): one for one in waiting}
        asked = {place for places in waiting.values() for place in places if place[0] not in self._forbidden}

        async def ask(client: Any) -> list[_Open]:
            found = []
            for leader, places in (await self._leaders(client, asked)).items():
                answer = await client._manager.send(client._describe_producers_request(places), node_id=leader)
                for topic in answer.topics:
                    for partition in topic.partitions:
                        place = (topic.name, partition.partition_index)
                        if not self._may_look(topic.name, self._errors.for_code(partition.error_code)):
                            continue
                        for one in partition.active_producers:
                            transaction = producers.get((one.producer_id, one.producer_epoch))
                            if transaction is not None and one.current_txn_start_offset >= 0:
                                found.append(_Open(transaction, place, leader, max(one.coordinator_epoch, 0)))
            return found

        return self._transactions.ask(ask, "a look at partitions") if asked else []

    def _may_look(self, topic: str, failure: Any) -> bool:
        if failure is self._errors.TopicAuthorizationFailedError:
            self._forbidden.add(topic)
        elif failure is not self._errors.NoError:
            raise failure(topic)
        return topic not in self._forbidden

    async def _leaders(self, client: Any, places: Iterable[Partition]) -> dict[int, dict[str, list[int]]]:
        """Partitions by leader and topic. Topics that are gone are left out: nobody reads them."""
        wanted = set(places)
        found: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        metadata = await client._get_cluster_metadata({topic for topic, _ in wanted})
        for topic in metadata["topics"]:
            for partition in topic["partitions"]:
                if (topic["name"], partition["partition_index"]) in wanted:
                    if partition["leader_id"] < 0:
                        raise self._errors.LeaderNotAvailableError(topic["name"])
                    found[partition["leader_id"]][topic["name"]].append(partition["partition_index"])
        return found

    def _write(self, missing: list[_Open]) -> bool:
        """Writes markers. Returns whether that is allowed."""
        request = load_transactions("kafka.protocol.producer").WriteTxnMarkersRequest
        marker = request.WritableTxnMarker

        async def ask(client: Any) -> bool:
            for one in missing:
                topic, partition = one.partition
                place = marker.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
                written = marker(
                    producer_id=one.transaction.producer_id,
                    producer_epoch=one.transaction.epoch,
                    transaction_result=_COMMIT,
                    topics=[place],
                    coordinator_epoch=one.coordinator_epoch,
                )
                answer = await client._manager.send(request(markers=[written]), node_id=one.leader)
                failure = self._errors.for_code(answer.markers[0].topics[0].partitions[0].error_code)
                if failure is self._errors.ClusterAuthorizationFailedError:
                    return False
                if failure is not self._errors.NoError:
                    raise failure(topic)
            return True

        if self._transactions.ask(ask, "writing the end of transactions"):
            logger.warning("Kafka: %s", _said(missing, "had no end after a broker's restart: it was written"))
            return True
        advice = (
            "Readers of committed records wait. Grant the user ClusterAction on the cluster, and start the job again"
        )
        logger.error("Kafka: %s", _said(missing, f"were left without an end by a broker that was restarted. {advice}"))
        return False


def _said(missing: list[_Open], what: str) -> str:
    places = sorted({f"{topic}-{partition}" for topic, partition in (one.partition for one in missing)})
    shown = ", ".join(places[:3]) + (", …" if len(places) > 3 else "")
    return f"committed transactions in {shown} {what}."
