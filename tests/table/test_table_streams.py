"""Operators on tables in jobs: rows that become columns, cross exchanges, are grouped, and become rows again; through
savepoints and changes of parallelism."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from savepointkit import Halves
from tablekit import by_word, changes, counted, expected, found

from firesteel.common import Row
from firesteel.errors import JobExecutionError


@pytest.fixture
def halves(tmp_path: Path) -> Iterator[Halves]:
    made = Halves(tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_changelog_of_groups(halves: Halves, parallelism: int) -> None:
    rows = changes(500)
    got = found(halves.whole(counted, [rows[:200], rows[200:]], parallelism))
    assert by_word(got) == by_word(expected(rows))
    if parallelism == 1:
        assert got == expected(rows)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1)])
def test_groups_come_back_from_a_savepoint(halves: Halves, backend: str, before: int, after: int) -> None:
    begin, end = [changes(300), changes(100, 300)], [changes(200, 400)]

    got = halves.save(counted, begin, before, state_backend_type=backend)
    got += halves.resume(counted, [*begin, *end], after, state_backend_type=backend)

    assert by_word(found(got)) == by_word(expected(changes(600)))


def test_rows_are_counted_and_not_batches(halves: Halves) -> None:
    rows = changes(100)
    job, got, reader = halves.start(counted, [rows], True, 2, {})
    job.get_job_execution_result().result()
    reader.join()
    graph = job.context.spec.graph.graph
    names = {node.name: node.id for node in graph.nodes.values()}
    out = {name: job.inbox.progress.emitted[names[name]] for name in ("Columns", "Calc", "Groups")}
    assert out == {"Columns": 100, "Calc": sum(1 for row in rows if row.number > 0), "Groups": len(got)}


def test_a_row_that_does_not_fit_is_named(halves: Halves) -> None:
    with pytest.raises(JobExecutionError, match=r"Column 'number' is declared as int64, got str 'seven'"):
        halves.whole(counted, [[Row(word="a", number="seven", ratio=0.5)]], 1)
