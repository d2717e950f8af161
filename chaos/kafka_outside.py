"""Kafka on both sides of the job: one topic is fed while it runs, and a reader of committed records follows the other.

The job comes by a proxy, so that its connections can be cut. Feeder and reader do not.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from typing import Any

from kafka_proxy import KafkaProxy
from kafka_server import KafkaServer

from chaos.check import compare
from chaos.job import Plan, Result
from chaos.outcome import Outcome
from chaos.outside import Outside
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transactions

__all__ = ["KafkaOutside"]

PARTITIONS = 2
AHEAD = 4000
"""So many records may wait for the job. It finds some when it is back, but never so many that it is done at once."""
PORTION = 100


class KafkaOutside(Outside):
    """The two topics of one job."""

    def __init__(self, server: KafkaServer, proxy: KafkaProxy, records: int, rate: float) -> None:
        import confluent_kafka

        self._kafka = confluent_kafka
        self._server, self._proxy = server, proxy
        name = f"chaos-{uuid.uuid4().hex[:8]}"
        self._source, self._results = f"{name}-records", f"{name}-results"
        for topic in (self._source, self._results):
            # Results bear event time, which begins with 1970 and ends at the end of time: a topic would refuse the
            # latter and delete the former.
            limits = {"message_timestamp_after_max_ms": str(2**63 - 1), "retention_ms": "-1"}
            server.create_topic(topic, PARTITIONS, **limits)
        self._records, self._rate = records, rate
        self._numbered = self._total = 0
        self.misfortunes = {"broker": self._crashes, "connections": self._cuts}
        self._common = {"bootstrap.servers": server.servers, "log_level": 0}
        self._reader = self._new_reader({})
        # Its own repetitions are recognised by the broker, also by one that was killed meanwhile.
        self._feeder = confluent_kafka.Producer({**self._common, "enable.idempotence": True, "message.timeout.ms": 0})
        self._stopped = threading.Event()
        self._feeding = threading.Thread(target=self._feed, daemon=True)
        self._feeding.start()

    @property
    def settings(self) -> dict[str, str]:
        """What the job has to know."""
        return {"servers": self._proxy.servers, "source": self._source, "results": self._results}

    def _new_reader(self, settings: dict[str, Any]) -> Any:
        common = {**self._common, "group.id": self._results, "auto.offset.reset": "error"}
        reader = self._kafka.Consumer({**common, "isolation.level": "read_committed", **settings})
        reader.assign([self._kafka.TopicPartition(self._results, number, 0) for number in range(PARTITIONS)])
        return reader

    def _feed(self) -> None:
        sent = 0
        while sent < self._records and not self._stopped.wait(PORTION / self._rate):
            if sent - self._numbered < AHEAD:
                for number in range(sent, min(sent + PORTION, self._records)):
                    self._feeder.produce(self._source, str(number), partition=number % PARTITIONS)
                sent = min(sent + PORTION, self._records)
            self._feeder.poll(0)
        while not self._stopped.is_set() and self._feeder.flush(0.5):
            pass

    def count(self) -> int:
        while messages := [one for one in self._reader.consume(5000, 0.05) if one.error() is None]:
            self._numbered += sum(message.value().startswith(b"count,") for message in messages)
            self._total += len(messages)
        return self._total

    def _crashes(self, chance: random.Random) -> None:
        self._server.crash(chance.uniform(0, 3))

    def _cuts(self, chance: random.Random) -> None:
        # Several times: some hit the client in the middle of getting connected again.
        for _ in range(chance.randint(1, 4)):
            self._proxy.cut_all()
            self._stopped.wait(chance.uniform(0, 0.3))

    def check(self, plan: Plan, expected: Counter[Result], outcome: Outcome) -> None:
        transactions = Transactions(KafkaProperties().having({"bootstrap.servers": self._server.servers}))
        outcome.left = len(transactions.open_ones(self._results))
        transactions.close()
        outcome.differences["Kafka"] = compare(self._all_results(), expected)

    def _all_results(self) -> Counter[Result]:
        """What somebody finds who comes now and reads committed records only."""
        reader = self._new_reader({"enable.partition.eof": True})
        found: Counter[Result] = Counter()
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            for message in reader.consume(5000, 1):
                if message.error() is None:
                    kind, key, n, value = message.value().decode().split(",")
                    found[kind, int(key), int(n), int(value)] += 1
                elif message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        reader.close()
        return found

    def close(self) -> None:
        self._stopped.set()
        self._feeding.join()
        self._reader.close()
