"""Prepared transactions of MariaDB step by step, and with processes and servers that are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from databasekit import INSERT, NONE, PAIR, options, portions, rows
from kit import eventually
from mariadb_server import MariaDbServer
from mariadbkit import MariaDb

from firesteel.connectors.mysql.two_phase import MARKS, XaCommitter, XaWriter
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.jdbc import JdbcSink
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError, FailureKind
from firesteel.testing import memory_environment

pytestmark = pytest.mark.usefixtures("short_pauses")


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


class Bench:
    """Writers and a committer of one sink."""

    def __init__(self, db: MariaDb, job: str = "job-1") -> None:
        db.execute("CREATE TABLE IF NOT EXISTS counts (word varchar(10), n int PRIMARY KEY)")
        self._sink = JdbcSink.exactly_once_sink(INSERT, PAIR, options(db), portions())
        self._identity = SinkIdentity("job", job, "sink-1")
        committer = self._sink.create_committer(CommitterContext(self._identity))
        assert isinstance(committer, XaCommitter)
        self.committer = committer

    def prepare(self, time: int, *records: Any, subtask: int = 0) -> list[str]:
        writer = self._sink.create_writer(WriterContext(self._identity, subtask, 2))
        assert isinstance(writer, XaWriter)
        for record in records:
            writer.write(record, At(time))
        writer.flush(False)
        found = writer.prepare_commit()
        writer.close()
        return found


def test_rows_appear_with_the_commit_and_a_second_one_changes_nothing(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    prepared = bench.prepare(1000, ("a", 1), ("b", 2))
    assert rows(mariadb) == []
    assert mariadb.prepared() == prepared
    bench.committer.commit(prepared)
    bench.committer.commit(prepared)
    assert rows(mariadb) == [("a", 1), ("b", 2)]
    assert (mariadb.prepared(), bench.prepare(2000)) == ([], [])


def test_a_second_try_of_a_task_takes_over_what_the_first_one_prepared(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    first, second = bench.prepare(1000, ("a", 1)), bench.prepare(1000, ("a", 1))
    assert second == first
    bench.committer.commit(second)
    assert rows(mariadb) == [("a", 1)]


def test_a_later_transaction_of_a_committed_name_never_begins(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    bench.committer.commit(bench.prepare(1000, ("a", 1)))
    with pytest.raises(ConnectorError, match="Duplicate entry") as caught:
        bench.prepare(1000, ("a", 2))
    assert caught.value.kind is FailureKind.PASSING


def test_recovery_rolls_back_what_is_not_to_be_committed_and_nobody_elses(mariadb: MariaDb) -> None:
    bench, other = Bench(mariadb), Bench(mariadb, "job-2")
    foreign = other.prepare(1000, ("x", 100))
    pending, lost = bench.prepare(1000, ("a", 1)), bench.prepare(2000, ("a", 2))
    bench.committer.recover(pending)
    assert mariadb.prepared() == sorted(pending + foreign)
    bench.committer.recover_and_commit(pending)
    bench.committer.abort(lost)
    other.committer.abort(foreign)
    assert (rows(mariadb), mariadb.prepared()) == ([("a", 1)], [])
    bench.committer.recover([])
    assert mariadb.execute(f"SELECT * FROM {MARKS}") == [], "no mark outlives its use"


def test_batches_that_are_all_committed_are_committed_again(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    first, second = bench.prepare(1000, ("a", 1)), bench.prepare(2000, ("a", 2))
    for _ in range(2):
        # Another sink of the job has failed meanwhile, so the log still has both when it is read again.
        bench.committer.recover(first + second)
        bench.committer.recover_and_commit(first)
        bench.committer.recover_and_commit(second)
    assert rows(mariadb) == [("a", 1), ("a", 2)]
    bench.committer.commit(third := bench.prepare(3000, ("a", 3)))
    assert [name for (name,) in mariadb.execute(f"SELECT name FROM {MARKS}")] == third


def test_what_somebody_rolled_back_is_not_taken_for_committed(mariadb: MariaDb) -> None:
    bench = Bench(mariadb)
    (name,) = bench.prepare(1000, ("a", 1))
    assert eventually(lambda: _rolled_back(mariadb, name))
    with pytest.raises(ConnectorError, match="was not committed and is gone") as caught:
        bench.committer.commit([name])
    assert caught.value.kind is FailureKind.PERMANENT


def _rolled_back(db: MariaDb, name: str) -> bool:
    try:
        db.execute(f"XA ROLLBACK '{name}'")
    except Exception:
        return False
    return True


def test_a_process_is_killed_after_it_has_prepared(mariadb: MariaDb, tmp_path: Path) -> None:
    """``kill -9`` between prepare and commit; another process commits."""
    bench = Bench(mariadb)
    program = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from test_systems_xa import Bench
        from mariadbkit import MariaDb
        from mariadb_server import MariaDbServer
        server = MariaDbServer(); server.port = {mariadb.server.port}
        print(Bench(MariaDb(server, {mariadb.name!r})).prepare(1000, ("a", 1), ("b", 2)), flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert rows(mariadb) == []
    prepared = mariadb.prepared()
    assert done.stdout.strip() == str(prepared)
    bench.committer.recover(prepared)
    bench.committer.recover_and_commit(prepared)
    assert rows(mariadb) == [("a", 1), ("b", 2)]


@pytest.mark.timeout(300)
def test_the_server_is_killed_and_every_row_is_there_once(mariadb: MariaDb) -> None:
    server: MariaDbServer = mariadb.server
    total = 1000
    mariadb.execute("CREATE TABLE results (word varchar(10), n int)")
    config = {
        "firesteel.batch.max-records": "50",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100000",
        "restart-strategy.fixed-delay.delay": "20 ms",
    }
    env = memory_environment(2, config=config)
    numbers = env.from_source(DataGeneratorSource(lambda n: ("a", n), total, 500), NONE, "numbers")
    sink = JdbcSink.exactly_once_sink("INSERT INTO results VALUES (?, ?)", PAIR, options(mariadb))
    numbers.rebalance().map(lambda pair: pair, output_type=PAIR).sink_to(sink).uid("sink")
    job = env.execute_async("into MariaDB")
    for reached, seconds_down in ((100, 0.0), (500, 0.3)):

        def there(reached: int = reached) -> bool:
            return bool(mariadb.execute("SELECT count(*) FROM results")[0][0] >= reached)

        assert eventually(there)
        server.crash(seconds_down)
    job.get_job_execution_result().result()
    assert Counter(n for (n,) in mariadb.execute("SELECT n FROM results")) == Counter(range(total))
    assert mariadb.prepared() == []
