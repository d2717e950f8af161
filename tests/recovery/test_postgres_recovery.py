"""PostgreSQL on Spark, from a table into another one by two-phase commit: workers are killed while they process records
and inside the protocol, and so is the driver."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from postgreskit import Database
from sparkkit import REPOSITORY, run_script, write_script

from firesteel.testing import CommitCrashes, CrashPoint

PROGRAM = """
    import os
    import sys
    import time
    from pathlib import Path

    import psycopg

    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
    from firesteel.datastream.connectors.jdbc_source import JdbcSource

    url, checkpoint, crashes = sys.argv[1:]
    settings = {
        # As a cluster does it: a task that failed is repeated within its batch.
        "firesteel.master": "local[2,4]",
        "firesteel.checkpoint.dir": checkpoint,
        "firesteel.batch.max-records": "40",
        "firesteel.testing.crash-points": crashes,
    }

    def killed_once(sums):
        # In the middle of a batch, behind state that it has changed: once for each of two keys.
        marker = Path(f"{checkpoint}-killed-{sums[0]}")
        if sums[0] < 2 and sums[1] > 15 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return sums

    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    declared = Types.ROW_NAMED(["n", "total"], [Types.LONG(), Types.LONG()])
    row, NONE = Types.ROW_NAMED(["n"], [Types.LONG()]), WatermarkStrategy.no_watermarks()
    table = env.from_source(JdbcSource.table("numbers", row, options, "n"), NONE, "numbers")
    grown = JdbcSource.growing_table("grown", "n", row, options, interval=0.1)
    numbers = table.union(env.from_source(grown, NONE, "grown")).map(lambda row: row.n)
    sums = numbers.map(lambda n: (n % 5, n, n)).key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
    rows = sums.map(killed_once).map(lambda r: (r[1], r[2]), output_type=declared)
    rows.add_sink(JdbcSink.exactly_once_sink("INSERT INTO sums VALUES (?, ?)", declared, options))
    latest = Types.ROW_NAMED(["k", "total"], [Types.LONG(), Types.LONG()])
    newest = sums.map(lambda r: (r[0], r[2]), output_type=latest)
    newest.add_sink(JdbcSink.upsert_sink("latest", ["k"], latest, options))
    client = env.execute_async("sums")
    result = client.get_job_execution_result()
    with psycopg.connect(url.removeprefix("jdbc:"), autocommit=True) as connection:
        while not result.done() and connection.execute("SELECT count(*) FROM sums").fetchone()[0] < 260:
            time.sleep(0.05)
    if not result.done():
        # A table that grows does not end.
        client.stop_with_savepoint(True, f"{checkpoint}-savepoint").result()
    result.result()
    print("finished")
"""


def test_workers_and_the_driver_are_killed_within_a_batch_and_between_prepare_and_commit(
    database: Database, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE sums (n bigint PRIMARY KEY, total bigint)")
    database.execute("CREATE TABLE latest (k bigint PRIMARY KEY, total bigint)")
    database.execute("CREATE TABLE grown (n bigint PRIMARY KEY)")
    database.execute("INSERT INTO grown SELECT generate_series(1001, 1060)")
    database.execute("CREATE TABLE numbers AS SELECT generate_series(1, 160)::bigint AS n")
    program = write_script(tmp_path, PROGRAM)
    points = {
        # A worker, after it has prepared and before anybody knows: Spark repeats the task, which must not wait for it.
        CrashPoint.PREPARED: ["pass", "pass", "pass", "kill"],
        # The driver, when a batch is in Firesteel's log and not in Spark's: Spark repeats the batch.
        CrashPoint.LOGGED: ["pass", "kill"],
        # The next driver, when the batch can never come again and nothing of it is committed.
        CrashPoint.BEFORE_COMMIT: ["pass", "pass", "kill"],
    }
    environment = {
        "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}",
        "PGUSER": database.user,
        "PGPASSWORD": database.password,
    }
    with CommitCrashes(points) as crashes:
        arguments = [database.url, str(tmp_path / "checkpoint"), crashes.folder]
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        assert len(list(tmp_path.glob("checkpoint-killed-*"))) == 2
        assert crashes.reached(CrashPoint.PREPARED) > 4, "the task that was killed came again"
        assert crashes.reached(CrashPoint.LOGGED) == 2
        # Rows that the table did not have when the job began do not count, whoever goes on with it.
        database.execute("INSERT INTO numbers SELECT generate_series(-40, 0) UNION SELECT generate_series(161, 200)")
        # Those of a table that grows do.
        database.execute("INSERT INTO grown SELECT generate_series(1061, 1080)")
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        assert crashes.reached(CrashPoint.BEFORE_COMMIT) == 3
        assert database.prepared() != [], "what the third batch has prepared waits"
        database.execute("INSERT INTO grown SELECT generate_series(1081, 1100)")
        done = run_script(program, *arguments, **environment)
        assert done.stdout == "finished\n", done.stderr
    # Rows of the two tables come in an order of their own, those of each table in theirs.
    numbers = [*range(1, 161), *range(1001, 1101)]
    found = dict(database.execute("SELECT n, total FROM sums"))
    assert sorted(found) == numbers
    for key in range(5):
        ns = [n for n in numbers if n % 5 == key]
        totals = sorted(found[n] for n in ns)
        assert sorted(later - earlier for earlier, later in itertools.pairwise([0, *totals])) == ns, "each counts once"
        assert database.execute(f"SELECT total FROM latest WHERE k = {key}") == [(sum(ns),)]
    assert database.prepared() == []
    assert [file.name for file in (tmp_path / "checkpoint" / "firesteel-commits").iterdir()] == ["job"]
