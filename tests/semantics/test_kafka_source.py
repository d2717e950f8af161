"""A real broker as a source: where reading begins and ends, what comes through gaps, failures and new partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_server import PASSWORD, USER
from kafkakit import Broker
from kit import eventually

from firesteel.common import DeserializationSchema, SimpleStringSchema, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
    Undecodable,
)
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import CollectionSink, memory_environment, run_pipeline

pytestmark = pytest.mark.timeout(120)
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
        assert eventually(lambda: _write_and_see(broker, topic, sink), 60)
        from confluent_kafka.admin import AdminClient, NewPartitions

        client = AdminClient({"bootstrap.servers": broker.servers})
        client.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        broker.write(topic, [{"value": "new", "partition": 1}])
        assert eventually(lambda: "new" in sink.values, 60)
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
            read(broker.source("nowhere").set_property("default.api.timeout.ms", "1000"))

    def test_no_such_partition(self, broker: Broker) -> None:
        topic = broker.topic(["a"])
        with pytest.raises(JobExecutionError, match=rf"Kafka has no partition {topic}-5"):
            read(broker.source().set_partitions({KafkaTopicPartition(topic, 5)}))

    def test_deleted_records(self, broker: Broker) -> None:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        topic = broker.topic(FIVE)
        place = TopicPartition(topic, 0, 3)
        client = AdminClient({"bootstrap.servers": broker.servers})
        client.delete_records([place])[place].result(30)
        begin = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 1})
        with pytest.raises(
            JobExecutionError, match=rf"the records of {topic}-0 from offset 1 on, .* are not there any more"
        ):
            read(broker.source(topic).set_starting_offsets(begin))
        assert read(broker.source(topic)) == FIVE[3:]

    def test_a_topic_that_was_made_anew(self, broker: Broker) -> None:
        topic = broker.topic(FIVE)
        begin = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 9})
        source = broker.source(topic, latest=False).set_starting_offsets(begin)
        with pytest.raises(JobExecutionError, match=rf"partition {topic}-0 was read up to offset 9 and now ends at 5"):
            read(source)

    @pytest.mark.parametrize("password", [PASSWORD, "wr0ng pass"])
    def test_a_user_and_a_password(self, broker: Broker, password: str) -> None:
        topic = broker.topic(FIVE)
        login = (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{password}";'
        )
        source = (
            broker.source(topic)
            .set_bootstrap_servers(broker.server.secure_servers)
            .set_properties(
                {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
            )
        )
        if password == PASSWORD:
            assert read(source) == FIVE
            return
        with pytest.raises(JobExecutionError, match=r"Check the user name and the password") as caught:
            read(source)
        assert password not in str(caught.value)
        assert password not in repr(source.build()) + repr(source._properties)

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
