"""Windows in GROUP BY: ``TUMBLE(ts, INTERVAL '1' MINUTE)`` of older SQL, and those of the Table API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.table.logical.expressions import Expression, InputRef
from firesteel.table.logical.first_rows import extended, place_of
from firesteel.table.logical.plan import Plan, WindowTable
from firesteel.table.logical.time_attributes import time_attribute
from firesteel.table.logical.windows import milliseconds_of, with_times
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import LocalZonedTimestampType, TimestampType

__all__ = ["GROUP_WINDOWS", "GroupWindow", "group_window_table"]

GROUP_WINDOWS = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}
_PARTS = {"START": 0, "END": 1, "ROWTIME": 2, "PROCTIME": 2}


@dataclass(frozen=True)
class GroupWindow:
    """The window that rows are grouped by: ``prefix`` of the functions of its parts, and their arguments."""

    prefix: str
    args: tuple[syntax.Node, ...]

    def part(self, node: syntax.FunctionCall, name: str) -> int | None:
        """Which column of the window a call means: begin, end or time; None if it means none."""
        prefix, _, part = name.rpartition("_")
        if prefix != self.prefix or part not in _PARTS or node.args != self.args:
            return None
        return _PARTS[part]

    def columns(self, table: Plan) -> list[Expression]:
        """The window's columns, which are the last ones of a table of windows."""
        return list(table.refs()[-3:])


def group_window_table(
    plan: Plan,
    kind: str,
    time: Expression,
    spans: Sequence[syntax.Node],
    keys: Sequence[Expression],
    node: syntax.Node,
    text: str | None,
    streaming: bool = True,
) -> WindowTable:
    """The relation with the windows of its rows. ``keys``: what sessions are made for, each for itself. In batch mode
    all rows are there, so that any time will do."""
    if not isinstance(time, InputRef) or (streaming and time_attribute(plan, time.index) is None):
        expected = "a time attribute: a column with WATERMARK FOR, or PROCTIME()" if streaming else "a column of times"
        raise SqlValidationError(f"A window is of {expected}.", text, node.span)
    if not isinstance(time.type, TimestampType | LocalZonedTimestampType):
        raise SqlValidationError(f"Windows need a TIMESTAMP(3), got {time.type}.", text, node.span)
    if not streaming:
        plan = with_times(plan, time)
    names = GROUP_WINDOWS[kind]
    if len(spans) != len(names):
        message = f"{kind} takes a time and {' and '.join(name.lower() for name in names)}."
        raise SqlValidationError(message, text, node.span)
    lengths = {name: milliseconds_of(span, name, text) for name, span in zip(names, spans, strict=True)}
    if min(lengths.values()) <= 0:
        raise SqlValidationError(f"{kind}: intervals are above zero.", text, node.span)
    partition: tuple[int, ...] = ()
    if kind == "SESSION":
        columns: list[Expression] = list(plan.refs())
        partition = tuple(place_of(key, columns) for key in keys)
        plan = extended(plan, columns)
    size = lengths["GAP"] if kind == "SESSION" else lengths["SIZE"]
    return WindowTable(plan, time.index, kind, size, lengths.get("SLIDE", 0), 0, partition)
