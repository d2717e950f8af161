"""That the end of a transaction can be read.

A coordinator decides on a commit or an abort, answers, and then writes a marker into each of the transaction's
partitions. A reader of committed records does not get past a transaction without its marker. A coordinator that dies in
between writes them when it is back, but Kafka (4.3 at least) takes partitions without a leader for deleted ones, and a
broker that starts has no leader yet for the partitions that only it has: the coordinator then calls the transaction
complete, and its readers wait for ever. So neither a commit nor an abort is over here before every partition has its
marker, and what a coordinator has left out is written in its place.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from firesteel.connectors.kafka.errors import load_transactions
from firesteel.connectors.kafka.transactions import Partition, Transaction, Transactions, TransactionState

__all__ = ["ALL", "Markers"]

logger = logging.getLogger("firesteel")

_PATIENCE = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
_LAST_EPOCH = 32_767

ALL = -1
"""Instead of a number: all partitions of a topic."""


class _Open(NamedTuple):
    """A partition in which a transaction has no end yet."""

    transaction: Transaction
    partition: Partition
    leader: int
    coordinator_epoch: int
    epoch: int
    """Of the producer, in this partition."""


class Markers:
    """Looks for the markers of transactions that have ended, and writes those that are missing."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._errors = load_transactions().errors
        self._forbidden: set[str] = set()
        """Topics that the user may write to, and not look at."""

    def wait(self, ended: Mapping[Transaction, Iterable[Partition]], committed: bool = True) -> None:
        """Returns when transactions whose commit, or else whose abort, is decided have their marker in each partition.
        Those that were aborted are known by the numbers that they had before: that has raised the epoch."""
        waiting = {one: set(partitions) for one, partitions in ended.items()}
        end, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
        complete: set[Transaction] = set()
        while missing := self._missing(waiting, committed):
            # The coordinator was done before the partitions were looked at: it will not write them any more.
            left_out = [one for one in missing if one.transaction in complete]
            if left_out and not self._write(left_out, committed):
                return
            if time.monotonic() > end:
                logger.warning(
                    "Kafka: %s", _missing_text(missing, "have no end yet: the broker takes long to write it")
                )
                return
            known = self._transactions.describe({one.transaction.transactional_id for one in missing})
            if committed:
                states = {found.transaction: found for found in known.values()}
                # What is under way under an id by now is nothing that was committed here.
                waiting = {one: partitions for one, partitions in waiting.items() if one in states}
                complete = {one for one, found in states.items() if found.state == "CompleteCommit"}
            else:
                complete = {one for one in waiting if not _is_going_on(one, known.get(one.transactional_id))}
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _missing(self, waiting: Mapping[Transaction, set[Partition]], committed: bool) -> list[_Open]:
        producers = {one.producer_id: one for one in waiting}
        asked = {place for places in waiting.values() for place in places if place[0] not in self._forbidden}

        async def ask(client: Any) -> list[_Open]:
            found = []
            leaders = await self._leaders(client, asked)
            # All of them at once: a commit waits for this.
            answers = {
                leader: client._manager.send(client._describe_producers_request(places), node_id=leader)
                for leader, places in leaders.items()
            }
            for leader, answer in answers.items():
                for topic in (await answer).topics:
                    for partition in topic.partitions:
                        place = (topic.name, partition.partition_index)
                        if not self._may_look(topic.name, self._errors.for_code(partition.error_code)):
                            continue
                        for one in partition.active_producers:
                            transaction, epoch = producers.get(one.producer_id), one.producer_epoch
                            if transaction is None or one.current_txn_start_offset < 0:
                                continue
                            if epoch == transaction.epoch or (epoch < transaction.epoch and not committed):
                                numbers = leader, max(one.coordinator_epoch, 0), epoch
                                found.append(_Open(transaction, place, *numbers))
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
                if not wanted.isdisjoint((topic["name"], number) for number in (partition["partition_index"], ALL)):
                    if partition["leader_id"] < 0:
                        raise self._errors.LeaderNotAvailableError(topic["name"])
                    found[partition["leader_id"]][topic["name"]].append(partition["partition_index"])
        return found

    def _write(self, missing: list[_Open], committed: bool) -> bool:
        """Writes markers. Returns whether that is allowed."""
        request = load_transactions("kafka.protocol.producer").WriteTxnMarkersRequest
        marker = request.WritableTxnMarker

        async def ask(client: Any) -> bool:
            for one in missing:
                topic, partition = one.partition
                place = marker.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
                written = marker(
                    producer_id=one.transaction.producer_id,
                    # As the coordinator does it: whoever was fenced is so in the partition, too.
                    producer_epoch=one.epoch if committed else min(one.epoch + 1, _LAST_EPOCH),
                    transaction_result=committed,
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
            logger.warning("Kafka: %s", _missing_text(missing, "had no end after a broker's restart: it was written"))
            return True
        advice = (
            "Readers of committed records wait. Grant the user ClusterAction on the cluster, and start the job again"
        )
        logger.error(
            "Kafka: %s", _missing_text(missing, f"were left without an end by a broker that was restarted. {advice}")
        )
        return False


def _is_going_on(one: Transaction, found: TransactionState | None) -> bool:
    """Whether the coordinator has yet to write markers of a transaction that is being aborted."""
    return found is not None and (found.is_being_aborted or (found.is_open and found.transaction == one))


def _missing_text(missing: list[_Open], what: str) -> str:
    places = sorted({f"{topic}-{partition}" for topic, partition in (one.partition for one in missing)})
    shown = ", ".join(places[:3]) + (", …" if len(places) > 3 else "")
    return f"transactions in {shown} {what}."
