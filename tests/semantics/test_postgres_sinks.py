"""Sinks into a real PostgreSQL: what is in the table, through crashes too, and what one is told when it fails."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from kit import BATCH, STREAMING
from postgreskit import Database, PostgresServer

from firesteel.common import Instant, Row, Types
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.jdbc import session, writing
from firesteel.connectors.postgresql.two_phase import PreparedTransaction, TransactionCommitter, TransactionWriter
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
INSERT = "INSERT INTO counts (word, n) VALUES (?, ?)"
SMALL = {"firesteel.batch.max-records": "10"}
WORDS = [("abc"[n % 3], n) for n in range(40)]


def options(database: Database, **changes: str) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(changes.get("url", database.url))
    return builder.with_user_name(database.user).with_password(changes.get("password", database.password)).build()


def portions(size: int = 5000, retries: int = 0) -> JdbcExecutionOptions:
    return JdbcExecutionOptions.builder().with_batch_size(size).with_max_retries(retries).build()


def rows(database: Database, table: str = "counts") -> list[tuple[Any, ...]]:
    return database.execute(f"SELECT * FROM {table} ORDER BY 1, 2")


@pytest.fixture
def counts(database: Database) -> Database:
    database.execute("CREATE TABLE counts (word text, n int)")
    return database


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PAUSE", 0.01)


FLAVOURS = ["sink", "exactly_once_sink"]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
def test_every_record_is_in_the_table(
    counts: Database, flavour: str, mode: RuntimeExecutionMode, parallelism: int
) -> None:
    sink = getattr(JdbcSink, flavour)(INSERT, PAIR, options(counts), portions(3))

    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(WORDS).add_sink(sink)

    run_pipeline(build, parallelism=parallelism, mode=mode, config=SMALL)
    assert rows(counts) == sorted(WORDS)
    assert counts.prepared() == []


def test_values_of_every_type(database: Database) -> None:
    columns = {
        "a": (Types.LONG(), "bigint", 2**40, 2**40),
        "b": (Types.DOUBLE(), "float8", 1.5, 1.5),
        "c": (Types.BOOLEAN(), "bool", True, True),
        "d": (Types.BIG_DEC(), "numeric", Decimal("12.50"), Decimal("12.50")),
        "e": (Types.SQL_DATE(), "date", datetime.date(2020, 2, 29), datetime.date(2020, 2, 29)),
        "f": (Types.SQL_TIMESTAMP(), "timestamp", datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1)),
        "g": (Types.INSTANT(), "timestamptz", Instant(1, 0), datetime.datetime.fromtimestamp(1, datetime.UTC)),
        "h": (Types.PRIMITIVE_ARRAY(Types.BYTE()), "bytea", b"\x00\xff", b"\x00\xff"),
        "i": (Types.LIST(Types.INT()), "int[]", [1, 2], [1, 2]),
        "j": (Types.MAP(Types.STRING(), Types.INT()), "jsonb", {"x": 1}, {"x": 1}),
        "k": (Types.STRING(), "text", None, None),
        "l": (Types.INT(), "smallint", 7, 7),
        "m": (Types.STRING(), "text", "100% '\"\\ ?", "100% '\"\\ ?"),
    }
    database.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind[1]}' for name, kind in columns.items())})")
    declared = Types.ROW_NAMED(list(columns), [kind[0] for kind in columns.values()])
    sql = f"INSERT INTO t VALUES ({', '.join('?' for _ in columns)})"
    record = Row(**{name: kind[2] for name, kind in columns.items()})
    run_pipeline(lambda env: _end(env.from_collection([record]), JdbcSink.sink(sql, declared, options(database))))
    assert rows(database, "t") == [tuple(kind[3] for kind in columns.values())]


def _end(stream: Any, sink: JdbcSink, name: str = "to postgres") -> None:
    stream.sink_to(sink).name(name)


# Crashes


def crash_at(point: CrashPoint) -> CommitCrashes:
    # The second time, so that there is a batch before it and one after it.
    return CommitCrashes({point: ["pass", "error"]})


@pytest.mark.parametrize("point", CrashPoint)
def test_exactly_once_through_a_crash(counts: Database, point: CrashPoint, parallelism: int) -> None:
    """The key would refuse a row that comes twice, and rows of a lost transaction would make its repetition wait."""
    counts.execute("ALTER TABLE counts ADD PRIMARY KEY (n)")
    counts.execute("CREATE TABLE more (word text, n int PRIMARY KEY)")
    sinks = [JdbcSink.exactly_once_sink(INSERT, PAIR, options(counts), portions(3))]
    sinks.append(JdbcSink.exactly_once_sink("INSERT INTO more VALUES (?, ?)", PAIR, options(counts), portions(3)))

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection(WORDS)
        for sink in sinks:
            stream.sink_to(sink)

    with crash_at(point) as crashes:
        run_pipeline(build, parallelism=parallelism, config=SMALL | crashes.config, restarts=1)
        assert crashes.reached(point) > 2
    assert rows(counts) == sorted(WORDS)
    assert rows(counts, "more") == sorted(WORDS)
    assert counts.prepared() == []


@pytest.mark.parametrize("point", CrashPoint)
def test_an_upsert_ends_up_right_through_a_crash(counts: Database, point: CrashPoint) -> None:
    counts.execute("ALTER TABLE counts ADD PRIMARY KEY (word)")
    sink = JdbcSink.upsert_sink("counts", ["word"], PAIR, options(counts))

    def build(env: StreamExecutionEnvironment) -> None:
        pairs = env.from_collection(WORDS).map(lambda pair: (pair[0], 1))
        pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(sink)

    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
    assert rows(counts) == [("a", 14), ("b", 13), ("c", 13)]


def test_nothing_is_seen_of_a_batch_that_never_ended(counts: Database) -> None:
    sink = JdbcSink.exactly_once_sink(INSERT, PAIR, options(counts), portions(1))

    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(WORDS).sink_to(sink)

    with crash_at(CrashPoint.PREPARED) as crashes, pytest.raises(JobExecutionError, match="failed on purpose"):
        run_pipeline(build, config=SMALL | crashes.config)
    assert rows(counts) == sorted(WORDS[:10])
    assert counts.prepared() == [], "a job that ends leaves nothing behind"


# The writer and the committer, step by step


class At(SinkFunction.Context):
    """What a writer is told in a batch that began at some time."""

    def __init__(self, time: int) -> None:
        self._time = time

    def current_processing_time(self) -> int:
        return self._time

    def current_watermark(self) -> int:
        return 0

    def timestamp(self) -> int | None:
        return None


IDENTITY = SinkIdentity("job", "job-1", "sink-1")


class Bench:
    """Writers and a committer of one sink."""

    def __init__(self, database: Database, identity: SinkIdentity = IDENTITY) -> None:
        self._sink = JdbcSink.exactly_once_sink(INSERT, PAIR, options(database), portions())
        self._identity = identity
        self._open: list[Any] = []
        committer = self._sink.create_committer(CommitterContext(identity))
        assert isinstance(committer, TransactionCommitter)
        self.committer = committer
        self._open.append(committer)

    def writer(self, subtask: int = 0) -> TransactionWriter:
        writer = self._sink.create_writer(WriterContext(self._identity, subtask, 2))
        assert isinstance(writer, TransactionWriter)
        self._open.append(writer)
        return writer

    def prepare(self, time: int, *records: Any, writer: TransactionWriter | None = None) -> list[PreparedTransaction]:
        writer = writer or self.writer()
        for record in records:
            writer.write(record, At(time))
        writer.flush(False)
        return writer.prepare_commit()

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def bench(counts: Database) -> Iterator[Bench]:
    counts.execute("ALTER TABLE counts ADD PRIMARY KEY (n)")
    made = Bench(counts)
    yield made
    made.close()


def test_rows_appear_with_the_commit_and_a_second_one_changes_nothing(bench: Bench, counts: Database) -> None:
    prepared = bench.prepare(1000, ("a", 1), ("b", 2))
    assert rows(counts) == []
    assert counts.prepared() == [one.gid for one in prepared]
    bench.committer.commit(prepared)
    bench.committer.commit(prepared)
    assert rows(counts) == [("a", 1), ("b", 2)]
    assert counts.prepared() == []


def test_a_batch_without_records_prepares_nothing(bench: Bench) -> None:
    assert bench.prepare(1000) == []


def test_a_second_try_of_a_task_takes_over_what_the_first_one_prepared(bench: Bench, counts: Database) -> None:
    first = bench.prepare(1000, ("a", 1))
    # With a transaction of its own it would now wait for the lock on the key for ever.
    second = bench.prepare(1000, ("a", 1))
    assert second == first
    bench.committer.commit(second)
    bench.committer.commit(first)
    assert rows(counts) == [("a", 1)]


def test_subtasks_and_batches_do_not_take_over_from_each_other(bench: Bench, counts: Database) -> None:
    one, other = bench.writer(0), bench.writer(1)
    prepared = bench.prepare(1000, ("a", 1), writer=one) + bench.prepare(1000, ("a", 2), writer=other)
    bench.committer.commit(prepared)
    # Within the same millisecond, and not yet committed when it begins.
    prepared = bench.prepare(1000, ("a", 3), writer=one) + bench.prepare(1000, ("a", 4), writer=one)
    prepared += bench.prepare(1001, ("a", 5), writer=one)
    bench.committer.commit(prepared)
    assert rows(counts) == [("a", n) for n in range(1, 6)]


def test_a_try_that_was_thought_dead_and_prepares_first(bench: Bench, counts: Database) -> None:
    slow = bench.writer()
    slow.write(("a", 1), At(1000))
    fast = bench.prepare(1000, ("a", 2))
    slow.flush(False)
    assert slow.prepare_commit() == fast
    bench.committer.commit(fast)
    assert rows(counts) == [("a", 2)]


def test_a_later_transaction_of_the_same_name_is_another_one(bench: Bench, counts: Database) -> None:
    committed = bench.prepare(1000, ("a", 1))
    bench.committer.commit(committed)
    left = bench.prepare(1000, ("a", 2))
    assert [one.gid for one in left] == [one.gid for one in committed]
    bench.committer.recover_and_commit(committed)
    assert rows(counts) == [("a", 1)], "that the log is read again must not commit what is not in it"
    bench.committer.recover([])
    assert counts.prepared() == []


def test_recovery_rolls_back_what_is_not_to_be_committed(bench: Bench, counts: Database) -> None:
    other = Bench(counts, SinkIdentity("job", "job-2", "sink-1"))
    try:
        foreign = other.prepare(1000, ("x", 100))
        pending, lost = bench.prepare(1000, ("a", 1)), bench.prepare(2000, ("a", 2))
        bench.committer.recover(pending)
        assert counts.prepared() == sorted(one.gid for one in pending + foreign)
        bench.committer.recover_and_commit(pending)
        assert rows(counts) == [("a", 1)]
        bench.committer.abort(lost)
        other.committer.abort(foreign)
        assert counts.prepared() == []
    finally:
        other.close()


def test_what_somebody_rolled_back_is_not_taken_for_committed(bench: Bench, counts: Database) -> None:
    prepared = bench.prepare(1000, ("a", 1))
    counts.execute(f"ROLLBACK PREPARED '{prepared[0].gid}'")
    with pytest.raises(ConnectorError, match=r"was not committed and is gone \(it is aborted\)") as caught:
        bench.committer.commit(prepared)
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_commit_survives_a_lost_connection(bench: Bench, counts: Database) -> None:
    prepared = bench.prepare(1000, ("a", 1))
    bench.committer.recover(prepared)
    disconnect(counts)
    bench.committer.commit(prepared)
    assert rows(counts) == [("a", 1)]


def disconnect(database: Database) -> None:
    """Ends all connections to the database but the one that does it, as a restart of the server would."""
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_connection_lost_in_the_middle_of_a_transaction_loses_all_of_it(bench: Bench, counts: Database) -> None:
    writer = bench.writer()
    writer.write(("a", 1), At(1000))
    writer.flush(False)
    disconnect(counts)
    writer.write(("a", 2), At(1000))
    with pytest.raises(ConnectorError, match="terminating connection") as caught:
        writer.flush(False)
    assert caught.value.kind is FailureKind.PASSING
    # Nobody should go on after that; whoever does must not get half of it committed.
    with pytest.raises(ConnectorError, match="the batch's transaction with it"):
        writer.flush(False)
    with pytest.raises(ConnectorError, match="the batch's transaction with it"):
        writer.prepare_commit()
    assert rows(counts) == []
    assert counts.prepared() == []


@pytest.mark.parametrize("retries", [0, 1])
def test_a_portion_is_sent_again_after_a_lost_connection(counts: Database, retries: int) -> None:
    writer = JdbcSink.sink(INSERT, PAIR, options(counts), portions(1, retries)).create_writer(WriterContext())
    writer.write(("a", 1), At(0))
    disconnect(counts)
    if retries:
        writer.write(("a", 2), At(0))
        assert rows(counts) == [("a", 1), ("a", 2)]
    else:
        with pytest.raises(ConnectorError, match=r"terminating connection|closed"):
            writer.write(("a", 2), At(0))
    writer.close()


def test_rows_wait_no_longer_than_the_interval(counts: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [50.0]
    monkeypatch.setattr(writing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    execution = JdbcExecutionOptions.builder().with_batch_interval_ms(1000).build()
    writer = JdbcSink.sink(INSERT, PAIR, options(counts), execution).create_writer(WriterContext())

    writer.write(("a", 1), At(0))
    assert rows(counts) == []
    now[0] += 1
    writer.write(("a", 2), At(0))
    assert len(rows(counts)) == 2
    writer.close()


# What one is told


def failure(
    database: Database,
    records: list[Any],
    flavour: str = "sink",
    declared: RowTypeInfo = PAIR,
    sql: str = INSERT,
    **changes: str,
) -> JobExecutionError:
    sink = getattr(JdbcSink, flavour)(sql, declared, options(database, **changes), portions())
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection(records), sink, "orders"))
    assert caught.value.operator == "orders"
    return caught.value


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_unreachable_server(database: Database, flavour: str) -> None:
    error = failure(database, [("a", 1)], flavour, url="jdbc:postgresql://127.0.0.1:1/shop")
    assert error.kind is FailureKind.PASSING
    text = str(error)
    assert "PostgreSQL at 127.0.0.1:1/shop cannot be reached" in text
    assert "Check that it runs there." in text


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_such_table(database: Database, flavour: str) -> None:
    error = failure(database, [("a", 1)], flavour)
    assert error.kind is FailureKind.PERMANENT
    text = str(error)
    assert 'relation "counts" does not exist' in text
    assert "Create the table first" in text
    assert "INSERT INTO counts" in text


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_value_that_the_column_refuses(database: Database, flavour: str) -> None:
    database.execute("CREATE TABLE counts (word text, n smallint)")
    error = failure(database, [("a", 1), ("b", 70_000), ("c", 3)], flavour)
    assert "smallint out of range" in str(error)
    assert "The element is ('b', 70000)." in str(error)
    assert rows(database) == []


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_value_that_the_driver_refuses(counts: Database, flavour: str) -> None:
    error = failure(counts, [("a", 1), ("b\0", 2), ("c", 3)], flavour)
    assert error.kind is FailureKind.PERMANENT
    assert "refused the statement" in str(error)
    assert "cannot contain NUL (0x00) bytes. The element is ('b\\x00', 2)." in str(error)
    assert "cannot be reached" not in str(error)
    assert rows(counts) == []


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_column_of_another_type(database: Database, flavour: str) -> None:
    database.execute("CREATE TABLE counts (word date, n int)")
    text = str(failure(database, [("a", 1)], flavour))
    assert 'invalid input syntax for type date: "a"' in text
    assert "The element is ('a', 1)." in text
    assert "declared type of the field" in text


def test_a_record_of_another_type_than_declared(counts: Database) -> None:
    error = failure(counts, [("a", 1), ("b", "two")])
    assert "field 'n' of ROW<word STRING, n INT>: expected INT, got str 'two'" in str(error)
    assert error.element == "('b', 'two')"


def test_a_row_that_is_there_already(counts: Database) -> None:
    counts.execute("ALTER TABLE counts ADD PRIMARY KEY (n)")
    error = failure(counts, [("a", 1), ("b", 1)])
    assert error.kind is FailureKind.PERMANENT
    text = str(error)
    assert "duplicate key" in text
    assert "constraints do not allow it" in text


@pytest.mark.parametrize(("allowed", "text"), [(0, "prepared transactions are disabled"), (1, "maximum number")])
def test_a_server_that_does_not_allow_prepared_transactions(
    postgres_server: PostgresServer, allowed: int, text: str
) -> None:
    with PostgresServer(max_prepared_transactions=allowed) as server:
        database = Database(server, "postgres")
        database.execute("CREATE TABLE counts (word text, n int)")
        sink = JdbcSink.exactly_once_sink(INSERT, PAIR, options(database), portions())
        with pytest.raises(JobExecutionError, match=text) as caught:
            run_pipeline(lambda env: _end(env.from_collection(WORDS), sink), parallelism=2)
        assert "max_prepared_transactions in postgresql.conf to more than all subtasks" in str(caught.value)
        assert rows(database) == []
        assert database.prepared() == []


def test_an_upsert_without_a_key_in_the_table(counts: Database) -> None:
    sink = JdbcSink.upsert_sink("counts", ["word"], PAIR, options(counts))
    with pytest.raises(JobExecutionError, match="needs a unique or primary key on exactly these columns"):
        run_pipeline(lambda env: _end(env.from_collection([("a", 1)]), sink))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_password_is_told_to_nobody(database: Database, flavour: str, caplog: pytest.LogCaptureFixture) -> None:
    secret = "wr0ng-but-s3cret"
    with caplog.at_level(logging.DEBUG):
        error = failure(database, [("a", 1)], flavour, password=secret)
    assert error.kind is FailureKind.PERMANENT
    assert "password authentication failed" in str(error)
    assert "Check the user name and the password." in str(error)
    assert "The element is" not in str(error), "it is not about a record"
    shown = [str(error), repr(error), error.cause_text or "", repr(error.__cause__), *caplog.messages]
    assert [text for text in shown if secret in text] == []
