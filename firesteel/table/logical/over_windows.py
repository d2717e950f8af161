"""Functions over the rows around each row: OVER (PARTITION BY ... ORDER BY ... ROWS ...)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firesteel.table.functions.aggregates import AGGREGATES, KNOWN_AGGREGATES, aggregate_type
from firesteel.table.functions.binding import FunctionError, cast_to, unknown_function
from firesteel.table.functions.evaluation import Evaluator, folded
from firesteel.table.functions.registry import find
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import AggregateCall, Call, Expression, InputRef, Literal, columns_of, rewrite
from firesteel.table.logical.first_rows import extended, place_of
from firesteel.table.logical.plan import OverWindow, Plan, RowNumber, SortedWindow, SortOrder
from firesteel.table.logical.ranking import order_columns
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.time_attributes import time_attribute
from firesteel.table.logical.user_calls import fitted_arguments
from firesteel.table.logical.windows import milliseconds_of
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import BigIntType, DataType, IntegralType, NumericType

__all__ = ["AFTER", "OverResolver"]

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_NOT_IN_STREAMS = ("LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST")
AFTER = 1 << 30
"""Results of calls get places from here on, until it is known how many columns are before them."""


@dataclass(frozen=True)
class _Frame:
    """A window, without what it was called."""

    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    """Each with whether it is descending, and whether NULLs are last."""
    timed: bool
    """Whether it is in the order of time."""
    rows: bool
    preceding: int | None


class OverResolver(ExpressionResolver):
    """Resolves a SELECT that may have functions over one window. ``plan()`` is what its expressions are over, when all
    of them are resolved and ``finished``."""

    def __init__(
        self, plan: Plan, scope: Scope, windows: tuple[tuple[str, syntax.Over], ...], text: str | None
    ) -> None:
        super().__init__(scope, text)
        self._input = plan
        self._windows = dict(windows)
        self._columns: list[Expression] = list(plan.refs())
        self._number: tuple[syntax.Over, RowNumber] | None = None
        self._frame: _Frame | None = None
        self._calls: list[AggregateCall] = []

    def over(self, node: syntax.FunctionCall, name: str) -> Expression:
        window = self._window(node)
        if (
            name == "ROW_NUMBER"
            and node.user is None
            and self._frame is None
            and (self._number is None or self._number[0] == window)
        ):
            return self._row_number(node, window)
        if self._number is not None:
            # What looked like Top-N is one of several functions over a window of time.
            former, self._number = self._number[0], None
            self._called(node, "ROW_NUMBER", former)
        return self._called(node, name, window)

    def _window(self, node: syntax.FunctionCall) -> syntax.Over:
        window = node.over
        assert window is not None
        if window.name is None:
            return window
        if window.name not in self._windows:
            known = f" There are {', '.join(self._windows)}." if self._windows else ""
            raise self.invalid(window, f"There is no window {window.name}.{known}")
        named = self._windows[window.name]
        order, frame = window.order or named.order, window.frame or named.frame
        return syntax.Over(None, named.partition or window.partition, order, frame, span=named.span)

    def _row_number(self, node: syntax.FunctionCall, window: syntax.Over) -> Expression:
        if not window.order:
            raise self.invalid(node, "ROW_NUMBER() needs an ORDER BY in its window.")
        if window.frame is not None:
            raise self.invalid(window.frame, "ROW_NUMBER() has no ROWS or RANGE: its window has all rows before.")
        if self._number is None:
            columns = list(self._columns)
            keys = [place_of(self.resolve(key), columns) for key in window.partition]
            ordered, order = order_columns(extended(self._input, columns), window.order, self)
            self._number = (window, RowNumber(ordered, tuple(keys), order, "$row_number"))
        return InputRef(AFTER, BigIntType(is_nullable=False))

    def _called(self, node: syntax.FunctionCall, name: str, window: syntax.Over) -> Expression:
        frame = self._framed(node, name, window)
        if self._frame is None:
            self._frame = frame
        if frame != self._frame:
            message = "All functions with OVER in a SELECT share one window of a stream: the windows differ."
            raise self.invalid(window, message)
        call = self._call(node, name, frame)
        if call not in self._calls:
            self._calls.append(call)
        return InputRef(AFTER + self._calls.index(call), call.type)

    def _framed(self, node: syntax.FunctionCall, name: str, window: syntax.Over) -> _Frame:
        if not window.order:
            raise self.invalid(window, "OVER of a stream has an order: ORDER BY rowtime, or another column.")
        order = []
        for item in window.order:
            last = item.descending if item.nulls_last is None else item.nulls_last
            order.append((self.resolve(item.expression), item.descending, last))
        times = [self._time(each) for each, _, _ in order]
        if any(times) and len(order) > 1:
            raise self.invalid(window.order[1], "OVER of a stream is in the order of one time attribute alone.")
        if any(times) and window.order[0].descending:
            raise self.invalid(window.order[0], "OVER of a stream is in ascending order of time.")
        partition = tuple(self.resolve(key) for key in window.partition)
        rows, preceding = self._bounds(window.frame, name)
        if not any(times) and preceding is not None:
            message = f"{name} with such a window is in the order of a time attribute: WATERMARK FOR, or PROCTIME()."
            raise self.invalid(window.order[0], message)
        return _Frame(partition, tuple(order), any(times), rows, preceding)

    def _time(self, expression: Expression) -> bool:
        if isinstance(expression, InputRef):
            return time_attribute(self._input, expression.index) is not None
        return isinstance(expression, Call) and expression.function == "PROCTIME"

    def _bounds(self, frame: syntax.WindowFrame | None, name: str) -> tuple[bool, int | None]:
        if frame is None:
            return name == "ROW_NUMBER", None
        if name in _RANKS or name in ("LAG", "LEAD"):
            raise self.invalid(frame, f"{name}() has no ROWS or RANGE.")
        (start, side), end = frame.start, frame.end
        if side == "FOLLOWING" or (end is not None and end[1] != "CURRENT ROW"):
            raise self.invalid(frame, "OVER of a stream ends at the CURRENT ROW: what follows is not supported yet.")
        if side == "CURRENT ROW":
            return frame.rows, 0
        if start is None:
            return frame.rows, None
        if not frame.rows:
            return False, milliseconds_of(start, "RANGE ... PRECEDING", self.text)
        count = folded(ExpressionResolver(Scope([]), self.text).resolve(start))
        if not isinstance(count, Literal) or not isinstance(count.type, NumericType) or not count.value >= 0:
            raise self.invalid(start, "ROWS ... PRECEDING takes a number of rows.")
        return True, int(count.value)

    def _call(self, node: syntax.FunctionCall, name: str, frame: _Frame) -> AggregateCall:
        number = BigIntType(is_nullable=False)
        if name == "ROW_NUMBER" and node.user is None:
            return AggregateCall("COUNT", (), number)
        if node.user is not None:
            return self._user_call(node)
        if name in _RANKS:
            return AggregateCall(name, (place_of(frame.order[0][0], self._columns),), number)
        if name == "LAG":
            return self._lag(node)
        if name in _NOT_IN_STREAMS:
            raise self.invalid(node, f"{name} needs rows that have not come yet: it is for batches only, as in Flink.")
        return self._aggregate_call(node, name)

    def _aggregate_call(self, node: syntax.FunctionCall, name: str) -> AggregateCall:
        if node.user is not None:
            return self._user_call(node)
        if name not in AGGREGATES:
            if name in KNOWN_AGGREGATES:
                raise self.unsupported(node, f"{name} over a window")
            if find(name) is None:
                raise self.invalid(node, str(unknown_function(node.name.parts[-1], KNOWN_AGGREGATES)))
            raise self.invalid(node, f"{name} is no aggregate, so it has no OVER.")
        if node.order:
            raise self.unsupported(node, f"{name} with an order of rows")
        if node.nulls:
            raise self.unsupported(node, f"{node.nulls} NULLS over a window")
        stars = any(isinstance(argument, syntax.Star) for argument in node.args)
        args = [] if stars else [self.resolve(argument) for argument in node.args]
        chosen = self.condition(node.filter, "FILTER") if node.filter is not None else None
        if name == "COUNT" and args and not node.distinct and not args[0].type.is_nullable:
            args = []
        try:
            args, options = AGGREGATES[name].constants(args)
            if name.startswith(("VAR", "STDDEV")):
                options = ("sums",)
            kinds = [argument.type for argument in args]
            result = aggregate_type(name, kinds, True, chosen is not None, options)
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        return AggregateCall(
            name,
            tuple(place_of(argument, self._columns) for argument in args),
            result,
            node.distinct and name not in ("MIN", "MAX"),
            place_of(chosen, self._columns) if chosen is not None else None,
            options=options,
        )

    def _user_call(self, node: syntax.FunctionCall) -> AggregateCall:
        user = node.user
        if user.kind != "aggregate":
            raise self.invalid(node, f"{user.name} is not an aggregate: OVER has no meaning for it.")
        if node.distinct:
            raise self.unsupported(node, f"{user.name} of DISTINCT values over a window")
        try:
            args = fitted_arguments(user, [self.resolve(argument) for argument in node.args])
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        chosen = self.condition(node.filter, "FILTER") if node.filter is not None else None
        return AggregateCall(
            user.name,
            tuple(place_of(argument, self._columns) for argument in args),
            user.result_type,
            filter=place_of(chosen, self._columns) if chosen is not None else None,
            user=user,
        )

    def _lag(self, node: syntax.FunctionCall) -> AggregateCall:
        args = [self.resolve(argument) for argument in node.args]
        if not 1 <= len(args) <= 3:
            raise self.invalid(node, "LAG takes a value, how many rows back, and what if there is no such row.")
        kind: DataType = args[0].type.nullable()
        offset, default = 1, None
        if len(args) > 1:
            back = folded(args[1])
            if not isinstance(back, Literal) or not isinstance(back.type, IntegralType) or back.value < 0:
                raise self.invalid(node.args[1], "LAG takes a constant number of rows.")
            offset = back.value
        if len(args) > 2:
            default = self._constant_of(node.args[2], args[2], kind)
        return AggregateCall("LAG", (place_of(args[0], self._columns),), kind, options=(offset, default))

    def _constant_of(self, node: syntax.Node, value: Expression, kind: DataType) -> Any:
        if any(True for _ in columns_of(value)):
            raise self.unsupported(node, "LAG with a default that is not a constant")
        if isinstance(value, Literal) and value.value is None:
            return None
        return Evaluator([cast_to(value, kind)]).columns(pa.record_batch({"one": [0]}))[0][0].as_py()

    # When everything was resolved.

    def plan(self) -> Plan:
        """What the finished expressions are over."""
        if self._number is not None:
            return self._number[1]
        if self._frame is None:
            return self._input
        frame, calls = self._frame, tuple(self._calls)
        keys = tuple(place_of(key, self._columns) for key in frame.partition)
        order = tuple(
            SortOrder(place_of(each, self._columns), descending, last) for each, descending, last in frame.order
        )
        below = extended(self._input, self._columns)
        if not frame.timed:
            return SortedWindow(below, keys, order, frame.rows, calls)
        return OverWindow(below, keys, order[0].column, frame.rows, frame.preceding, calls)

    def finished(self, expression: Expression) -> Expression:
        """An expression with the places that results have in :meth:`plan`."""
        if self._number is None and self._frame is None:
            return expression
        whole = self.plan()
        first = len(whole.names) - (1 if self._number is not None else len(self._calls))

        def place(part: Expression) -> Expression | None:
            if isinstance(part, InputRef) and part.index >= AFTER:
                return InputRef(part.index - AFTER + first, part.type)
            return None

        return rewrite(expression, place)
