"""Records a second into and out of other systems, beside each system's client in a bare loop that does the same.

The servers are those of the tests, on the same machine, so they take their share of its processor from both alike. Jobs
run on the engine in memory, which runs the same tasks as Spark's workers do, with one subtask: what is compared is the
connector, not Spark. A bare loop sends and fetches in portions of the same size, without checkpoints, conversions or
checks.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from measure import progress, report

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import mariadb_server
import redis_server

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.connectors.redis import RedisSink, RedisSource

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=200_000)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--system", choices=["redis", "mariadb", "sqlite"], required=True)
options = parser.parse_args()

NONE = WatermarkStrategy.no_watermarks()
ONCE = DeliveryGuarantee.EXACTLY_ONCE
ROW = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
TEXT = "x" * 80
PORTION = 5000

Work = Callable[[], None]


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    env.set_parallelism(1)
    return env


def numbers(env: StreamExecutionEnvironment) -> Any:
    source = env.from_source(NumberSequenceSource(0, options.records - 1), NONE, "numbers")
    return source.map(lambda n: (n, TEXT), output_type=ROW)


def written(sink: Any) -> None:
    env = environment()
    numbers(env).sink_to(sink)
    env.execute("into")


def read(source: Any) -> None:
    env = environment()
    env.from_source(source, NONE, "out").filter(lambda record: False).print()
    env.execute("out of")


def portions() -> Iterator[list[tuple[int, str]]]:
    for start in range(0, options.records, PORTION):
        yield [(n, TEXT) for n in range(start, min(start + PORTION, options.records))]


def redis(stack: ExitStack) -> tuple[Work, dict[str, tuple[Work, Work]]]:
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
    url: str, user: str, password: str, connect: Callable[[], Any], mark: str
) -> tuple[Work, dict[str, tuple[Work, Work]]]:
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

    def bare_in() -> None:
        connection = connect()
        for rows in portions():
            connection.cursor().executemany(insert.replace("?", mark), rows)
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
        "out of, in parts": (bare_out, lambda: read(JdbcSource.table("bench", ROW, given, "n", 4))),
        "out of, as a whole": (bare_out, lambda: read(JdbcSource.table("bench", ROW, given))),
    }


def mariadb(stack: ExitStack) -> tuple[Work, dict[str, tuple[Work, Work]]]:
    import pymysql

    server = stack.enter_context(mariadb_server.MariaDbServer())
    user, password = mariadb_server.USER, mariadb_server.PASSWORD
    login = {"host": "127.0.0.1", "port": server.port, "user": user, "password": password}
    return database(server.url, user, password, lambda: pymysql.connect(database="firesteel", **login), "%s")


def sqlite(stack: ExitStack) -> tuple[Work, dict[str, tuple[Work, Work]]]:
    path = f"{stack.enter_context(tempfile.TemporaryDirectory())}/bench.db"
    return database(f"jdbc:sqlite:{path}", "", "", lambda: sqlite3.connect(path), "?")


def rate(work: Work) -> float:
    began = time.perf_counter()
    work()
    return options.records / (time.perf_counter() - began)


def main() -> None:
    found: dict[str, object] = {"records": options.records}
    with ExitStack() as stack:
        clear, works = {"redis": redis, "mariadb": mariadb, "sqlite": sqlite}[options.system](stack)
        for name, (bare, ours) in works.items():
            rates: list[tuple[float, float]] = []
            for _ in range(options.repeats):
                pair = []
                for work in (bare, ours):
                    if name.startswith("into"):
                        clear()
                    pair.append(rate(work))
                rates.append((pair[0], pair[1]))
                progress(f"{name}: bare loop {pair[0]:,.0f}, Firesteel {pair[1]:,.0f} records/s")
            bare_rate, our_rate = (statistics.median(column) for column in zip(*rates, strict=True))
            found[name] = {"bare loop": bare_rate, "firesteel": our_rate, "share": our_rate / bare_rate}
    report(found)


if __name__ == "__main__":
    main()
