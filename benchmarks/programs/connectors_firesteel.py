"""Records a second into and out of other systems, beside each system's client in a bare loop that does the same.

The servers are those of the tests, on the same machine, so they take their share of its processor from both alike. Jobs
run on the engine in memory, which runs the same tasks as Spark's workers do, with one subtask: what is compared is the
connector, not Spark. A bare loop sends and fetches in portions of the same size, without checkpoints, conversions or
checks.
"""

import itertools
import os
import pickle
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from connector_jobs import (
    PORTION,
    ROW,
    TEXT,
    Work,
    Works,
    after,
    environment,
    measured,
    numbers,
    options,
    portions,
    read,
    taken,
    written,
    written_text,
)
from measure import progress, report

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import fetched_servers
import mariadb_server
import mosquitto_server
import postgres_server
import rabbitmq_server
import redis_server

from firesteel.common import Encoder, SimpleStringSchema
from firesteel.datastream.connectors import DeliveryGuarantee, PollingSource
from firesteel.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.datastream.connectors.mqtt import MqttSink, MqttSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource, RMQStreamSource
from firesteel.datastream.connectors.redis import RedisSink, RedisSource
from firesteel.datastream.connectors.spark import SparkSink, SparkSource

ONCE = DeliveryGuarantee.EXACTLY_ONCE


def redis(stack: ExitStack) -> tuple[Work, Works]:
    server = stack.enter_context(redis_server.RedisServer())
    client, secret = server.client(), redis_server.PASSWORD

    def bare_in() -> None:
        for rows in portions():
            with client.pipeline(transaction=False) as pipeline:
                for n, text in rows:
                    pipeline.execute_command("XADD", "bench", "*", "n", n, "text", text)
                pipeline.execute()

    def bare_out() -> None:
        last = "-"
        while found := client.xrange("bench", last, count=PORTION):
            last = f"({found[-1][0]}"

    def sink(guarantee: DeliveryGuarantee) -> RedisSink:
        def command(row: Any) -> tuple[Any, ...]:
            return ("XADD", "bench", "*", "n", row[0], "text", row[1])

        return RedisSink(server.url, command, guarantee, password=secret)

    return client.flushall, {
        "into, at least once": (bare_in, lambda: written(sink(DeliveryGuarantee.AT_LEAST_ONCE))),
        "into, exactly once": (bare_in, lambda: written(sink(ONCE))),
        "out of": (bare_out, lambda: read(RedisSource(server.url, ["bench"], password=secret, bounded=True))),
    }


def database(
    url: str, user: str, password: str, connect: Callable[[], Any], mark: str, upsert: str
) -> tuple[Work, Works]:
    given = JdbcConnectionOptions(url, None, user, password)
    insert = "INSERT INTO bench VALUES (?, ?)"

    def run(statement: str) -> None:
        connection = connect()
        connection.cursor().execute(statement)
        connection.commit()
        connection.close()

    def clear() -> None:
        run("DROP TABLE IF EXISTS bench")
        run("CREATE TABLE bench (n bigint PRIMARY KEY, text varchar(100))")

    def bare_in(ending: str = "") -> None:
        connection = connect()
        for rows in portions():
            connection.cursor().executemany(insert.replace("?", mark) + ending, rows)
            connection.commit()
        connection.close()

    def bare_out() -> None:
        connection = connect()
        cursor = connection.cursor()
        cursor.execute("SELECT n, text FROM bench")
        while cursor.fetchmany(PORTION):
            pass
        connection.close()

    return clear, {
        "into, at least once": (bare_in, lambda: written(JdbcSink.sink(insert, ROW, given))),
        "into, exactly once": (bare_in, lambda: written(JdbcSink.exactly_once_sink(insert, ROW, given))),
        "into, upserts": (lambda: bare_in(upsert), lambda: written(JdbcSink.upsert_sink("bench", ["n"], ROW, given))),
        "out of, in parts": (bare_out, lambda: read(JdbcSource.table("bench", ROW, given, "n", 4))),
        "out of, as a whole": (bare_out, lambda: read(JdbcSource.table("bench", ROW, given))),
        "out of, as it grows": (bare_out, lambda: taken(JdbcSource.growing_table("bench", "n", ROW, given))),
    }


STANDARD_UPSERT = " ON CONFLICT (n) DO UPDATE SET text = excluded.text"


def mariadb(stack: ExitStack) -> tuple[Work, Works]:
    import pymysql

    server = stack.enter_context(mariadb_server.MariaDbServer())
    user, password = mariadb_server.USER, mariadb_server.PASSWORD
    login = {"host": "127.0.0.1", "port": server.port, "user": user, "password": password}
    return database(
        server.url,
        user,
        password,
        lambda: pymysql.connect(database="firesteel", **login),
        "%s",
        " ON DUPLICATE KEY UPDATE text = VALUES(text)",
    )


def postgresql(stack: ExitStack) -> tuple[Work, Works]:
    import psycopg

    server = stack.enter_context(postgres_server.PostgresServer())
    user, password = postgres_server.USER, postgres_server.PASSWORD

    def vacuum() -> None:
        # The server does it itself within a minute of such a load. Before, it knows nothing of the table, and sorts.
        with psycopg.connect(**server.parameters()) as connection:
            connection.execute("VACUUM ANALYZE bench")

    clear, works = database(
        server.url, user, password, lambda: psycopg.connect(**server.parameters()), "%s", STANDARD_UPSERT
    )
    for name, (bare, ours) in works.items():
        if name.startswith("out of"):
            works[name] = (after(vacuum, bare), after(vacuum, ours))
    return clear, works


def sqlite(stack: ExitStack) -> tuple[Work, Works]:
    path = f"{stack.enter_context(tempfile.TemporaryDirectory())}/bench.db"
    return database(f"jdbc:sqlite:{path}", "", "", lambda: sqlite3.connect(path), "?", STANDARD_UPSERT)


def files(stack: ExitStack) -> tuple[Work, Works]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "in").mkdir()
    (folder / "in" / "lines").write_text(f"{TEXT}\n" * options.records)

    def out() -> str:
        return str(folder / f"out{time.monotonic_ns()}")

    def bare_in() -> None:
        with open(out(), "w") as file:
            for rows in portions():
                file.writelines([f"{text}\n" for _, text in rows])
            file.flush()
            os.fsync(file.fileno())

    def bare_out() -> None:
        with (folder / "in" / "lines").open() as file:
            for line in file:
                line.rstrip("\n")

    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "in")).build()
    return lambda: None, {
        "into text, exactly once": (
            bare_in,
            lambda: written_text(FileSink.for_row_format(out(), Encoder.simple_string_encoder()).build()),
        ),
        "out of text": (bare_out, lambda: read(lines)),
    }


def mqtt(stack: ExitStack) -> tuple[Work, Works]:
    import paho.mqtt.client as paho

    server = stack.enter_context(mosquitto_server.MosquittoServer())
    login = {"user_name": mosquitto_server.USER, "password": mosquitto_server.PASSWORD}

    def client() -> Any:
        made = paho.Client(paho.CallbackAPIVersion.VERSION2)
        made.username_pw_set(mosquitto_server.USER, mosquitto_server.PASSWORD)
        made.max_inflight_messages_set(1000)
        made.connect("127.0.0.1", server.port)
        made.loop_start()
        return made

    def bare_in() -> None:
        made = client()
        for rows in portions():
            for sent in [made.publish("bench", text, 1) for _, text in rows]:
                sent.wait_for_publish(60)
        made.disconnect()
        made.loop_stop()

    def bare_out() -> None:
        came, all_came = itertools.count(1), threading.Event()
        made = kept_session()
        made.on_message = lambda *given: all_came.set() if next(came) == options.records else None
        made.connect("127.0.0.1", server.port)
        made.loop_start()
        all_came.wait()
        made.disconnect()
        made.loop_stop()

    def kept_session() -> Any:
        made = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="bench", clean_session=False)
        made.username_pw_set(mosquitto_server.USER, mosquitto_server.PASSWORD)
        return made

    def fill() -> None:
        """The broker keeps what comes for a session while nobody is there to take it."""
        made, subscribed = kept_session(), threading.Event()
        made.on_subscribe = lambda *given: subscribed.set()
        made.connect("127.0.0.1", server.port)
        made.subscribe("bench", 1)
        made.loop_start()
        subscribed.wait()
        made.disconnect()
        made.loop_stop()
        bare_in()

    sink = MqttSink(server.url, lambda row: ("bench", row[1]), **login)
    source = MqttSource(server.url, ["bench"], client_id="bench", **login)
    return lambda: None, {
        "into, at least once": (bare_in, lambda: written(sink)),
        "out of": (after(fill, bare_out), after(fill, lambda: taken(source))),
    }


def rabbitmq(stack: ExitStack) -> tuple[Work, Works]:
    server = stack.enter_context(rabbitmq_server.RabbitMqServer())
    config = RMQConnectionConfig.Builder().set_uri(server.uri).build()
    text = SimpleStringSchema()

    def declare() -> None:
        with server.connection() as connection:
            channel = connection.channel()
            for name, kind in (("bench", "classic"), ("stream", "stream")):
                channel.queue_delete(name)
                channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})

    def bare_in(queue: str = "bench") -> None:
        import pika

        properties = pika.BasicProperties(delivery_mode=2)
        with server.connection() as connection:
            channel = connection.channel()
            # All of a portion together; confirms one by one would be a round trip each.
            channel.tx_select()
            for rows in portions():
                for n, body in rows:
                    properties.correlation_id = str(n)
                    channel.basic_publish("", queue, body.encode(), properties)
                channel.tx_commit()

    def bare_out(queue: str, arguments: Any = None) -> None:
        with server.connection() as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=2000)
            for count, (method, _, _) in enumerate(channel.consume(queue, arguments=arguments), 1):
                if count % 500 == 0 or count == options.records:
                    channel.basic_ack(method.delivery_tag, multiple=True)
                if count == options.records:
                    break
            channel.cancel()

    def fill() -> None:
        declare()
        bare_in()

    declare()
    bare_in("stream")
    stream = RMQStreamSource(config, ["stream"], text, bounded=True)
    queue, by_id = (RMQSource(config, "bench", recognised, text) for recognised in (False, True))
    return declare, {
        "out of, a stream": (lambda: bare_out("stream", {"x-stream-offset": "first"}), lambda: read(stream)),
        "out of, a queue": (after(fill, lambda: bare_out("bench")), after(fill, lambda: taken(queue))),
        "out of, a queue, by id": (after(fill, lambda: bare_out("bench")), after(fill, lambda: taken(by_id))),
        "into, at least once": (bare_in, lambda: written_text(RMQSink(config, "bench", text))),
    }


def opensearch(stack: ExitStack) -> tuple[Work, Works]:
    clear, bare_in, sink = fetched_servers.opensearch(stack, portions)
    return clear, {"into, by id": (bare_in, lambda: written(sink))}


def cassandra(stack: ExitStack) -> tuple[Work, Works]:
    clear, bare_in, add_sink = fetched_servers.cassandra(stack, portions)

    def ours() -> None:
        env = environment()
        add_sink(numbers(env))
        env.execute("into")

    return clear, {"into, upserts": (bare_in, ours)}


def page_of(cursor: int) -> tuple[list[tuple[int, str]], int]:
    end = min(cursor + PORTION, options.records)
    return [(n, TEXT) for n in range(cursor, end)], end


def bare_pages() -> None:
    cursor = 0
    while cursor < options.records:
        _, cursor = page_of(cursor)


def polling(stack: ExitStack) -> tuple[Work, Works]:
    log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log"

    def logged() -> None:
        # What makes a record count once: it is on the disk before it counts.
        cursor = 0
        with log.open("wb") as file:
            while cursor < options.records:
                page, cursor = page_of(cursor)
                file.write(pickle.dumps((cursor, page), protocol=5))
                file.flush()
                os.fsync(file.fileno())

    return lambda: None, {
        "out of": (bare_pages, lambda: read(PollingSource(page_of, 0, bounded=True))),
        "out of, beside a loop that logs as well": (logged, lambda: read(PollingSource(page_of, 0, bounded=True))),
    }


def hybrid(stack: ExitStack) -> tuple[Work, Works]:
    """Two sources one after the other, beside one of them alone."""
    half = options.records // 2
    first, second = NumberSequenceSource(0, half - 1), NumberSequenceSource(half, options.records - 1)
    both = HybridSource.builder(first).add_source(second).build()
    one = NumberSequenceSource(0, options.records - 1)
    return lambda: None, {"out of, beside one source": (lambda: read(one), lambda: read(both))}


def spark(stack: ExitStack) -> tuple[Work, Works]:
    from pyspark.sql import SparkSession

    folder = stack.enter_context(tempfile.TemporaryDirectory())
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.range(options.records).selectExpr("id AS n", f"'{TEXT}' AS text")
    frame.count()

    def out(name: str) -> str:
        return f"{folder}/{name}{time.monotonic_ns()}"

    def bare_out() -> None:
        for _ in frame.toLocalIterator():
            pass

    def bare_in() -> None:
        rows = [row for portion in portions() for row in portion]
        session.createDataFrame(rows, "n BIGINT, text STRING").write.parquet(out("bare"))

    return lambda: None, {
        "out of, beside toLocalIterator": (bare_out, lambda: read(SparkSource.of(frame))),
        "into Parquet, beside createDataFrame": (
            bare_in,
            lambda: written(SparkSink.files("parquet", out("ours"), ROW)),
        ),
    }


def main() -> None:
    found: dict[str, object] = {"records": options.records}
    with ExitStack() as stack:
        try:
            clear, works = globals()[options.system](stack)
        except fetched_servers.Skipped as reason:
            report({"skipped": str(reason)})
            return
        for name, (bare, ours) in works.items():
            turns: list[tuple[float, ...]] = []
            for _ in range(options.repeats):
                turn: list[float] = []
                for work in (bare, ours):
                    if name.startswith("into"):
                        clear()
                    turn += measured(work)
                turns.append(tuple(turn))
                progress(
                    f"{name}: bare loop {turn[0]:,.0f}, Firesteel {turn[2]:,.0f} records/s; "
                    f"{turn[1]:.2f} and {turn[3]:.2f} s of CPU"
                )
            bare_rate, bare_cpu, our_rate, our_cpu = (statistics.median(column) for column in zip(*turns, strict=True))
            found[name] = {
                "bare loop": bare_rate,
                "firesteel": our_rate,
                "share": our_rate / bare_rate,
                "bare loop, CPU seconds": bare_cpu,
                "firesteel, CPU seconds": our_cpu,
            }
    report(found)


if __name__ == "__main__":
    main()
