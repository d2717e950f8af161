"""The other systems on Spark: one job reads from all of them and writes to all of them, exactly once, while workers are
killed within a batch and inside the commit protocol, and so is the driver."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from pathlib import Path

from mariadbkit import MariaDb
from rediskit import RedisDb
from sparkkit import REPOSITORY, run_script, write_script

from firesteel.testing import CommitCrashes, CrashPoint

PROGRAM = """
    import os
    import sys
    from pathlib import Path

    from firesteel.common import Configuration, Secret, Types, WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors import BatchSink, DeliveryGuarantee, PollingSource
    from firesteel.datastream.connectors.hybrid_source import HybridSource
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
    from firesteel.datastream.connectors.jdbc_source import JdbcSource
    from firesteel.datastream.connectors.redis import RedisSink, RedisSource

    mariadb, sqlite, redis, folder, crashes = sys.argv[1:]
    settings = {
        "firesteel.master": "local[2,4]",
        "firesteel.checkpoint.dir": f"{folder}/checkpoint",
        "firesteel.batch.max-records": "40",
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
        # In the middle of a batch, once for each of two numbers.
        marker = Path(f"{folder}/killed-{n}")
        if n in (50, 1040) and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return n

    class Files(BatchSink):
        guarantee = ONCE

        def write(self, batch):
            # A file's name can be there only once.
            Path(folder, f"batch-{batch.sink}-{batch.number}").write_text(" ".join(map(str, batch.values)))

    secret = Secret.from_environment("REDIS_PASSWORD")
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    stream = RedisSource(redis, ["numbers"], password=secret, bounded=True)
    later = JdbcSource.query("SELECT n FROM later", row, options(mariadb))
    table = HybridSource.builder(JdbcSource.table("numbers", row, options(mariadb), "n", 2)).add_source(later).build()
    numbers = env.from_source(PollingSource(polled, 0, bounded=True), NONE, "polled").uid("polled").union(
        env.from_source(stream, NONE, "stream").uid("stream").map(lambda entry: int(entry.fields["n"])),
        env.from_source(table, NONE, "table").uid("table").map(lambda row: row.n),
    ).map(killed_once)
    rows = numbers.map(lambda n: (n,), output_type=row)
    insert = "INSERT INTO results VALUES (?)"
    rows.sink_to(JdbcSink.exactly_once_sink(insert, row, options(mariadb))).uid("to-mariadb")
    rows.sink_to(JdbcSink.exactly_once_sink(insert, row, options(sqlite))).uid("to-sqlite")
    numbers.sink_to(RedisSink(redis, lambda n: ("RPUSH", "results", n), ONCE, password=secret)).uid("to-redis")
    numbers.sink_to(Files()).uid("to-files")
    env.execute("systems")
    print("finished")
"""


def test_workers_and_the_driver_are_killed_and_every_system_has_each_record_once(
    mariadb: MariaDb, redis: RedisDb, tmp_path: Path
) -> None:
    mariadb.execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
    mariadb.execute("CREATE TABLE results (n bigint)")
    mariadb.execute("INSERT INTO numbers VALUES " + ", ".join(f"({n})" for n in range(1000, 1100)))
    mariadb.execute("CREATE TABLE later (n bigint)")
    mariadb.execute("INSERT INTO later VALUES " + ", ".join(f"({n})" for n in range(3000, 3050)))
    redis.add("numbers", range(2000, 2100))
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute("CREATE TABLE results (n)")
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
    }
    with CommitCrashes(points) as crashes:
        arguments = [mariadb.url, f"jdbc:sqlite:{tmp_path / 'results.db'}", redis.url, str(tmp_path), crashes.folder]
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        done = run_script(program, *arguments, **environment)
        assert done.stdout == "finished\n", done.stderr
    assert len(list(tmp_path.glob("killed-*"))) == 2
    expected = Counter([*range(100), *range(1000, 1100), *range(2000, 2100), *range(3000, 3050)])
    with sqlite3.connect(tmp_path / "results.db") as connection:
        in_sqlite = [n for (n,) in connection.execute("SELECT n FROM results")]
    files = [path.read_text().split() for path in tmp_path.glob("batch-*")]
    assert Counter(n for (n,) in mariadb.execute("SELECT n FROM results")) == expected
    assert Counter(in_sqlite) == expected
    assert Counter(map(int, redis.client.lrange("results", 0, -1))) == expected
    assert Counter(int(n) for file in files for n in file) == expected
    assert mariadb.prepared() == []
    # No secret is kept with the job.
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    for secret in (mariadb.password, redis.password):
        assert [path for path in kept if secret.encode() in path.read_bytes()] == []
