"""Whether a run gave what it should: every result once, and none that was not asked for."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.job import Plan, Result, results
from chaos.sql_job import changelogs
from firesteel.common import Row, RowKind
from firesteel.testing import run_pipeline

__all__ = ["Difference", "compare", "what_stands", "without_faults", "without_faults_in_sql"]


@dataclass(frozen=True)
class Difference:
    """How the results of a run differ from those of a run without faults."""

    lost: int
    duplicated: int
    unknown: int
    """Results that the run without faults does not have."""
    examples: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        return not (self.lost or self.duplicated or self.unknown)


def without_faults(plan: Plan) -> Counter[Result]:
    """The results of the same job in one process, without Spark, sinks or kills."""
    settings = {"firesteel.batch.max-records": "1000"}
    calm = replace(plan, rate=None, kafka={}, portions=1)
    found = run_pipeline(lambda env: results(env, calm), parallelism=2, config=settings)
    return Counter(tuple(row) for row in found)


def without_faults_in_sql(plan: Plan) -> Counter[Result]:
    """The rows that the queries of :mod:`chaos.sql_job` come to in one process."""
    calm = replace(plan, rate=None, portions=1)
    found = run_pipeline(lambda env: changelogs(env, calm), config={"firesteel.batch.max-records": "1000"})
    return sum((what_stands(rows) for rows in found.values()), Counter())


def what_stands(changelog: Iterable[Row]) -> Counter[Result]:
    """The rows that are left of a changelog. A row that was taken back more often than it came is not left out."""
    left: Counter[Result] = Counter()
    for row in changelog:
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        left[tuple(row)] += 1 if added else -1
    return Counter({one: count for one, count in left.items() if count})


def compare(found: Counter[Result], expected: Counter[Result]) -> Difference:
    """
    >>> expected = Counter({("count", 1, 1, 0): 1, ("count", 1, 2, 0): 1})
    >>> difference = compare(Counter({("count", 1, 1, 0): 2, ("count", 1, 3, 0): 1}), expected)
    >>> difference.lost, difference.duplicated, difference.unknown
    (1, 1, 1)
    >>> difference.examples
    ('lost: count 1 2 0', 'twice: count 1 1 0', 'unknown: count 1 3 0')
    """
    lost, more = expected - found, found - expected
    twice = Counter({one: count for one, count in more.items() if one in expected})
    unknown = more - twice
    examples = [
        f"{word}: {' '.join(map(str, one))}"
        for word, several in (("lost", lost), ("twice", twice), ("unknown", unknown))
        for one in sorted(several)[:3]
    ]
    return Difference(lost.total(), twice.total(), unknown.total(), tuple(examples))


def in_files(folder: Path) -> Counter[Result]:
    """What readers see of the files."""
    found: Counter[Result] = Counter()
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            for kind, key, n, value in csv.reader(path.read_text().splitlines()):
                found[kind, int(key), int(n), int(value)] += 1
    return found
