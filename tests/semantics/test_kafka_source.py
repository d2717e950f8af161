"""A real broker as a source: where reading begins and ends, what comes through gaps, failures and new partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafkakit import Broker
from kit import eventually

from firesteel.common import DeserializationSchema, SimpleStringSchema, WatermarkStrategy
from firesteel.connectors.kafka.deserializing import Deserializing
from firesteel.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from firesteel.connectors.kafka.offsets import OffsetsSpec, TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.reader import KafkaReader
from firesteel.connectors.source import Records
from firesteel.datastream import OutputTag, StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
    Undecodable,
)
from firesteel.errors import InputError, JobExecutionError, ProgramError
from firesteel.metrics import MetricGroup
from firesteel.testing import CollectionSink, memory_environment, run_pipeline

pytestmark = pytest.mark.timeout(300)
NO_TIME = WatermarkStrategy.no_watermarks()
FIVE = [f"v{n}" for n in range(5)]


def read(source: Any, parallelism: int = 1, **more: Any) -> list[Any]:
    found: list[Any] = run_pipeline(
        lambda env: env.from_source(source.build(), NO_TIME, "kafka").map(lambda value: value),
        parallelism=parallelism,
        **more,
    )
    return found


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_all_records_of_all_partitions(broker: Broker, parallelism: int) -> None:
    values = [f"v{n}" for n in range(1000)]
    topic = broker.topic(values, partitions=3)
    config = {"firesteel.batch.max-records": "70"}
    assert sorted(read(broker.source(topic), parallelism, config=config)) == sorted(values)


def test_records_of_a_partition_come_in_order_over_many_batches(broker: Broker) -> None:
    values = [f"v{n}" for n in range(500)]
    assert read(broker.source(broker.topic(values)), config={"firesteel.batch.max-records": "7"}) == values


class TestWhereItBegins:
    def test_at_offsets(self, broker: Broker) -> None:
        topic = broker.topic([f"v{n}" for n in range(10)], partitions=2)
        begin = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 1): 3})
        assert sorted(read(broker.source(topic).set_starting_offsets(begin))) == [
            "v0",
            "v2",
            "v4",
            "v6",
            "v7",
            "v8",
            "v9",
        ]

    def test_at_a_time(self, broker: Broker) -> None:
        topic = broker.topic([{"value": f"v{n}", "timestamp": 1000 * (n + 1)} for n in range(5)])
        for moment, expected in ((3000, FIVE[2:]), (3001, FIVE[3:]), (9000, [])):
            begin = KafkaOffsetsInitializer.timestamp(moment)
            assert read(broker.source(topic).set_starting_offsets(begin)) == expected

    def test_at_the_latest(self, broker: Broker) -> None:
        topic = broker.topic(FIVE)
        assert read(broker.source(topic).set_starting_offsets(KafkaOffsetsInitializer.latest())) == []

    def test_where_the_group_is(self, broker: Broker) -> None:
        topic = broker.topic(FIVE)
        begin = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
        source = broker.source(topic).set_group_id(topic).set_starting_offsets(begin)
        assert read(source) == FIVE
        assert broker.committed(topic, topic) == 5
        broker.write(topic, ["new"])
        assert read(source) == ["new"]

    def test_where_the_group_is_and_it_is_nowhere(self, broker: Broker) -> None:
        source = (
            broker.source(broker.topic(FIVE))
            .set_group_id("nobody")
            .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
        )
        with pytest.raises(
            JobExecutionError, match=r"there is no offset to begin with for .*-0, and the strategy is NONE"
        ):
            read(source)

    @pytest.mark.parametrize(("offset", "strategy", "expected"), [(1, "EARLIEST", FIVE[3:]), (9, "LATEST", [])])
    def test_at_offsets_that_are_not_there(
        self, broker: Broker, offset: int, strategy: str, expected: list[str]
    ) -> None:
        """As with Kafka's own consumers: deleted, or beyond the end, is as good as none."""
        topic = broker.topic(FIVE)
        broker.delete(topic, 3)
        place, source = {KafkaTopicPartition(topic, 0): offset}, broker.source(topic)
        begin = KafkaOffsetsInitializer.offsets(place, KafkaOffsetResetStrategy[strategy])
        assert read(source.set_starting_offsets(begin)) == expected
        begin = KafkaOffsetsInitializer.offsets(place, KafkaOffsetResetStrategy.NONE)
        with pytest.raises(JobExecutionError, match=rf"from offset {offset}, and there are those from 3 to 5\."):
            read(source.set_starting_offsets(begin))


def test_where_it_ends(broker: Broker) -> None:
    topic = broker.topic(FIVE)
    end = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 3})
    assert read(broker.source(topic).set_bounded(end)) == FIVE[:3]


def test_topics_by_a_pattern_and_partitions_by_number(broker: Broker) -> None:
    one, two = broker.topic(["a", "b"], partitions=2), broker.topic(["c"])
    broker.topic(["not this"])
    assert sorted(read(broker.source().set_topic_pattern(f"{one}|{two}"))) == ["a", "b", "c"]
    assert read(broker.source().set_partitions({KafkaTopicPartition(one, 1)})) == ["b"]


def test_aborted_transactions_leave_gaps_also_at_the_end(broker: Broker) -> None:
    topic = broker.topic(["a"])
    broker.abort(topic, ["lost"] * 5)
    broker.write(topic, ["b"])
    broker.abort(topic, ["lost"] * 5)
    for most in ("1", "2", "100"):
        assert read(broker.source(topic), config={"firesteel.batch.max-records": most}) == ["a", "b"]


def test_whole_records(broker: Broker) -> None:
    topic = broker.topic([{"value": "v", "key": b"k", "timestamp": 7, "headers": [("h", b"1"), ("h", None)]}])
    schema = KafkaRecordDeserializationSchema.of(
        lambda r: (r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers)
    )
    assert read(broker.source(topic).set_deserializer(schema)) == [
        (topic, 0, 0, 7, b"k", b"v", (("h", b"1"), ("h", None)))
    ]


def test_event_time_is_kafkas_unless_the_strategy_says_otherwise(broker: Broker) -> None:
    from firesteel.datastream import ProcessFunction

    class Times(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value, ctx.timestamp()

    topic = broker.topic([{"value": f"v{n}", "timestamp": 1000 + n} for n in range(3)])
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    found = run_pipeline(lambda env: env.from_source(broker.source(topic).build(), strategy, "k").process(Times()))
    assert found == [("v0", 1000), ("v1", 1001), ("v2", 1002)]


class Numbers(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        return int(message)


def test_a_record_that_cannot_be_read(broker: Broker) -> None:
    topic = broker.topic(["1", "two", "3"])
    source = broker.source(topic).set_value_only_deserializer(Numbers())
    with pytest.raises(
        JobExecutionError, match=rf"The record at offset 1 of {topic}-0 cannot be read: ValueError: .*b'two'"
    ):
        read(source)
    assert read(source.set_undecodable(Undecodable.SKIP)) == [1, 3]


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_records_that_cannot_be_read_as_a_side_output(broker: Broker, make_env: Any, parallelism: int) -> None:
    topic = broker.topic([{"value": value, "timestamp": 7, "key": b"k"} for value in ("1", "two", "3", "four")])
    bad = OutputTag("bad")
    source = broker.source(topic).set_value_only_deserializer(Numbers())
    source.set_undecodable(Undecodable.side_output(bad))
    good = make_env(parallelism).from_source(source.build(), WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    aside = good.get_side_output(bad).map(lambda r: (r.content, r.record.offset, r.record.key, r.error.split(":")[0]))
    with good.map(lambda n: (b"", n, b"", "")).union(aside).execute_and_collect() as found:
        assert sorted(found) == [
            (b"", 1, b"", ""),
            (b"", 3, b"", ""),
            (b"four", 3, b"k", "ValueError"),
            (b"two", 1, b"k", "ValueError"),
        ]


def test_a_side_output_of_any_source(broker: Broker) -> None:
    with pytest.raises(ProgramError, match=r"takes an OutputTag, got 'bad'"):
        Undecodable.side_output("bad")  # type: ignore[arg-type]


def test_partitions_that_had_to_wait_while_others_were_read(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fetched of other partitions is limited for all of them together, also where they are read in turn."""
    monkeypatch.setattr("firesteel.connectors.kafka.reader._BUFFERED_BYTES", 1000)
    monkeypatch.setattr("firesteel.connectors.kafka.reader.PATIENCE", 20.0)
    values = [f"{n:0100}" for n in range(3000)]
    topic = broker.topic(values, partitions=4)
    config = {"firesteel.batch.max-records": "400"}
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    found = run_pipeline(
        lambda env: env.from_source(broker.source(topic).build(), strategy, "kafka").map(lambda value: value),
        config=config,
    )
    assert sorted(found) == values


class TestReader:
    """The reader by itself."""

    @pytest.fixture
    def make(self, broker: Broker) -> Iterator[Callable[..., KafkaReader]]:
        made = []

        def make(**properties: str) -> KafkaReader:
            known = {name.replace("_", "."): value for name, value in properties.items()}
            reader = KafkaReader(
                KafkaProperties().having({"bootstrap.servers": broker.servers, **known}),
                Deserializing(SimpleStringSchema()),
            )
            made.append(reader)
            reader.open(SimpleNamespace(get_metrics_group=lambda: MetricGroup()))
            return reader

        yield make
        for reader in made:
            reader.close()

    @staticmethod
    def values(reader: KafkaReader, topic: str, first: int, end: int, partition: int = 0) -> list[str]:
        parts = reader.read(TopicPartition(topic, partition), [first, None], [end, None])
        return [value for part in parts if isinstance(part, Records) for value in part.values]

    def test_ranges_in_a_row_and_a_step_back(self, broker: Broker, make: Callable[..., KafkaReader]) -> None:
        topic, reader = broker.topic([f"v{n}" for n in range(100)]), make()
        for first, end in ((0, 10), (10, 11), (11, 100), (50, 60), (60, 100)):
            assert self.values(reader, topic, first, end) == [f"v{n}" for n in range(first, end)]

    def test_deleted_between_planning_and_reading(self, broker: Broker, make: Callable[..., KafkaReader]) -> None:
        topic = broker.topic(FIVE)
        broker.delete(topic, 3)
        with pytest.raises(InputError, match=rf"the records of {topic}-0 from offset 1 on, .* the first one is at 3\."):
            self.values(make(), topic, 1, 5)
        forgiving = make(fail_on_data_loss="false")
        assert self.values(forgiving, topic, 0, 2) == []
        assert self.values(forgiving, topic, 2, 5) == FIVE[3:]
        assert forgiving._deleted.get_count() == 3

    def test_gone_between_planning_and_reading(self, broker: Broker, make: Callable[..., KafkaReader]) -> None:
        """The topic was made anew, and has fewer records: what was planned is beyond its end."""
        topic = broker.topic(FIVE)
        with pytest.raises(InputError, match=rf"the records of {topic}-0 from offset 7 on, .* fail\.on\.data\.loss"):
            self.values(make(), topic, 7, 9)
        forgiving = make(fail_on_data_loss="false")
        assert self.values(forgiving, topic, 7, 9) == []
        assert forgiving._deleted.get_count() == 2
        parts = forgiving.read(TopicPartition(topic, 0), [9, None, "old"], [2, None, "new", 0])
        assert [value for part in parts if isinstance(part, Records) for value in part.values] == FIVE[:2]
        assert self.values(forgiving, topic, 2, 5) == FIVE[2:]


class TestEnumerator:
    """Planning by itself."""

    @pytest.fixture
    def make(self, broker: Broker) -> Iterator[Callable[..., KafkaEnumerator]]:
        made = []

        def make(topic: str, **properties: str) -> KafkaEnumerator:
            known = {name.replace("_", "."): value for name, value in properties.items()}
            enumerator = KafkaEnumerator(
                KafkaProperties().having({"bootstrap.servers": broker.servers, **known}),
                Subscription(topics=[topic]),
                OffsetsSpec("earliest"),
                None,
                False,
            )
            made.append(enumerator)
            enumerator.start("")
            return enumerator

        yield make
        for enumerator in made:
            enumerator.stop()

    def test_records_that_were_deleted_before_they_were_read(
        self, broker: Broker, make: Callable[..., KafkaEnumerator]
    ) -> None:
        topic = broker.topic(FIVE)
        position = make(topic).latest(None, 1)
        assert position[f"{topic}-0"][1][0] == 1
        broker.delete(topic, 3)
        with pytest.raises(InputError, match=rf"{topic}-0 from offset 1 on, .* fail\.on\.data\.loss"):
            make(topic).latest(position, 1)
        # One record more, and what is deleted before it.
        assert make(topic, fail_on_data_loss="false").latest(position, 1)[f"{topic}-0"][1][0] == 4

    def test_a_topic_that_was_made_anew(self, broker: Broker, make: Callable[..., KafkaEnumerator]) -> None:
        topic = broker.topic(FIVE)
        position = make(topic).latest(None, 3)
        # Also if the new one has more records than were read of the old one.
        broker.make_anew(topic, [f"new{n}" for n in range(9)])
        with pytest.raises(InputError, match=rf"topic '{topic}' is another one\. It was deleted and made anew"):
            make(topic).latest(position, 3)
        # All that the new one has was never read.
        forgiving = make(topic, fail_on_data_loss="false")
        next_one = forgiving.latest(position, 3)
        offset, _, known, begin = next_one[f"{topic}-0"][1]
        assert (offset, begin) == (3, 0)
        assert known != position[f"{topic}-0"][1][2]
        assert forgiving.count(position, next_one) == 3
        last = make(topic, fail_on_data_loss="false").latest(next_one, 100)
        assert last[f"{topic}-0"][1] == [9, None, known]
        assert forgiving.latest(last, 100) == last

    def test_a_partition_that_is_shorter_than_it_was(
        self, broker: Broker, make: Callable[..., KafkaEnumerator], caplog: pytest.LogCaptureFixture
    ) -> None:
        topic = broker.topic(FIVE)
        enumerator = make(topic)
        position = enumerator.latest(None, 3)
        position[f"{topic}-0"][1][0] = 9
        with pytest.raises(InputError, match=rf"partition {topic}-0 was read up to offset 9 and now ends at 5"):
            enumerator.latest(position, 3)
        # A broker has lost records. Those that it has were read.
        forgiving = make(topic, fail_on_data_loss="false")
        next_one = forgiving.latest(position, 3)
        assert next_one[f"{topic}-0"][1][0] == 5
        assert forgiving.count(position, next_one) == 0
        assert "was read up to offset 9 and ends at 5 now. The job goes on at offset 5" in caplog.text
        broker.write(topic, ["f", "g"])
        assert forgiving.latest(next_one, 3)[f"{topic}-0"][1][0] == 7

    def test_the_groups_offsets_hold_up_nobody(self, broker: Broker, make: Callable[..., KafkaEnumerator]) -> None:
        topic = broker.topic(FIVE)
        enumerator = make(topic, group_id=topic)
        position: Any = None
        for _ in range(5):
            position = enumerator.latest(position, 1)
            enumerator.committed(position)
        enumerator.stop()
        assert broker.committed(topic, topic) == 5


def test_a_failure_in_the_job_loses_and_doubles_nothing(broker: Broker, tmp_path: Path) -> None:
    values = [f"v{n}" for n in range(300)]
    topic = broker.topic(values, partitions=2)
    failed = tmp_path / "failed"

    def fail_once(value: str) -> str:
        if value == "v200" and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return value

    sink = CollectionSink()

    def build(env: StreamExecutionEnvironment) -> None:
        env.from_source(broker.source(topic).build(), NO_TIME, "kafka").map(fail_once).sink_to(sink)

    run_pipeline(build, parallelism=2, restarts=1, config={"firesteel.batch.max-records": "50"})
    assert failed.exists()
    assert sorted(sink.values) == sorted(values)


def test_partitions_that_appear_later_are_read_from_their_beginning(broker: Broker) -> None:
    topic = broker.topic(["old"])
    sink = CollectionSink()
    env = memory_environment(1)
    source = broker.source(topic, latest=False).set_starting_offsets(KafkaOffsetsInitializer.latest())
    source.set_property("partition.discovery.interval.ms", "50")
    env.from_source(source.build(), NO_TIME, "kafka").sink_to(sink)
    job = env.execute_async("discovery")
    try:
        # Whatever is read after the start: with this the source is known to be at work.
        assert eventually(lambda: _write_and_see(broker, topic, sink))
        from confluent_kafka.admin import AdminClient, NewPartitions

        client = AdminClient({"bootstrap.servers": broker.servers})
        client.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        broker.write(topic, [{"value": "new", "partition": 1}])
        assert eventually(lambda: "new" in sink.values)
        assert "old" not in sink.values
    finally:
        job.cancel().result()


def _write_and_see(broker: Broker, topic: str, sink: CollectionSink) -> bool:
    broker.write(topic, ["next"])
    return eventually(lambda: "next" in sink.values, 0.5)


class TestErrors:
    """Each is one line that says what to do."""

    def test_no_broker(self) -> None:
        source = KafkaSource.builder().set_bootstrap_servers("127.0.0.1:1").set_topics("t")
        source.set_value_only_deserializer(SimpleStringSchema()).set_property("default.api.timeout.ms", "1000")
        with pytest.raises(
            JobExecutionError, match=r"Kafka at 127\.0\.0\.1:1: a look at the topics failed: .*Check the address"
        ):
            read(source)

    def test_no_topic(self, broker: Broker) -> None:
        with pytest.raises(JobExecutionError, match=r"topic 'nowhere'\) failed: .*Create the topic, or check its name"):
            read(broker.source("nowhere").set_property("default.api.timeout.ms", "3000"))

    def test_no_such_partition(self, broker: Broker) -> None:
        topic = broker.topic(["a"])
        with pytest.raises(JobExecutionError, match=rf"Kafka has no partition {topic}-5"):
            read(broker.source().set_partitions({KafkaTopicPartition(topic, 5)}))

    @pytest.mark.parametrize(
        ("build", "text"),
        [
            (lambda b: b, "where Kafka is"),
            (lambda b: b.set_bootstrap_servers("x:1"), "something to read"),
            (lambda b: b.set_bootstrap_servers("x:1").set_topics("t"), "how records are read"),
            (lambda b: b.set_topics("t").set_topic_pattern("u"), "already reads t"),
        ],
    )
    def test_what_is_missing(self, build: Any, text: str) -> None:
        with pytest.raises(ProgramError, match=text):
            build(KafkaSource.builder()).build()
