"""The job that is killed: keyed counts, timers and windows, from a generator into PostgreSQL and files, or from Kafka
to Kafka.

    python -m chaos.job SETTINGS.json

What it gives does not depend on when batches begin and end. All results have the same form: (kind, key, n, value).

- ``count``: the records of a key are numbered. A record lost or counted twice leaves a gap or a repetition.
- ``timer``: a timer of event time per key and second. ``alarm``: one of processing time per key.
- ``window``: count and sum of a key's records in each five seconds of event time.
- ``union``: the records of a key are numbered once more, by counts in a union list.
- ``rules``: at the end, what each key sees of a broadcast state that grew all the time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chaos.kafka_faults import FaultySink
from chaos.portions import PortionedSource
from firesteel.common import Configuration, Duration, Time, Types, WatermarkStrategy
from firesteel.common.serialization import DeserializationSchema, Encoder
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.base import Sink, Source
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.engine.commit_log import CommitLog

RESULT = Types.ROW_NAMED(["kind", "key", "n", "value"], [Types.STRING(), Types.INT(), Types.LONG(), Types.LONG()])
MILLIS_PER_RECORD = 10
KEYS = 20
RECORDS_PER_RULE = 100
END_OF_TIME = 2**60
RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())

Result = tuple[str, int, int, int]


@dataclass(frozen=True)
class Plan:
    """The settings of one run of the job."""

    records: int
    rate: float | None = None
    url: str = ""
    folder: str = ""
    """Where the files go."""
    without: list[str] = field(default_factory=list)
    """Mechanisms that are switched off, to see the suite go red. ``two-phase``: rows are in the table before the batch
    is done. ``commit-log``: a driver that is started again does not look what its predecessor had left to commit."""
    settings: dict[str, str] = field(default_factory=dict)
    kafka: dict[str, str] = field(default_factory=dict)
    """``servers``, and the topics ``source`` and ``results``, where the records come from Kafka and the results go
    there. ``crashes`` is a folder with crash points of the sink."""
    portions: int = 1
    """How many portions the records come in; see :mod:`chaos.portions`."""
    done: str = ""
    """The folder with a file for each kill that is done."""
    program: str = "chaos.job"
    """The module that is the job: this one, or :mod:`chaos.sql_job`."""

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: Path) -> Plan:
        return Plan(**json.loads(path.read_text()))


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1]) * MILLIS_PER_RECORD


class AtOnce(TimestampAssigner):
    """Rules hold back no event time: they are ahead of all records."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return END_OF_TIME - 1_000_000


class Numbering(KeyedProcessFunction):
    """Numbers a key's records and sets timers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Result]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        timers = ctx.timer_service()
        second = value[1] * MILLIS_PER_RECORD // 1000
        timers.register_event_time_timer(second * 1000 + 999)
        if count == 1:
            timers.register_processing_time_timer(timers.current_processing_time() + 1)
        yield "count", value[0], count, 0

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Result]:
        # Timers of processing time are set for today, and event time begins with 1970.
        if timestamp > 10**12:
            yield "alarm", ctx.get_current_key(), 0, 0
        else:
            yield "timer", ctx.get_current_key(), timestamp, 0


class UnionNumbering(MapFunction, CheckpointedFunction):
    """Numbers a key's records with what all subtasks know together. After a restart each of them has the counts of all,
    and of several counts of a key the highest is the owner's."""

    def initialize_state(self, context: Any) -> None:
        descriptor = ListStateDescriptor("counts", Types.TUPLE([Types.INT(), Types.LONG()]))
        self.saved = context.get_operator_state_store().get_union_list_state(descriptor)
        self.counts: dict[int, int] = {}
        for key, count in self.saved.get():
            self.counts[key] = max(count, self.counts.get(key, 0))

    def map(self, value: Any) -> Result:
        count = self.counts[value[0]] = self.counts.get(value[0], 0) + 1
        return "union", value[0], count, 0

    def snapshot_state(self, context: Any) -> None:
        self.saved.update(list(self.counts.items()))


class Rules(KeyedBroadcastProcessFunction):
    """Looks at all rules when everything has come in."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Result]:
        ctx.timer_service().register_event_time_timer(END_OF_TIME)
        yield from ()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Result]:
        ctx.get_broadcast_state(RULES).put(value, value * value)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Result]:
        rules = dict(ctx.get_broadcast_state(RULES).items())
        yield "rules", ctx.get_current_key(), len(rules), sum(rules.values())


class Summary(ProcessWindowFunction[Any, Any, Any, Any]):
    """Count and sum of a window."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Result]:
        numbers = [number for _, number in elements]
        yield "window", key, context.window().end, len(numbers) * 10**9 + sum(numbers)


def results(env: StreamExecutionEnvironment, plan: Plan) -> DataStream:
    """All results of the job."""
    source: Source[Any, Any] = PortionedSource(
        lambda n: (n % KEYS, n), plan.records, plan.rate, plan.done, plan.portions
    )
    if plan.kafka:
        source = kafka_source(plan)
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    records = env.from_source(source, watermarks.with_timestamp_assigner(EventTime()), "records").uid("records")
    keyed = records.key_by(lambda record: record[0], key_type=Types.INT())
    numbered = keyed.process(Numbering(), output_type=RESULT).uid("numbering")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(5))).process(Summary(), output_type=RESULT)
    union_state = keyed.map(UnionNumbering(), output_type=RESULT).uid("union")
    rate = plan.rate / RECORDS_PER_RULE if plan.rate else None
    numbers = DataGeneratorSource(lambda n: n, plan.records // RECORDS_PER_RULE, rate)
    ahead = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtOnce())
    rules = env.from_source(numbers, ahead, "rules").uid("rules").broadcast(RULES)
    ruled = keyed.connect(rules).process(Rules(), output_type=RESULT).uid("ruled")
    return numbered.union(windows.uid("windows"), union_state, ruled)


def kafka_source(plan: Plan) -> KafkaSource:
    """Ends with the last record, which is not there yet when the job starts."""
    topic = plan.kafka["source"]
    ends = {KafkaTopicPartition(topic, part): (plan.records + 1 - part) // 2 for part in (0, 1)}
    builder = KafkaSource.builder().set_bootstrap_servers(plan.kafka["servers"]).set_topics(topic)
    builder = builder.set_group_id(topic).set_starting_offsets(KafkaOffsetsInitializer.earliest())
    builder = builder.set_bounded(KafkaOffsetsInitializer.offsets(ends))
    return builder.set_value_only_deserializer(Numbers()).build()


class Numbers(DeserializationSchema):
    def deserialize(self, message: bytes) -> Any:
        number = int(message)
        return number % KEYS, number


def sinks(plan: Plan) -> dict[str, Sink]:
    """By uid."""
    if plan.kafka:
        return {"to-kafka": kafka_sink(plan)}
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(plan.url)
    # By the driver's environment: the executors of a cluster have another one.
    options = builder.with_user_name(os.environ["PGUSER"]).with_password(os.environ["PGPASSWORD"]).build()
    make = JdbcSink.sink if "two-phase" in plan.without else JdbcSink.exactly_once_sink
    files = (
        FileSink.for_row_format(plan.folder, Encoder.csv_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        # So that parts go on from batch to batch, and some end in the middle of one.
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=20_000, rollover_interval=3_000))
        .build()
    )
    return {"to-postgres": make("INSERT INTO results VALUES (?, ?, ?, ?)", RESULT, options), "to-files": files}


def kafka_sink(plan: Plan) -> Sink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(plan.kafka["results"])
    records = schema.set_value_serialization_schema(lambda row: ",".join(map(str, row)).encode()).build()
    guarantee = DeliveryGuarantee.AT_LEAST_ONCE if "two-phase" in plan.without else DeliveryGuarantee.EXACTLY_ONCE
    builder = KafkaSink.builder().set_bootstrap_servers(plan.kafka["servers"]).set_record_serializer(records)
    sink = builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(plan.kafka["results"]).build()
    return FaultySink(sink, plan.kafka.get("crashes")) if "two-phase" not in plan.without else sink


def environment(plan: Plan) -> StreamExecutionEnvironment:
    """Where the job runs, and how it comes back."""
    settings = {
        "firesteel.batch.max-records": "1000",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100000",
        "restart-strategy.fixed-delay.delay": "100 ms",
        # It is killed long before the JVM's thorough compiler pays.
        "firesteel.spark.jit": "quick",
        **plan.settings,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    return env


def build(plan: Plan) -> StreamExecutionEnvironment:
    env = environment(plan)
    stream = results(env, plan)
    for uid, sink in sinks(plan).items():
        stream.sink_to(sink).uid(uid).name(uid)
    return env


def main(plan: Plan) -> None:
    if "commit-log" in plan.without:
        CommitLog.read = lambda self: {}  # type: ignore[method-assign]
    build(plan).execute("chaos")


if __name__ == "__main__":
    main(Plan.load(Path(sys.argv[1])))
