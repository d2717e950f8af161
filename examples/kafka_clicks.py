"""Clicks from Kafka: visits into PostgreSQL, alerts back to Kafka, each exactly once.

    python examples/kafka_clicks.py localhost:9092 jdbc:postgresql://localhost:5432/shop

Without servers at hand, examples/kafka_clicks_demo.py starts them, makes clicks, runs this program beside them, kills
it once, and shows what came out.

A click is JSON, such as {"user": "ada", "page": "/shop", "time": 1700000000000}, with the user as the record's key. A
visit ends when its user is silent for half a minute; its row is written in a transaction. Whoever fails to log in
three times in a row is reported in the topic "alerts", also in a transaction. Both become visible when their
micro-batch is complete, also if the job was killed meanwhile and started again.
"""

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common import Configuration, Duration, Time, Types, WatermarkStrategy
from firesteel.common.serialization import DeserializationSchema
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import EventTimeSessionWindows, TimeWindow

GAP_SECONDS = 30
FAILURES = 3
CLICK = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
VISIT = Types.ROW_NAMED(
    ["person", "began", "ended", "clicks", "bought"],
    [Types.STRING(), Types.LONG(), Types.LONG(), Types.INT(), Types.BOOLEAN()],
)
ALERT = Types.TUPLE([Types.STRING(), Types.LONG()])
TABLE = """
    CREATE TABLE IF NOT EXISTS visits (person text, began bigint, ended bigint, clicks int, bought boolean)
"""

Click = tuple[str, str, int]
"""User, page, time in milliseconds."""


class Clicks(DeserializationSchema):
    def deserialize(self, message: bytes) -> Click:
        click = json.loads(message)
        return click["user"], click["page"], click["time"]

    def get_produced_type(self) -> Any:
        return CLICK


class Clicked(TimestampAssigner):
    def extract_timestamp(self, value: Click, record_timestamp: int) -> int:
        return value[2]


class Visit(ProcessWindowFunction[Click, Any, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterator[Any]:
        clicks = list(elements)
        times = [time for _, _, time in clicks]
        yield key, min(times), max(times), len(clicks), any(page == "/paid" for _, page, _ in clicks)


class FailedLogins(KeyedProcessFunction):
    """Reports a user at the third failure in a row."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.failures = runtime_context.get_state(ValueStateDescriptor("failures", Types.INT()))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        user, page, time = value
        count = (self.failures.value() or 0) + 1 if page == "/login-failed" else 0
        if count == FAILURES:
            yield user, time
        self.failures.update(count % FAILURES)


def build(env: StreamExecutionEnvironment, servers: str, url: str, bounded: bool = False, prefix: str = "") -> None:
    """The program: two results of one stream of clicks."""
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(f"{prefix}clicks")
        .set_group_id(f"{prefix}visits")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(Clicks())
    )
    if bounded:
        source.set_bounded(KafkaOffsetsInitializer.latest())
    # Kafka keeps the order of a user's clicks; different users may be some seconds apart.
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    clicks = env.from_source(source.build(), watermarks.with_timestamp_assigner(Clicked()), "clicks").uid("clicks")
    by_user = clicks.key_by(lambda click: click[0], key_type=Types.STRING())

    visits = by_user.window(EventTimeSessionWindows.with_gap(Time.seconds(GAP_SECONDS))).process(Visit(), VISIT)
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    insert = JdbcSink.exactly_once_sink("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", VISIT, options)
    visits.uid("visits").sink_to(insert).uid("to-postgresql").name("to PostgreSQL")

    alerts = by_user.process(FailedLogins(), ALERT).uid("alerts")
    records = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(f"{prefix}alerts")
        .set_key_serialization_schema(lambda alert: alert[0].encode())
        .set_value_serialization_schema(lambda alert: json.dumps({"user": alert[0], "time": alert[1]}).encode())
        .build()
    )
    to_kafka = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"{prefix}alerts")
        .build()
    )
    alerts.sink_to(to_kafka).uid("to-kafka").name("to Kafka")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="?", default=os.environ.get("FIRESTEEL_KAFKA_SERVERS"), help="Kafka's address")
    parser.add_argument("url", nargs="?", default=os.environ.get("FIRESTEEL_POSTGRES_URL"), help="of the database")
    parser.add_argument("--checkpoint", help="a folder; a job that is started again with it goes on where it was")
    parser.add_argument("--bounded", action="store_true", help="end with the clicks that are there now")
    parser.add_argument("--prefix", default="", help="what the names of the topics begin with")
    chosen = parser.parse_args()
    if chosen.servers is None or chosen.url is None:
        parser.error("give the addresses of Kafka (host:port) and of PostgreSQL (jdbc:postgresql://host:port/database)")
    settings = {"firesteel.checkpoint.dir": chosen.checkpoint} if chosen.checkpoint else {}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    build(env, chosen.servers, chosen.url, chosen.bounded, chosen.prefix)
    env.execute("visits and alerts")


if __name__ == "__main__":
    main()
