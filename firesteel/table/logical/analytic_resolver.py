"""Resolves functions with OVER in batch mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.table.functions.binding import cast_to
from firesteel.table.functions.evaluation import folded
from firesteel.table.logical.analytic_windows import RANKING, AnalyticWindow, Frame, Offset
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef, Literal, rewrite
from firesteel.table.logical.first_rows import extended, place_of
from firesteel.table.logical.grouping import AggregateResolver, has_over
from firesteel.table.logical.over_windows import AFTER, OverResolver
from firesteel.table.logical.plan import Plan, SortOrder
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import (
    BigIntType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    IntegralType,
    LocalZonedTimestampType,
    NumericType,
    TimestampType,
)
from firesteel.table.types.derivation import common_type

__all__ = ["AnalyticResolver", "GroupedAnalyticResolver"]

_SURE = BigIntType(is_nullable=False)
_NEED_ORDER = RANKING - {"LAG", "LEAD"}


@dataclass(frozen=True)
class _Window:
    """A partition and an order: all functions of one are computed together."""

    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]


class AnalyticResolver(OverResolver):
    """Resolves a SELECT of batch mode that may have functions over any number of windows."""

    def __init__(
        self, plan: Plan, scope: Scope, windows: tuple[tuple[str, syntax.Over], ...], text: str | None
    ) -> None:
        super().__init__(plan, scope, windows, text)
        self._found: list[tuple[_Window, AggregateCall, Frame]] = []
        self._first: syntax.FunctionCall | None = None

    def over(self, node: syntax.FunctionCall, name: str) -> Expression:
        window = self._window(node)
        if name == "ROW_NUMBER" and not self._found and (self._number is None or self._number[0] == window):
            # Alone it may be Top-N.
            self._first = node
            return self._row_number(node, window)
        if self._number is not None and self._first is not None:
            former, self._number = self._number[0], None
            self._analysed(self._first, "ROW_NUMBER", former)
        return self._analysed(node, name, window)

    def _analysed(self, node: syntax.FunctionCall, name: str, window: syntax.Over) -> Expression:
        if name in _NEED_ORDER and not window.order:
            raise self.invalid(window, f"{name} is about an order of rows: OVER (... ORDER BY ...).")
        if name in RANKING and window.frame is not None:
            raise self.invalid(window.frame, f"{name} has no ROWS or RANGE: it looks at the whole partition.")
        order = []
        for item in window.order:
            last = item.descending if item.nulls_last is None else item.nulls_last
            place = place_of(self.resolve(item.expression), self._columns)
            order.append(SortOrder(place, item.descending, last))
        keys = tuple(place_of(self.resolve(key), self._columns) for key in window.partition)
        call = self._analytic_call(node, name)
        found = (_Window(keys, tuple(order)), call, self._frame_of(window))
        if found not in self._found:
            self._found.append(found)
        return InputRef(AFTER + self._found.index(found), call.type)

    # Functions.

    def _analytic_call(self, node: syntax.FunctionCall, name: str) -> AggregateCall:
        if node.user is not None or name not in RANKING:
            return self._aggregate_call(node, name)
        if name in ("LAG", "LEAD"):
            return self._shifted(node, name)
        wanted = 1 if name == "NTILE" else 0
        if len(node.args) != wanted:
            raise self.invalid(node, f"{name} takes {wanted or 'no'} argument{'s' * (not wanted)}.")
        if name == "NTILE":
            count = self.resolve(node.args[0])
            if not isinstance(count, Literal) or not isinstance(count.type, IntegralType) or count.value <= 0:
                raise self.invalid(node.args[0], "NTILE takes a constant number of groups above zero.")
            return AggregateCall(name, (), _SURE, options=(count.value,))
        return AggregateCall(name, (), DoubleType(is_nullable=False) if name in _SHARES else _SURE)

    def _shifted(self, node: syntax.FunctionCall, name: str) -> AggregateCall:
        """The value of a row some rows before or behind; the default may be a column, too."""
        if not 1 <= len(node.args) <= 3 or node.distinct or node.filter is not None:
            raise self.invalid(node, f"{name} takes a value, how many rows away, and what if there is no such row.")
        args = [self.resolve(argument) for argument in node.args]
        offset = 1
        if len(args) > 1:
            away = args[1]
            if not isinstance(away, Literal) or not isinstance(away.type, IntegralType):
                raise self.invalid(node.args[1], f"{name} takes a constant number of rows.")
            offset = away.value
        kind: DataType = args[0].type.nullable()
        places = [place_of(args[0], self._columns)]
        if len(args) > 2:
            if common_type([args[0].type, args[2].type]) is None:
                raise self.invalid(node.args[2], f"{name}: {args[2].type} is not a default for {args[0].type}.")
            # The default becomes what the value is, also where it is wider.
            default = cast_to(args[2], args[0].type)
            kind = args[0].type.with_nullability(args[0].type.is_nullable or default.type.is_nullable)
            places.append(place_of(default, self._columns))
        return AggregateCall(name, tuple(places), kind, options=(offset,))

    # Frames.

    def _frame_of(self, window: syntax.Over) -> Frame:
        written = window.frame
        if written is None:
            # With an order all rows up to the current one and its equals; else all.
            return Frame(False, None, 0 if window.order else None)
        end = written.end or (None, "CURRENT ROW")
        if (written.start[0] is None and written.start[1] == "FOLLOWING") or (end[0] is None and end[1] == "PRECEDING"):
            raise self.invalid(written, "A frame begins before it ends: BETWEEN UNBOUNDED PRECEDING AND ....")
        offsets = [self._offset(bound, written, window) for bound in (written.start, end)]
        if None not in offsets and offsets[0] > offsets[1]:
            raise self.invalid(written, "The frame ends before it begins.")
        return Frame(written.rows, offsets[0], offsets[1])

    def _offset(self, bound: tuple[syntax.Node | None, str], frame: syntax.WindowFrame, window: syntax.Over) -> Any:
        node, side = bound
        if node is None:
            return 0 if side == "CURRENT ROW" else None
        found = folded(ExpressionResolver(Scope([]), self.text).resolve(node))
        if not isinstance(found, Literal) or found.value is None:
            raise self.invalid(node, "A frame is bounded by a constant.")
        value: Offset
        if frame.rows:
            if not isinstance(found.type, IntegralType):
                raise self.invalid(node, "ROWS takes a number of rows.")
            value = found.value
        else:
            value = self._distance(node, found, window)
        if value is None or value < 0:
            raise self.invalid(node, "A frame is bounded by what is not below zero.")
        return -value if side == "PRECEDING" else value

    def _distance(self, node: syntax.Node, found: Literal, window: syntax.Over) -> Offset:
        """How far RANGE goes, in the measure of the column that rows are ordered by."""
        if len(window.order) != 1:
            raise self.invalid(window, "RANGE with a distance has one column in ORDER BY.")
        kind = self.resolve(window.order[0].expression).type
        if isinstance(kind, TimestampType | LocalZonedTimestampType | DateType):
            if not isinstance(found.type, DayTimeIntervalType):
                raise self.invalid(node, f"RANGE over {kind} takes an interval of days or less.")
            return int(found.value.total_seconds() * 1000)
        if not isinstance(kind, NumericType) or not isinstance(found.type, NumericType):
            raise self.invalid(node, f"RANGE over {kind} does not take {found.type}.")
        value: Offset = found.value
        return value

    # When everything was resolved.

    def plan(self) -> Plan:
        if not self._found:
            return super().plan()
        result = extended(self._input, self._columns)
        for window in self._windows_in_order():
            own = [(call, frame) for each, call, frame in self._found if each == window]
            calls, frames = zip(*own, strict=True)
            result = AnalyticWindow(result, window.partition, window.order, calls, frames)
        return result

    def _windows_in_order(self) -> list[_Window]:
        return list(dict.fromkeys(window for window, _, _ in self._found))

    def finished(self, expression: Expression) -> Expression:
        if not self._found:
            return super().finished(expression)
        windows = self._windows_in_order()
        # Nodes add their results one behind the other.
        sorted_places = sorted(range(len(self._found)), key=lambda at: windows.index(self._found[at][0]))
        first = len(self._columns)

        def place(part: Expression) -> Expression | None:
            if isinstance(part, InputRef) and part.index >= AFTER:
                return InputRef(first + sorted_places.index(part.index - AFTER), part.type)
            return None

        return rewrite(expression, place)


class GroupedOverResolver(OverResolver):
    """Functions with OVER whose rows are groups: what is outside of OVER is resolved over these."""

    def __init__(
        self, plan: Plan, groups: AggregateResolver, windows: tuple[tuple[str, syntax.Over], ...], text: str | None
    ) -> None:
        super().__init__(plan, groups.scope, windows, text)
        self.around = groups.around
        self._groups = groups

    def resolve(self, node: syntax.Node) -> Expression:
        return super().resolve(node) if has_over(node) else self._groups.resolve(node)


class GroupedAnalyticResolver(GroupedOverResolver, AnalyticResolver):
    """The same in batch mode."""


_SHARES = ("PERCENT_RANK", "CUME_DIST")
