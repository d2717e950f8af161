"""Exactly once into a database where two subtasks, or somebody else, change the same row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from databasekit import options, portions

from firesteel.common import Types
from firesteel.connectors.jdbc import session
from firesteel.connectors.jdbc.writing import TransactionWriting
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.jdbc import JdbcSink
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError
from firesteel.testing import run_pipeline

pytestmark = pytest.mark.usefixtures("no_waiting")

CHANGE = Types.ROW_NAMED(["n", "word"], [Types.INT(), Types.STRING()])
UPDATE = "UPDATE totals SET n = n + ? WHERE word = ?"
RETRIES = 2


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # MariaDB takes it for none at all, PostgreSQL gets a millisecond.
    monkeypatch.setattr(session, "LOCK_SECONDS", 0.0)


@pytest.fixture(params=["database", "mariadb"])
def totals(request: pytest.FixtureRequest) -> Any:
    db = request.getfixturevalue(request.param)
    db.execute("CREATE TABLE totals (word varchar(10) PRIMARY KEY, n int)")
    db.execute("INSERT INTO totals VALUES ('a', 0), ('b', 0)")
    return db


class At(SinkFunction.Context):
    """A record of a batch."""

    def current_processing_time(self) -> int:
        return 1000

    def current_watermark(self) -> int:
        return 0

    def timestamp(self) -> int | None:
        return None


class Bench:
    """Writers of a sink, and how often they have sent rows."""

    def __init__(self, db: Any) -> None:
        self._sink = JdbcSink.exactly_once_sink(UPDATE, CHANGE, options(db), portions(retries=RETRIES))
        self._identity = SinkIdentity("job", "job-1", "sink-1")
        committer = self._sink.create_committer(CommitterContext(self._identity))
        assert committer is not None
        self.committer = committer
        self.sent = 0
        self._open: list[TransactionWriting] = []

    def writer(self, subtask: int, *records: Any, after: Callable[[], None] = lambda: None) -> TransactionWriting:
        """``after`` is called when its rows were sent, whether that went well or not."""
        writer = self._sink.create_writer(WriterContext(self._identity, subtask, 2))
        assert isinstance(writer, TransactionWriting)
        self._open.append(writer)
        together = writer._together

        def counted() -> None:
            self.sent += 1
            try:
                together()
            finally:
                after()

        writer._together = counted  # type: ignore[method-assign]
        for record in records:
            writer.write(record, At())
        return writer

    def close(self) -> None:
        for writer in self._open:
            writer.close()
        self.committer.recover([])
        self.committer.close()


@pytest.fixture
def bench(totals: Any) -> Iterator[Bench]:
    made = Bench(totals)
    yield made
    made.close()


@pytest.fixture
def holder(totals: Any) -> Iterator[ExitStack]:
    """Somebody else's transaction that has changed a row, until it is closed."""
    given = options(totals)
    session = given.dialect().session(given.address(), "holder")
    with ExitStack() as stack:
        stack.callback(session.drop)
        transaction = stack.enter_context(ExitStack())
        transaction.enter_context(session.transaction(force_rollback=True))
        session.execute("UPDATE totals SET n = 100 WHERE word = 'a'")
        yield transaction


def prepared(writer: TransactionWriting) -> list[Any]:
    writer.flush(False)
    found = writer.prepare_commit()
    writer.close()
    return found


def test_a_row_that_another_subtask_has_prepared_ends_the_job(bench: Bench) -> None:
    prepared(bench.writer(0, (1, "a")))
    bench.sent = 0
    with pytest.raises(ConnectorError, match="refused the statement 'UPDATE totals") as caught:
        bench.writer(1, (2, "b"), (2, "a")).flush(False)
    assert caught.value.kind is FailureKind.PERMANENT
    assert "Another subtask of this sink has changed the same row" in str(caught.value)
    assert "key_by(…) the row's key in front of the sink, or set_parallelism(1)" in str(caught.value)
    assert bench.sent == 1, "waiting once more would change nothing"


def test_somebody_else_who_soon_lets_go_is_waited_for(bench: Bench, holder: ExitStack, totals: Any) -> None:
    bench.committer.commit(prepared(bench.writer(0, (2, "b"), (3, "a"), after=holder.close)))
    assert bench.sent == 2
    # The row in front of the one that was locked was changed once.
    assert sorted(totals.execute("SELECT word, n FROM totals")) == [("a", 3), ("b", 2)]


@pytest.mark.usefixtures("holder")
def test_somebody_else_who_does_not_let_go_ends_the_job(bench: Bench) -> None:
    with pytest.raises(ConnectorError, match="maybe of another sink or program, has changed the same row") as caught:
        bench.writer(0, (3, "a")).flush(False)
    assert caught.value.kind is FailureKind.PERMANENT
    assert bench.sent == 1 + RETRIES


def test_a_job_of_two_subtasks_that_change_one_row_ends_with_what_to_do(totals: Any) -> None:
    sink = JdbcSink.exactly_once_sink(UPDATE, CHANGE, options(totals), portions())

    def build(env: Any) -> None:
        changes = [(1, "a"), (2, "a"), (3, "a"), (4, "a")]
        env.from_collection(changes, type_info=CHANGE).rebalance().sink_to(sink).name("totals")

    with pytest.raises(JobExecutionError, match=r"key_by\(…\) the row's key") as caught:
        run_pipeline(build, parallelism=2, restarts=3)
    assert caught.value.kind is FailureKind.PERMANENT
    assert totals.prepared() == []
    assert sorted(totals.execute("SELECT word, n FROM totals")) == [("a", 0), ("b", 0)]
