"""A crash at every single step of what a Spark writer's sink does with files and tables, without Spark."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.connectors.spark import targets
from firesteel.connectors.spark.targets import FilesTarget, JdbcTarget, SparkBatch
from firesteel.errors import ConnectorError, FailureKind


class Crashed(Exception):
    pass


class Steps:
    """Lets so many steps pass, and fails at the next one: before it is done, or after it."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False

    def take(self, step: Any) -> Any:
        if self.left is None:
            return step()
        self.left -= 1
        if self.left < 0 and not self.after:
            raise Crashed
        done = step()
        if self.left < 0:
            raise Crashed
        return done


STEPS = Steps()


class Files:
    """Hadoop's file system on this machine's."""

    def __init__(self, session: Any, path: str) -> None:
        pass

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        def write() -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).write_bytes(content)

        STEPS.take(write)

    def move(self, path: str, there: str) -> None:
        def move() -> None:
            os.makedirs(os.path.dirname(there), exist_ok=True)
            os.rename(path, there)

        STEPS.take(move)

    def delete(self, path: str) -> None:
        STEPS.take(lambda: shutil.rmtree(path, ignore_errors=True))

    def under(self, folder: str) -> Iterator[str]:
        return iter(sorted(str(path) for path in Path(folder).rglob("*") if path.is_file()))


class Frame:
    """A DataFrame of numbers, in files of two, or in a table."""

    columns = ("n",)

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers
        self.write = self

    def format(self, name: str) -> Frame:
        return self

    def options(self, **options: str) -> Frame:
        return self

    def mode(self, mode: str) -> Frame:
        return self

    def save(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)
        # Names that are new each time, as Spark's are.
        for count, start in enumerate(range(0, len(self.numbers), 2)):
            STEPS.take(lambda count=count, start=start: self._part(path, count, start))

    def _part(self, path: str, count: int, start: int) -> None:
        os.makedirs(path, exist_ok=True)
        name = f"part-{count:05d}-{os.urandom(4).hex()}.txt"
        Path(path, name).write_text(" ".join(map(str, self.numbers[start : start + 2])))

    def jdbc(self, url: str, table: str, mode: str, properties: Any) -> None:
        with sqlite3.connect(url) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} (n)")
            STEPS.take(lambda: connection.executemany(f"INSERT INTO {table} VALUES (?)", [(n,) for n in self.numbers]))


class Database(targets._Database):
    """The JVM's connection as one of SQLite."""

    def __init__(self, session: Any, url: str, properties: Any) -> None:
        self._live = sqlite3.connect(url, isolation_level=None)

    def quoted(self, name: str) -> str:
        return f'"{name}"'

    def run(self, statement: str) -> int:
        return int(STEPS.take(lambda: self._live.execute(statement).rowcount))

    def number(self, query: str) -> int | None:
        found = self._live.execute(query).fetchone()
        return None if found is None else int(found[0])

    def columns(self, table: str) -> list[str]:
        return [column[0] for column in self._live.execute(f"SELECT * FROM {table} WHERE 1 = 0").description]

    def transaction(self, statements: Sequence[str]) -> bool:
        self._live.execute("BEGIN")
        try:
            changed = [self.run(statement) for statement in statements]
            STEPS.take(lambda: self._live.execute("COMMIT" if changed[-1] else "ROLLBACK"))
        except BaseException:
            if self._live.in_transaction:
                self._live.execute("ROLLBACK")
            raise
        return bool(changed[-1])

    def close(self) -> None:
        self._live.close()


@pytest.fixture(autouse=True)
def _local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_Hadoop", Files)
    monkeypatch.setattr(targets, "_Database", Database)
    monkeypatch.setattr(targets, "spark_session", lambda: None)
    STEPS.left = None


def batch(number: int) -> SparkBatch:
    return SparkBatch("fs-0123456789abcdef", number)


def write_with_a_crash(target: Any, crashing: int, steps: int, after: bool) -> bool:
    """Three batches, of which one crashes after so many steps, comes again, and once more. Returns whether it crashed:
    it may have fewer steps."""
    crashed = False
    for number, rows in enumerate([[0, 1, 2], [3, 4, 5, 6, 7], [8]]):
        if number == crashing:
            STEPS.left, STEPS.after = steps, after
            try:
                target.write(Frame(rows), batch(number))
            except Exception:
                crashed = True
            STEPS.left = None
            target.write(Frame(rows), batch(number))
        target.write(Frame(rows), batch(number))
    return crashed


EACH_STEP = pytest.mark.parametrize(("crashing", "after"), [(0, False), (0, True), (1, False), (1, True)])


@EACH_STEP
def test_files_are_there_once_after_a_crash_at_each_step(tmp_path: Path, crashing: int, after: bool) -> None:
    for steps in itertools.count():
        folder = tmp_path / str(steps)
        crashed = write_with_a_crash(FilesTarget("text", str(folder), {}, ()), crashing, steps, after)
        found = [int(n) for path in folder.glob("part-*") for n in path.read_text().split()]
        assert sorted(found) == list(range(9)), f"after {steps} steps"
        assert [path.name for path in (folder / "_firesteel").iterdir()] == ["fs-0123456789abcdef"]
        if not crashed:
            break
    assert steps > 5


@EACH_STEP
def test_rows_are_there_once_after_a_crash_at_each_step(tmp_path: Path, crashing: int, after: bool) -> None:
    for steps in itertools.count():
        url = str(tmp_path / str(steps))
        with sqlite3.connect(url) as connection:
            connection.execute("CREATE TABLE numbers (N)")
        crashed = write_with_a_crash(JdbcTarget(url, "numbers", {}), crashing, steps, after)
        with sqlite3.connect(url) as connection:
            found = [n for (n,) in connection.execute("SELECT N FROM numbers")]
        assert sorted(found) == list(range(9)), f"after {steps} steps"
        if not crashed:
            break
    assert steps > 2


def test_a_number_that_cannot_be_read_now_is_not_taken_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "numbers")
    with sqlite3.connect(url) as connection:
        connection.execute("CREATE TABLE numbers (N)")
    target = JdbcTarget(url, "numbers", {})
    target.write(Frame([0]), batch(4))

    class Locked(Exception):
        java_exception = SimpleNamespace(
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: "SQLTransactionRollbackException"),
            getMessage=lambda: "A lock could not be obtained",
            getSQLState=lambda: "40XL1",
            getErrorCode=lambda: 30000,
            getCause=lambda: None,
        )

    def locked(database: Database, query: str) -> int | None:
        raise Locked

    monkeypatch.setattr(Database, "number", locked)
    with pytest.raises(ConnectorError, match="A lock could not be obtained") as caught:
        target.write(Frame([1]), batch(5))
    assert caught.value.kind is FailureKind.PASSING
