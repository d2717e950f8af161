"""DataFrames as sources and Spark's writers as sinks: through failures, kills, and with what one is told."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sparkkit import eventually, spark_env

from firesteel.common import Instant, Row, Secret, Types, WatermarkStrategy
from firesteel.connectors.retrying import retried
from firesteel.connectors.spark import feeding, writing
from firesteel.connectors.spark.feeding import Feeder
from firesteel.connectors.spark.staging import Staged
from firesteel.connectors.spark.targets import SparkBatch
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.spark import SparkSink, SparkSource
from firesteel.errors import CheckpointError, FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CollectionSink, CommitCrashes, Crash, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
SMALL = {"firesteel.batch.max-records": "10"}
NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])
POINTS = (CrashPoint.LOGGED, CrashPoint.COMMITTED)
"""Before the batch can be seen, and when it was. Each single step in between is in ``unit/test_spark_targets``."""


@pytest.fixture(autouse=True)
def _no_log_of_derby(spark: SparkSession) -> None:
    """The database that comes with Spark writes one to the working directory."""
    assert spark._jvm is not None
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", os.devnull)


# Sources that end


def test_rows_have_the_columns_and_types_of_the_frame(spark: SparkSession) -> None:
    frame = spark.sql("""
        SELECT 1 AS i, 2L AS l, 1.5D AS d, CAST(2.50 AS DECIMAL(10, 2)) AS dec, 'é' AS s, true AS b, X'00FF' AS bin,
            DATE'2020-02-29' AS day, TIMESTAMP'1970-01-01 00:00:01.5Z' AS at, array(1, 2) AS a,
            map('k', 1) AS m, named_struct('x', 1, 'y', 'z') AS st, CAST(NULL AS STRING) AS nothing
    """)
    source = SparkSource.of(frame)
    (row,) = run_pipeline(lambda env: env.from_source(source, NONE, "frame"))
    assert row.as_dict() == {
        "i": 1,
        "l": 2,
        "d": 1.5,
        "dec": Decimal("2.50"),
        "s": "é",
        "b": True,
        "bin": b"\x00\xff",
        "day": datetime.date(2020, 2, 29),
        "at": Instant(1, 500_000_000),
        "a": [1, 2],
        "m": {"k": 1},
        "st": Row(x=1, y="z"),
        "nothing": None,
    }
    assert "at INSTANT" in str(source.get_produced_type())


def test_a_frame_is_computed_once_however_often_the_job_fails(spark: SparkSession) -> None:
    """The values are random: rows that were computed again would be others."""
    calls, crash = [], Crash(times=2)

    def frame(session: SparkSession) -> Any:
        calls.append(session)
        return session.range(0, 100, 1, 3).selectExpr("id", "uuid() AS name")

    def fragile(row: Row) -> Row:
        if row.id in (15, 70):
            crash.hit()
        return row

    def build(env: StreamExecutionEnvironment) -> Any:
        read = env.from_source(SparkSource.of(frame), NONE, "frame").map(fragile)
        return read, read.map(lambda row: row)

    one, other = run_pipeline(build, parallelism=2, config=SMALL, restarts=2)
    assert sorted(row.id for row in one) == list(range(100))
    assert sorted(map(str, one)) == sorted(map(str, other))
    assert len(calls) == 1


def test_partitions_keep_their_order_and_are_read_from_within(spark: SparkSession, monkeypatch: Any) -> None:
    monkeypatch.setattr(feeding, "ROW_GROUP_BYTES", 1 << 12)
    frame = spark.range(0, 3000, 1, 3).selectExpr("id", "repeat(uuid(), 10) AS text")
    config = {"firesteel.batch.max-records": "700"}
    rows = run_pipeline(lambda env: env.from_source(SparkSource.of(frame), NONE, "frame"), config=config)
    assert [row.id for row in rows] == list(range(3000))


def test_formats_and_declared_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("word,count\nto,2\nbe,3\n")
    declared = Types.ROW_NAMED(["count", "word"], [Types.INT(), Types.STRING()])
    csv = SparkSource.format(
        "csv", {"header": True}, str(tmp_path / "words.csv"), declared, schema="word STRING, count INT"
    )
    assert run_pipeline(lambda env: env.from_source(csv, NONE, "csv")) == [
        Row(count=2, word="to"),
        Row(count=3, word="be"),
    ]
    url = f"jdbc:derby:memory:t{os.getpid()};create=true"
    spark.range(5).write.jdbc(url, "numbers", mode="overwrite")
    database = SparkSource.format("jdbc", {"url": url, "dbtable": "numbers", "password": Secret("s3cret")})
    assert sorted(row.id for row in run_pipeline(lambda env: env.from_source(database, NONE, "jdbc"))) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_event_time_is_a_column(spark: SparkSession) -> None:
    frame = spark.sql("SELECT timestamp_millis(5000 + id) AS at, id + 7 AS ms FROM range(3)")

    class Times:
        def __call__(self, env: StreamExecutionEnvironment, column: str) -> Any:
            from firesteel.datastream import ProcessFunction

            class Stamp(ProcessFunction):
                def process_element(self, value: Any, ctx: Any) -> Any:
                    yield ctx.timestamp()

            return env.from_source(SparkSource.of(frame, event_time=column), NONE, "frame").process(Stamp())

    assert run_pipeline(lambda env: Times()(env, "at")) == [5000, 5001, 5002]
    assert run_pipeline(lambda env: Times()(env, "ms")) == [7, 8, 9]


# Sources that do not end


def counting(session: SparkSession, rows: int = 40) -> Any:
    """Numbers in order, so many in each micro-batch: ``rate`` by count instead of by the clock."""
    reader = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2)
    return reader.load().selectExpr("value AS n")


def all_once(numbers: list[int], rows: int = 40) -> bool:
    """Whether none is missing and none came twice. Of Spark's last micro-batch the job may have read a part only, and
    that is no beginning of the numbers: every second one lies in the same partition."""
    complete = len(numbers) // rows * rows
    return sorted(numbers)[:complete] == list(range(complete)) and len(set(numbers)) == len(numbers)


def test_a_streaming_frame_is_read_once_through_failures(spark: SparkSession) -> None:
    crash, found = Crash(times=2), CollectionSink()

    def fragile(row: Row) -> int:
        if row.n in (30, 90):
            crash.hit()
        return int(row.n)

    restart = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    env = memory_environment(2, config=SMALL | restart)
    env.from_source(SparkSource.stream(counting), NONE, "stream").map(fragile).sink_to(found)
    job = env.execute_async("stream")
    assert eventually(lambda: len(found.values) >= 200)
    job.cancel().result()
    assert all_once(found.values)
    assert not [query for query in spark.streams.active if query.isActive], "it ends with the job"


def test_a_savepoint_has_the_querys_own_offsets(spark: SparkSession, tmp_path: Path) -> None:
    found = CollectionSink()

    def start(**config: str) -> Any:
        env = memory_environment(2, config=SMALL | config)
        stream = env.from_source(SparkSource.stream(counting), NONE, "stream").uid("stream")
        stream.map(lambda row: int(row.n)).sink_to(found).uid("found")
        return env.execute_async("stream")

    job = start()
    assert eventually(lambda: len(found.values) >= 60)
    path = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    before = len(found.values)
    job = start(**{"execution.state-recovery.path": path})
    assert eventually(lambda: len(found.values) >= before + 100)
    job.cancel().result()
    # At least one whole micro-batch of Spark's lies behind the savepoint.
    assert all_once(found.values)


def test_a_streaming_frame_in_a_job_on_spark(spark: SparkSession) -> None:
    env = spark_env(2, {"firesteel.batch.max-records": "60"})
    stream = (
        env.from_source(SparkSource.stream(counting), NONE, "stream").map(lambda row: row.n % 2).key_by(lambda n: n)
    )
    found = stream.map(lambda n: 1).execute_and_collect("stream", limit=100)
    assert found == [1] * 100


def test_a_driver_killed_between_what_it_published_and_sparks_log(spark: SparkSession, tmp_path: Path) -> None:
    """Spark repeats the micro-batch, which is there already."""
    program = textwrap.dedent(f"""
        import os, sys, time
        sys.path[:0] = {sys.path!r}
        from pyspark.sql import SparkSession
        from firesteel.connectors.spark import staging
        from firesteel.connectors.spark.feeding import Feeder
        from test_spark_frames import counting
        publish = staging.Staged.publish
        def killed(self, number, draft):
            publish(self, number, draft)
            if number == 2:
                os.kill(os.getpid(), 9)
        staging.Staged.publish = killed
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        Feeder(counting(spark), staging.Staged({str(tmp_path)!r}), {{}}, "append", [])
        time.sleep(600)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert Staged(str(tmp_path)).end == 120
    commits = [int(path.name) for path in (tmp_path / "spark-query" / "commits").iterdir() if path.name.isdigit()]
    assert max(commits) == 1
    feeder = Feeder(counting(spark), Staged(str(tmp_path)), {}, "append", [])
    assert eventually(lambda: Staged(str(tmp_path)).end >= 240)
    feeder.stop()
    numbers = []
    staged = Staged(str(tmp_path))
    for batch in staged.batches:
        assert batch.end - batch.first == 40
        numbers += [row.n for file in batch.files for row in spark.read.parquet(file.path).collect()]
    assert sorted(numbers) == list(range(staged.end))


def test_a_query_that_runs_ahead_waits(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(feeding, "MOST_WAITING", 50)
    staged = Staged(str(tmp_path))
    feeder = Feeder(counting(spark), staged, {}, "append", [])
    other = Staged(str(tmp_path))

    def batches() -> int:
        other.look()
        return len(other.batches)

    # Two that nobody has removed and the newest one; then it waits.
    assert eventually(lambda: batches() == 3)
    other.forget(80)
    assert eventually(lambda: other.look() or other.end > 120)
    feeder.stop()


def test_a_query_that_fails_fails_the_job(spark: SparkSession) -> None:
    def frame(session: SparkSession) -> Any:
        return counting(session).selectExpr("CASE WHEN n > 50 THEN raise_error('no such luck') ELSE n END AS n")

    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: env.from_source(SparkSource.stream(frame), NONE, "stream"))
    assert "Spark could not go on with the query of a source: " in str(caught.value)
    assert "no such luck" in str(caught.value)
    assert not [query for query in spark.streams.active if query.isActive]


def test_what_was_put_aside_is_not_that_of_the_position(tmp_path: Path) -> None:
    enumerator = SparkSource.of(lambda spark: spark.range(5)).create_enumerator()
    enumerator.start(str(tmp_path))
    with pytest.raises(CheckpointError, match="has the rows from 0 to 0"):
        enumerator.latest(7, 10)
    (tmp_path / "batches" / "00000000000000000000").mkdir()
    with pytest.raises(CheckpointError, match=r"manifest\.json.* cannot be read"):
        Staged(str(tmp_path))
    (tmp_path / "batches" / "00000000000000000000" / "manifest.json").write_text(json.dumps({"format": 9}))
    with pytest.raises(CheckpointError, match="has format 9, of a newer Firesteel"):
        Staged(str(tmp_path))


# Sinks


def write(made: SparkSink, numbers: int = 40, crashes: CommitCrashes | None = None, restarts: int = 0) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(list(range(numbers))).map(lambda n: (n,), output_type=NUMBER).sink_to(made).name("to spark")

    run_pipeline(build, parallelism=2, config=SMALL | (crashes.config if crashes else {}), restarts=restarts)


@pytest.mark.parametrize("point", POINTS)
def test_files_exactly_once_at_each_crash(spark: SparkSession, tmp_path: Path, point: CrashPoint) -> None:
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        write(SparkSink.files("parquet", str(tmp_path / "out")), crashes=crashes, restarts=1)
    found = [row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert Counter(found) == Counter(range(40))


def test_a_crash_while_files_are_moved(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/out"
    made = SparkSink.files("json", path, partition_by=["half"])
    target, batch = made._target, SparkBatch("fs-0123456789abcdef", 5)
    frame = spark.range(0, 20, 1, 2).selectExpr("id AS n", "id % 2 AS half")
    assert target is not None
    from firesteel.connectors.spark import targets

    moved = []
    move = targets._Hadoop.move

    def breaks(self: Any, here: str, there: str) -> None:
        if there.endswith(".json"):
            if len(moved) == 2:
                raise OSError("no more")
            moved.append(there)
        move(self, here, there)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(targets._Hadoop, "move", breaks)
        with pytest.raises(Exception, match="no more"):
            target.write(frame, batch)
    assert len(spark.read.json(path).collect()) < 20
    # What comes again is not computed again: the files that are there count.
    target.write(spark.range(0).selectExpr("id AS n", "id % 2 AS half"), batch)
    assert sorted(row.n for row in spark.read.json(path).collect()) == list(range(20))
    target.write(frame, batch)
    assert sorted((row.n, row.half) for row in spark.read.json(path).collect()) == [(n, n % 2) for n in range(20)]
    assert [name for name in os.listdir(tmp_path / "out" / "_firesteel") if not name.startswith(".")] == [batch.sink]


def test_a_table_exactly_once_through_a_crash(spark: SparkSession) -> None:
    url = f"jdbc:derby:memory:sink{os.getpid()};create=true"
    spark.createDataFrame([], "n BIGINT").write.jdbc(url, "numbers")
    with CommitCrashes({CrashPoint.COMMITTED: ["pass", "error"]}) as crashes:
        write(SparkSink.jdbc(url, "numbers", properties={"user": "app", "password": "s3cret"}), 40, crashes, 1)
    assert Counter(row.n for row in spark.read.jdbc(url, "numbers").collect()) == Counter(range(40))
    assert [row.BATCH for row in spark.read.jdbc(url, "firesteel_batches").collect()] != []


def test_any_writer_by_the_number_of_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[SparkBatch] = []

    def to_text(frame: Any, batch: SparkBatch) -> None:
        seen.append(batch)
        frame.selectExpr("CAST(n AS STRING)").write.mode("overwrite").text(f"{tmp_path}/{batch.sink}/{batch.number}")

    with CommitCrashes({CrashPoint.COMMITTED: ["pass", "error"]}) as crashes:
        write(SparkSink.batches(to_text), crashes=crashes, restarts=1)
    assert len(seen) > len(set(seen)), "a batch came again"
    found = [int(line) for path in tmp_path.glob("*/*/*.txt") for line in path.read_text().split()]
    assert Counter(found) == Counter(range(40))


# What one is told


def failure(build: Any) -> JobExecutionError:
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(build, restarts=3)
    return caught.value


def test_what_cannot_be_read_is_told_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    source = SparkSource.format("parquet", path=str(tmp_path / "none"))
    error = failure(lambda env: env.from_source(source, NONE, "frame"))
    assert error.kind is FailureKind.PERMANENT
    assert "Spark could not make the DataFrame of a source: [PATH_NOT_FOUND] Path does not exist: " in str(error)
    missing = SparkSource.of(spark.range(3), Types.ROW_NAMED(["no"], [Types.LONG()]))
    error = failure(lambda env: env.from_source(missing, NONE, "frame"))
    assert "The DataFrame has no column 'no'. It has id." in str(error)
    url = f"jdbc:derby:{tmp_path}/none;password=hunter2"
    refused = SparkSource.format("jdbc", {"url": Secret(url), "dbtable": "t", "password": "s3cret-one"})
    error = failure(lambda env: env.from_source(refused, NONE, "frame"))
    assert not re.search("hunter2|s3cret-one", f"{error} {error!r} {error.cause_text}")


def test_a_table_that_is_missing_and_a_column_that_is(spark: SparkSession) -> None:
    url = f"jdbc:derby:memory:missing{os.getpid()};create=true"

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection([1]).map(lambda n: (n,), output_type=NUMBER)
        stream.sink_to(SparkSink.jdbc(url, "nowhere", properties={"password": "s3cret-one"}))

    error = failure(build)
    assert error.kind is FailureKind.PERMANENT
    assert "Spark could not find the table nowhere of " in str(error)
    assert "s3cret-one" not in f"{error} {error.cause_text}"
    spark.sql("SELECT 1 AS m").write.jdbc(url, "nowhere")
    assert "has no column 'n'. It has m" in str(failure(build))


def derby(spark: SparkSession, name: str, *statements: str, user: str = "") -> tuple[str, Any]:
    """A database in memory: its address, and a connection."""
    assert spark._jvm is not None
    url = f"jdbc:derby:memory:{name}{os.getpid()}"
    connection = spark._jvm.java.sql.DriverManager.getConnection(f"{url};create=true;{user}")
    for statement in statements:
        connection.createStatement().execute(statement)
    return url, connection


def test_a_login_that_is_refused_ends_the_job(spark: SparkSession) -> None:
    user = "CALL SYSCS_UTIL.SYSCS_CREATE_USER('ada', 'swordfish')"
    url, connection = derby(spark, "login", user, "CREATE TABLE numbers (n BIGINT)", user="user=ada")
    connection.close()
    assert spark._jvm is not None
    with pytest.raises(Exception, match="shutdown"):
        # From its next start on it asks for the password.
        spark._jvm.java.sql.DriverManager.getConnection(f"{url};shutdown=true;user=ada;password=swordfish")

    def to_derby(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection([1]).map(lambda n: (n,), output_type=NUMBER)
        stream.sink_to(SparkSink.jdbc(url, "numbers", properties={"user": "ada", "password": "hunter2"}))

    source = SparkSource.format("jdbc", {"url": f"{url};user=ada;password=hunter2", "dbtable": "numbers"})
    for build in (to_derby, lambda env: env.from_source(source, NONE, "jdbc")):
        error = failure(build)
        assert error.kind is FailureKind.PERMANENT
        assert "Invalid authentication (SQLSTATE 08004). Check the user name and the password." in str(error)
        assert not re.search("hunter2", f"{error} {error!r} {error.cause_text}")


def test_a_value_that_is_too_long_ends_the_job(spark: SparkSession) -> None:
    url, connection = derby(spark, "narrow", "CREATE TABLE words (word VARCHAR(3))")
    connection.close()
    word = Types.ROW_NAMED(["word"], [Types.STRING()])

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection(["sesame"]).map(lambda word: (word,), output_type=word)
        stream.sink_to(SparkSink.jdbc(url, "words"))

    error = failure(build)
    assert error.kind is FailureKind.PERMANENT
    assert f"Spark could not write to words of {url}: A truncation error was encountered" in str(error)
    assert "(SQLSTATE 22001). Check that the column's type and the declared type of the field agree." in str(error)


def test_a_table_that_is_locked_is_waited_for(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = "CALL SYSCS_UTIL.SYSCS_SET_DATABASE_PROPERTY('derby.locks.waitTimeout', '0')"
    url, connection = derby(spark, "locked", wait, "CREATE TABLE numbers (n BIGINT)")
    connection.setAutoCommit(False)
    connection.createStatement().execute("LOCK TABLE numbers IN EXCLUSIVE MODE")

    def unlock(seconds: float) -> None:
        connection.rollback()
        connection.close()

    monkeypatch.setattr(writing, "retried", lambda *given: retried(*given, sleep=unlock))
    write(SparkSink.jdbc(url, "numbers"), 20)
    assert Counter(row.N for row in spark.read.jdbc(url, "numbers").collect()) == Counter(range(20))


def test_a_value_that_does_not_fit_is_refused_before_the_batch_is_logged(spark: SparkSession, tmp_path: Path) -> None:
    made = SparkSink.files("parquet", str(tmp_path / "out"), NUMBER)
    error = failure(lambda env: env.from_collection([(1,), ("two",)]).sink_to(made) and None)
    assert error.kind is FailureKind.PERMANENT
    assert "The column 'n' is of the type int64 and cannot hold 'two'" in str(error)
    assert "It is in the record ['two']" in str(error)
    error = failure(lambda env: env.from_collection([1]).sink_to(SparkSink.files("parquet", "/tmp/x")) and None)
    assert "A Spark writer needs the names and types of columns" in str(error)


def test_nonsense_is_refused_when_the_program_is_built(spark: SparkSession) -> None:
    with pytest.raises(ProgramError, match="is a streaming one"):
        SparkSource.of(counting(spark))
    with pytest.raises(ProgramError, match="is a plain one"):
        SparkSource.stream(spark.range(3))
    with pytest.raises(ProgramError, match="A source takes a DataFrame"):
        SparkSource.of("table")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="The formats of files are"):
        SparkSink.files("delta", "/tmp/x")
    with pytest.raises(ProgramError, match="table must be the name"):
        SparkSink.jdbc("jdbc:derby:x", "t; DROP TABLE t")
    assert "is a plain one" in str(
        failure(lambda env: env.from_source(SparkSource.stream(lambda s: s.range(3)), NONE, "x"))
    )


def test_the_program_of_the_page_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    names: dict[str, Any] = {"__name__": "docs.spark"}
    exec(code, names)
    found = spark.read.parquet(f"{names['folder']}/totals").groupBy("shop").max("amount").collect()
    assert sorted(row[0] for row in found) == [0, 1, 2]
    assert sum(row[1] for row in found) == sum(range(1000))
