"""The other systems on Spark: one job reads from all of them and writes to all of them, exactly once, while workers are
killed within a batch and inside the commit protocol, and so is the driver."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet
import pytest
from elasticsearchkit import FakeCluster
from mariadbkit import MariaDb
from rabbitmqkit import Rabbit
from rediskit import RedisDb
from sparkkit import REPOSITORY, run_script, write_script

from firesteel.testing import CommitCrashes, CrashPoint

PROGRAM = """
    import os
    import sqlite3
    import sys
    import time
    from pathlib import Path

    from firesteel.common import Configuration, Secret, Types, WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.common.serialization import SimpleStringSchema
    from firesteel.datastream.connectors import BatchSink, DeliveryGuarantee, PollingSource
    from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder, ElasticsearchEmitter
    from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
    from firesteel.datastream.connectors.hybrid_source import HybridSource
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
    from firesteel.datastream.connectors.jdbc_source import JdbcSource
    from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQStreamSource
    from firesteel.datastream.connectors.redis import RedisSink, RedisSource
    from firesteel.connectors.spark import targets
    from firesteel.connectors.spark.session import spark_session
    from firesteel.datastream.connectors.spark import SparkSink, SparkSource

    mariadb, sqlite, redis, folder, crashes, port, expected = sys.argv[1:]
    Path(f"{folder}/started-{len(list(Path(folder).glob('started-*')))}").touch()
    settings = {
        "firesteel.master": "local[2,4]",
        "firesteel.checkpoint.dir": f"{folder}/checkpoint",
        "firesteel.batch.max-records": "200",
        "firesteel.testing.crash-points": crashes,
    }
    NONE = WatermarkStrategy.no_watermarks()
    ONCE = DeliveryGuarantee.EXACTLY_ONCE
    row = Types.ROW_NAMED(["n"], [Types.LONG()])

    def options(url):
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_user_name("firesteel")
        return builder.with_password(Secret.from_environment("MARIADB_PASSWORD")).build()

    def polled(cursor):
        # What was given once is not given again, as a queue does it.
        page = [n for n in range(cursor, min(cursor + 30, 100)) if not Path(f"{folder}/given-{n}").exists()]
        for n in page:
            Path(f"{folder}/given-{n}").touch()
        return page, min(cursor + 30, 100)

    def killed_once(n):
        # What a socket has sent counts once it is in its log: the first driver does not die before.
        while not any(log.stat().st_size >= 100 for log in Path(f"{folder}/checkpoint").rglob("socket.log")):
            time.sleep(0.05)
        # In the middle of a batch, once for each of three numbers.
        marker = Path(f"{folder}/killed-{n}")
        if n in (50, 1045, 6035) and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return n

    def computed_once(spark):
        # A second start reads what the first one has computed.
        Path(f"{folder}/computed").touch(exist_ok=False)
        spark.createDataFrame([], "n BIGINT").write.jdbc(derby, "results")
        return spark.range(4000, 4060).selectExpr("id AS n", "rand() AS chance")

    class Database(targets._Database):
        def run(self, statement):
            changed = super().run(statement)
            if statement.startswith("INSERT INTO results"):
                # Rows are copied, their batch is not noted. The first batch passes, the second one kills Spark, too.
                copies = len(list(Path(folder).glob("copied-*")))
                Path(f"{folder}/copied-{copies}").touch()
                if copies == 1:
                    os.kill(spark_session()._jvm.java.lang.ProcessHandle.current().pid(), 9)
                    os.kill(os.getpid(), 9)
            return changed

    class Files(BatchSink):
        guarantee = ONCE

        def write(self, batch):
            # A file's name can be there only once.
            Path(folder, f"batch-{batch.sink}-{batch.number}").write_text(" ".join(map(str, batch.values)))

    targets._Database = Database
    derby = f"jdbc:derby:{folder}/derby;create=true"
    secret = Secret.from_environment("REDIS_PASSWORD")
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    stream = RedisSource(redis, ["numbers"], password=secret, bounded=True)
    later = JdbcSource.query("SELECT n FROM later", row, options(mariadb))
    table = HybridSource.builder(JdbcSource.table("numbers", row, options(mariadb), "n", 2)).add_source(later).build()
    grown = JdbcSource.growing_table("grown", "n", row, options(mariadb), interval=0.1)
    numbers_file = options(sqlite.replace("results", "numbers"))
    file = JdbcSource.table("numbers", row, numbers_file, "n", 2)
    grown_file = JdbcSource.growing_table("grown", "n", row, numbers_file, interval=0.1)
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{folder}/lines").build()
    broker = RMQConnectionConfig.Builder().set_uri(Secret.from_environment("RABBITMQ_URI")).build()
    offsets = RMQStreamSource(broker, ["stream"], SimpleStringSchema(), bounded=True)
    numbers = env.from_source(PollingSource(polled, 0, bounded=True), NONE, "polled").uid("polled").union(
        env.from_source(stream, NONE, "stream").uid("stream").map(lambda entry: int(entry.fields["n"])),
        env.from_source(table, NONE, "table").uid("table").map(lambda row: row.n),
        env.from_source(SparkSource.of(computed_once), NONE, "frame").uid("frame").map(lambda row: row.n),
        env.from_source(offsets, NONE, "offsets").uid("offsets").map(int),
        env.from_source(file, NONE, "file").uid("file").map(lambda row: row.n),
        env.from_source(grown, NONE, "grown").uid("grown").map(lambda row: row.n),
        env.from_source(grown_file, NONE, "grown file").uid("grown-file").map(lambda row: row.n),
        env.from_source(lines, NONE, "lines").uid("lines").map(int),
        env.socket_text_stream("127.0.0.1", int(port)).uid("socket").map(int),
    ).map(killed_once)
    rows = numbers.map(lambda n: (n,), output_type=row)
    insert = "INSERT INTO results VALUES (?)"
    rows.sink_to(JdbcSink.exactly_once_sink(insert, row, options(mariadb))).uid("to-mariadb")
    rows.sink_to(JdbcSink.exactly_once_sink(insert, row, options(sqlite))).uid("to-sqlite")
    rows.sink_to(JdbcSink.upsert_sink("latest", ["n"], row, options(mariadb))).uid("latest-in-mariadb")
    rows.sink_to(JdbcSink.upsert_sink("latest", ["n"], row, options(sqlite))).uid("latest-in-sqlite")
    rows.sink_to(SparkSink.jdbc(derby, "results")).uid("to-derby")
    numbers.sink_to(RedisSink(redis, lambda n: ("RPUSH", "results", n), ONCE, password=secret)).uid("to-redis")
    numbers.sink_to(Files()).uid("to-files")
    rows.sink_to(SparkSink.files("parquet", f"{folder}/parquet")).uid("to-parquet")
    numbers.map(str).sink_to(RMQSink(broker, "results", SimpleStringSchema())).uid("to-rabbit")
    elastic = Elasticsearch7SinkBuilder().set_hosts(os.environ["ELASTIC_HOST"]).set_connection_username("firesteel")
    elastic = elastic.set_connection_password(Secret.from_environment("ELASTIC_PASSWORD"))
    elastic = elastic.set_emitter(ElasticsearchEmitter.static_index("results", "n")).build()
    numbers.map(lambda n: {"n": n}).sink_to(elastic).uid("to-elastic")
    client = env.execute_async("systems")
    result = client.get_job_execution_result()
    with sqlite3.connect(f"{folder}/results.db", timeout=20) as connection:
        while not result.done() and connection.execute("SELECT count(*) FROM results").fetchone()[0] < int(expected):
            time.sleep(0.05)
    if not result.done():
        # Tables that grow and sockets do not end.
        client.stop_with_savepoint(True, f"{folder}/savepoint").result()
    result.result()
    in_derby = spark_session().read.jdbc(derby, "results").collect()
    Path(f"{folder}/in-derby").write_text(" ".join(str(row[0]) for row in in_derby))
    print("finished")
"""


class Lines:
    """A server of which each driver gets lines of its own: a client's turn comes when the one before it has gone."""

    def __init__(self, scripts: Sequence[Sequence[int]]) -> None:
        self._scripts = scripts
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._socket:
            for script in self._scripts:
                client, _ = self._socket.accept()
                with client, contextlib.suppress(ConnectionError):
                    client.sendall("".join(f"{n}\n" for n in script).encode())
                    client.recv(1)


@pytest.mark.timeout(600)
def test_workers_and_the_driver_are_killed_and_every_system_has_each_record_once(
    mariadb: MariaDb, redis: RedisDb, rabbit: Rabbit, fake_cluster: FakeCluster, tmp_path: Path
) -> None:
    mariadb.execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
    mariadb.execute("CREATE TABLE results (n bigint)")
    mariadb.execute("INSERT INTO numbers VALUES " + ", ".join(f"({n})" for n in range(1000, 1100)))
    mariadb.execute("CREATE TABLE later (n bigint)")
    mariadb.execute("INSERT INTO later VALUES " + ", ".join(f"({n})" for n in range(3000, 3050)))
    redis.add("numbers", range(2000, 2100))
    rabbit.declare("stream", arguments={"x-queue-type": "stream"})
    rabbit.publish(range(5000, 5040), "stream")
    mariadb.execute("CREATE TABLE latest (n bigint PRIMARY KEY)")
    mariadb.execute("CREATE TABLE grown (n bigint PRIMARY KEY)")
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute("CREATE TABLE results (n)")
        connection.execute("CREATE TABLE latest (n INTEGER PRIMARY KEY)")
    with sqlite3.connect(tmp_path / "numbers.db") as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(6000, 6100)])
        connection.execute("CREATE TABLE grown (n INTEGER PRIMARY KEY)")

    def grow(first: int) -> None:
        mariadb.execute("INSERT INTO grown VALUES " + ", ".join(f"({n})" for n in range(first, first + 20)))
        with sqlite3.connect(tmp_path / "numbers.db", timeout=20) as connection:
            connection.executemany("INSERT INTO grown VALUES (?)", [(n + 500,) for n in range(first, first + 20)])

    grow(8000)
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "of-text").write_text("".join(f"{n}\n" for n in range(9000, 9060)))
    server = Lines([range(7000, 7020), [], range(7020, 7040)])
    expected = Counter([*range(100), *range(1000, 1100), *range(2000, 2100), *range(3000, 3050)])
    expected += Counter([*range(4000, 4060), *range(5000, 5040), *range(6000, 6100), *range(7000, 7040)])
    expected += Counter([*range(8000, 8060), *range(8500, 8560), *range(9000, 9060)])
    program = write_script(tmp_path, PROGRAM)
    points = {
        # A worker, after it has prepared and before anybody knows: Spark repeats the task.
        CrashPoint.PREPARED: ["pass", "pass", "pass", "pass", "pass", "kill"],
        # The driver, when the batch can never come again, with half of the sinks committed.
        CrashPoint.BETWEEN_SINKS: ["pass", "pass", "pass", "pass", "kill"],
    }
    environment = {
        "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}",
        "MARIADB_PASSWORD": mariadb.password,
        "REDIS_PASSWORD": redis.password,
        "RABBITMQ_URI": rabbit.uri,
        "ELASTIC_HOST": fake_cluster.host,
        "ELASTIC_PASSWORD": fake_cluster.password,
    }
    with CommitCrashes(points) as crashes:
        arguments = [mariadb.url, f"jdbc:sqlite:{tmp_path / 'results.db'}", redis.url, str(tmp_path), crashes.folder]
        arguments += [str(server.port), str(expected.total())]
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        assert crashes.reached(CrashPoint.BETWEEN_SINKS) == 5
        assert len(list(tmp_path.glob("copied-*"))) == 1, "Spark has written the first batch to its table"
        # Rows that a table did not have when the job began do not count, whoever goes on with it.
        with sqlite3.connect(tmp_path / "numbers.db") as connection:
            connection.execute("INSERT INTO numbers SELECT n + 100 FROM numbers")
        # Those of a table that grows do.
        grow(8020)
        # The next driver, within the transaction of the second batch.
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        assert len(list(tmp_path.glob("copied-*"))) == 2
        grow(8040)
        done = run_script(program, *arguments, **environment)
        assert done.stdout == "finished\n", done.stderr
    assert len(list(tmp_path.glob("killed-*"))) == 3
    with sqlite3.connect(tmp_path / "results.db") as connection:
        in_sqlite = [n for (n,) in connection.execute("SELECT n FROM results")]
        assert {n for (n,) in connection.execute("SELECT n FROM latest")} == set(expected)
    assert {n for (n,) in mariadb.execute("SELECT n FROM latest")} == set(expected)
    files = [path.read_text().split() for path in tmp_path.glob("batch-*")]
    assert Counter(n for (n,) in mariadb.execute("SELECT n FROM results")) == expected
    assert Counter(in_sqlite) == expected
    assert Counter(map(int, redis.client.lrange("results", 0, -1))) == expected
    assert Counter(int(n) for file in files for n in file) == expected
    assert Counter(map(int, (tmp_path / "in-derby").read_text().split())) == expected
    assert mariadb.prepared() == []
    assert Counter(pyarrow.parquet.read_table(tmp_path / "parquet").column("n").to_pylist()) == expected
    assert {n for n, _ in rabbit.fetch("results")} == set(expected)
    assert fake_cluster.numbers("results") == {str(n): n for n in expected}
    # No secret is kept with the job.
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    for secret in (mariadb.password, redis.password, rabbit.password, fake_cluster.password):
        assert [path for path in kept if secret.encode() in path.read_bytes()] == []
