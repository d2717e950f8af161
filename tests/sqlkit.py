"""A job with every operator of SQL that has state: the queries of the fault suite as one stream of changes."""

from __future__ import annotations

import contextlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from chaos.check import what_stands
from chaos.sql_queries import APPENDED, CHANGED, EVENT, declare, event
from firesteel.common import Row
from firesteel.datastream import DataStream
from firesteel.table import StreamTableEnvironment
from firesteel.testing import CrashError, run_pipeline

__all__ = ["FAILURES", "RESTARTS", "STEPS", "Failing", "everything", "left", "undisturbed"]

QUERIES = {**APPENDED, **CHANGED}
STEPS = [list(range(*ends)) for ends in ((0, 130), (130, 290), (290, 310), (310, 480))]
"""Numbers of events, by micro-batch."""
RESTARTS = {
    "restart__strategy_type": "fixed-delay",
    "restart__strategy_fixed__delay_attempts": "9",
    "restart__strategy_fixed__delay_delay": "1 ms",
}
FAILURES = (100, 203, 300, 401)
"""One event of each batch."""


def everything(numbers: DataStream) -> DataStream:
    """The changes of all queries, from a stream of numbers of events."""
    tables = StreamTableEnvironment.create(numbers.get_execution_environment())
    declare(tables, numbers.map(event, output_type=EVENT).uid("events").set_parallelism(1))
    return tables.to_changelog_stream(tables.sql_query(" UNION ALL ".join(QUERIES.values())))


class Failing:
    """The same, and a function behind all operators fails once for each of some events: the batch is done again."""

    def __init__(self, folder: Path, events: tuple[int, ...]) -> None:
        self._folder, self._events = folder, events

    def __call__(self, numbers: DataStream) -> DataStream:
        return everything(numbers).map(self._looked_at)

    def _looked_at(self, row: Row) -> Row:
        # These come at once, while other rows of their batch are still on their way.
        if row[0] == "lookup" and row[2] in self._events:
            with contextlib.suppress(FileExistsError):
                (self._folder / f"failed-{row[2]}").touch(exist_ok=False)
                raise CrashError(f"on purpose, at event {row[2]}")
        return row

    def count(self) -> int:
        return len(list(self._folder.glob("failed-*")))


def left(changes: list[Row]) -> dict[str, Counter[Any]]:
    """What stands of each query in the end. What gives each row once must not have taken one back."""
    kinds: dict[str, Counter[Any]] = {kind: Counter() for kind in QUERIES}
    for row, count in what_stands(changes).items():
        kinds[row[0]][row[1:]] = count
    taken_back = {row[0] for row in changes if row[0] in APPENDED and row.get_row_kind().value}
    assert not taken_back
    return kinds


@cache
def undisturbed() -> dict[str, Counter[Any]]:
    """What stands if all comes in one batch, in one subtask."""
    found = left(run_pipeline(lambda env: everything(env.from_collection([n for step in STEPS for n in step]))))
    assert all(found.values()), [kind for kind, rows in found.items() if not rows]
    assert all(set(rows.values()) == {1} for rows in found.values())
    return found
