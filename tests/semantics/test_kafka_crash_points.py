"""Kafka to keyed state to Kafka, with failures where it hurts most: each result is there exactly once."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from kafka_proxy import END_TRANSACTION, Cut
from kafkakit import Broker

from chaos.kafka_faults import BEFORE_COMMITS, ZOMBIES, FaultySink, KafkaCrashes, KafkaPoint
from firesteel.common import Types, WatermarkStrategy
from firesteel.connectors.kafka.committing import TransactionCommitter
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transactions
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Sink
from firesteel.datastream.connectors.kafka import OutgoingRecord
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import ConnectorError, JobExecutionError
from firesteel.testing import CrashPoint, run_pipeline

pytestmark = pytest.mark.timeout(300)
KEYS, TOTAL = 8, 160
SMALL_BATCHES = {"firesteel.batch.max-records": "40"}


class Numbering(KeyedProcessFunction):
    """Numbers a key's records: one that is lost or counted twice leaves a gap or a repetition."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value}:{count}"


EXPECTED = Counter(f"{key}:{number}" for key in range(KEYS) for number in range(1, TOTAL // KEYS + 1))


class Case:
    """A job between two topics of its own."""

    def __init__(self, broker: Broker, servers: str | None = None) -> None:
        self.broker, self.prefix = broker, uuid.uuid4().hex
        # Of some length, so that both partitions of the results get some of each batch.
        self.source = broker.topic([str(n % KEYS) for n in range(TOTAL)], partitions=2)
        self.results = broker.topic(partitions=2)
        self.sink = broker.sink(self.results, prefix=self.prefix).set_property(
            "bootstrap.servers", servers or broker.servers
        )

    def run(self, sink: Sink, config: dict[str, str] | None = None, restarts: int = 5) -> None:
        def build(env: StreamExecutionEnvironment) -> None:
            source = self.broker.source(self.source).build()
            keys = env.from_source(source, WatermarkStrategy.no_watermarks(), "keys").key_by(str)
            keys.process(Numbering(), output_type=Types.STRING()).sink_to(sink).uid("results")

        run_pipeline(build, parallelism=2, restarts=restarts, config={**SMALL_BATCHES, **(config or {})})

    def check(self) -> None:
        assert Counter(self.broker.values(self.results)) == EXPECTED
        assert self.open_transactions() == []

    def open_transactions(self) -> list[str]:
        transactions = Transactions(KafkaProperties().having({"bootstrap.servers": self.broker.servers}))
        try:
            return transactions.open_ones(self.prefix)
        finally:
            transactions.close()


@pytest.fixture
def before_commits() -> Iterator[dict[int, Any]]:
    """What happens before the first commit, the second one, …"""
    yield BEFORE_COMMITS
    BEFORE_COMMITS.clear()


FAILURES: list[dict[str, list[str]]] = [
    # A failure, and then one more while the job recovers from it.
    {KafkaPoint.FLUSHED: ["pass"] * 3 + ["error"], KafkaPoint.RECOVERING: ["error"]},
    {CrashPoint.BEFORE_COMMIT: ["pass", "error"], KafkaPoint.REPEATING: ["error", "error"]},
    {KafkaPoint.BETWEEN_COMMITS: ["pass", "error"], KafkaPoint.REPEATING: ["pass", "error"]},
    {CrashPoint.COMMITTED: ["pass", "error"], KafkaPoint.REPEATING: ["error"]},
]


@pytest.mark.parametrize("points", FAILURES, ids=[" and ".join(points) for points in FAILURES])
def test_once_through_failures_inside_of_the_writer_and_the_committer(
    broker: Broker, points: dict[str, list[str]]
) -> None:
    case = Case(broker)
    with KafkaCrashes(points) as crashes:
        case.run(FaultySink(case.sink.build(), crashes.folder), crashes.config)
        for point, words in points.items():
            assert crashes.reached(point) >= len(words), point
    case.check()


def test_a_task_fails_in_the_middle_of_producing_and_wakes_up_after_recovery(broker: Broker) -> None:
    case = Case(broker)
    with KafkaCrashes({KafkaPoint.PRODUCING: ["pass"] * 3 + ["error"]}) as crashes:
        case.run(FaultySink(case.sink.build(), crashes.folder), crashes.config)
    case.check()
    # It goes on where it was, writes the rest of its batch and wants to prepare it.
    zombie: Any = ZOMBIES[-1]
    with pytest.raises(ConnectorError, match="Another process has fenced this producer"):
        zombie.write_on(OutgoingRecord(case.results, b"too late"))
    case.check()


@pytest.mark.parametrize("answered", [False, True], ids=["before the broker knows", "before the answer arrives"])
def test_the_connection_is_cut_during_a_commit(broker: Broker, answered: bool) -> None:
    cuts = [Cut(END_TRANSACTION, number, answered) for number in (1, 3, 6)]
    with broker.server.proxy(*cuts) as proxy:
        case = Case(broker, proxy.servers)
        # No restart: the commit is repeated where it was.
        case.run(case.sink.build(), restarts=0)
        assert len(proxy.done) == 3
    case.check()


def test_the_broker_is_killed_after_prepare_and_during_commit(broker: Broker, before_commits: Any) -> None:
    # The second batch is prepared: the broker dies, comes back, decides on the first of the batch's transactions, and
    # dies again before anybody hears of it.
    killed = Cut(END_TRANSACTION, 3, answered=True, then=broker.server.crash)
    with broker.server.proxy(killed) as proxy:
        case = Case(broker, proxy.servers)
        before_commits[2] = lambda committer, committables: broker.server.crash()
        case.run(FaultySink(case.sink.build()))
        assert proxy.done == [killed]
    case.check()


def test_a_transaction_that_timed_out_before_its_commit_ends_the_job(broker: Broker, before_commits: Any) -> None:
    case = Case(broker)

    def wait(committer: TransactionCommitter, committables: list[Any]) -> None:
        end = time.monotonic() + 120
        for name, *_ in committables:
            while committer._transactions.describe([name])[name].is_open:
                assert time.monotonic() < end
                time.sleep(0.05)

    before_commits[1] = wait
    sink = case.sink.set_property("transaction.timeout.ms", "5000").build()
    with pytest.raises(JobExecutionError, match=r"can no longer be committed: .* records are lost"):
        case.run(FaultySink(sink))
    # It does not go on behind the gap.
    assert broker.values(case.results) == []
