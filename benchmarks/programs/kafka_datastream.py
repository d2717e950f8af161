"""A count per key from Kafka to Kafka, exactly once, for PyFlink and for Firesteel: one program, two imports."""

import os
import statistics
import time
import uuid
from collections.abc import Iterator
from typing import Any

import both
import kafka_settings
import measure

options = kafka_settings.options(both.arguments(__doc__)).parse_args()
engine = both.Engine(options)
base, kafka = engine.module("datastream.connectors.base"), engine.module("datastream.connectors.kafka")
SimpleStringSchema = engine.module("common.serialization").SimpleStringSchema
Types = engine.common.Types
ValueStateDescriptor = engine.state.ValueStateDescriptor
STAMPED, USER = kafka_settings.STAMPED, kafka_settings.USER


class CountPerKey(engine.datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Yields a record's beginning and how many of its key there were so far."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value}:{count}"


def source(records: int) -> Any:
    builder = (
        kafka.KafkaSource.builder()
        .set_bootstrap_servers(kafka_settings.SERVERS)
        .set_topics(*kafka_settings.topics(records, options.live))
        .set_group_id(uuid.uuid4().hex)
        .set_starting_offsets(kafka.KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
    )
    return (builder if options.live else builder.set_bounded(kafka.KafkaOffsetsInitializer.latest())).build()


def sink() -> Any:
    schema = kafka.KafkaRecordSerializationSchema.builder().set_topic(kafka_settings.RESULTS)
    return (
        kafka.KafkaSink.builder()
        .set_bootstrap_servers(kafka_settings.SERVERS)
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(base.DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(uuid.uuid4().hex)
        .set_property("transaction.timeout.ms", "600000")
        .build()
    )


def job(records: int) -> None:
    env = engine.environment()
    if options.engine == "pyflink":
        # It commits with its checkpoints. Firesteel does so with each batch, and an interval would make those smaller.
        env.enable_checkpointing(int(kafka_settings.COMMIT_SECONDS * 1000))
        env.add_jars(f"file://{os.environ['BENCH_KAFKA_JAR']}")
    lines = env.from_source(source(records), engine.common.WatermarkStrategy.no_watermarks(), "records")
    if options.read:
        engine.discard(lines)
    else:
        stamped = lines.map(lambda line: line[:STAMPED], Types.STRING())
        counts = stamped.key_by(lambda line: line[:USER], Types.STRING()).process(CountPerKey(), Types.STRING())
        counts.sink_to(sink())
    env.execute(f"Kafka, {records} records")


def timed_commits() -> list[float]:
    """The milliseconds of each commit of Firesteel's sink, which happens in this process."""
    from firesteel.connectors.kafka.committing import TransactionCommitter

    took: list[float] = []
    commit = TransactionCommitter.commit

    def timed(self: TransactionCommitter, committables: list[Any]) -> None:
        began = time.perf_counter()
        commit(self, committables)
        took.append((time.perf_counter() - began) * 1000)

    TransactionCommitter.commit = timed  # type: ignore[method-assign]
    return took


if options.live:
    job(0)
else:
    commits = timed_commits() if options.engine == "firesteel" else []
    result = measure.slope(job, options.records, options.repeats)
    if commits:
        result["commit_ms"] = statistics.median(commits)
    measure.report(result)
