"""Windows of the Table API, with PyFlink's names."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import NOWHERE, Expression, RowInterval, node_of
from firesteel.table.sql.syntax import Node, OrderItem, Symbol, WindowFrame
from firesteel.table.sql.syntax import Over as OverNode

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]


@dataclass(frozen=True)
class GroupWindow:
    """A window that rows are grouped by, under a name."""

    kind: str
    spans: tuple[Node, ...]
    time: Node
    name: str


class _OnTime:
    """A window that needs a name."""

    def __init__(self, kind: str, spans: tuple[Node, ...], time: Node) -> None:
        self._kind = kind
        self._spans = spans
        self._time = time

    def alias(self, alias: str) -> GroupWindow:
        """The window under a name."""
        return GroupWindow(self._kind, self._spans, self._time, alias)


class _WithSize:
    """A window that needs a time."""

    def __init__(self, kind: str, *spans: Node) -> None:
        self._kind = kind
        self._spans = spans

    def on(self, time_field: Expression) -> _OnTime:
        """The column with the time: one that has a watermark, or processing time."""
        return _OnTime(self._kind, self._spans, node_of(time_field))


class _SlideWithSize:
    def __init__(self, size: Node) -> None:
        self._size = size

    def every(self, slide: Expression) -> _WithSize:
        """How far apart the windows begin."""
        span = _span(slide)
        if isinstance(span, RowInterval) != isinstance(self._size, RowInterval):
            raise ProgramError("The size and the slide of a window are both of time, or both of rows.")
        return _WithSize("HOP", span, self._size)


def _span(value: Expression) -> Node:
    node = node_of(value)
    if isinstance(node, RowInterval) and node.rows < 1:
        raise ProgramError(f"A window has one row at least, got row_interval({node.rows}).")
    return node


class Tumble:
    """Windows one behind the other, of a length of time or of a number of rows (``row_interval(10)``).

    >>> from firesteel.table.expressions import col, lit
    >>> Tumble.over(lit(10).minutes).on(col("rowtime")).alias("w").name
    'w'
    """

    @classmethod
    def over(cls, size: Expression) -> _WithSize:
        """How long a window is."""
        return _WithSize("TUMBLE", _span(size))


class Slide:
    """Windows of one length that begin at fixed distances, and may overlap; of time, or of rows (``row_interval(10)``).

    >>> from firesteel.table.expressions import col, lit
    >>> Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("rowtime")).alias("w").kind
    'HOP'
    """

    @classmethod
    def over(cls, size: Expression) -> _SlideWithSize:
        """How long a window is."""
        return _SlideWithSize(_span(size))


class Session:
    """Windows that end when no row came for some time.

    >>> from firesteel.table.expressions import col, lit
    >>> Session.with_gap(lit(10).minutes).on(col("rowtime")).alias("w").kind
    'SESSION'
    """

    @classmethod
    def with_gap(cls, gap: Expression) -> _WithSize:
        """For how long no row came."""
        span = _span(gap)
        if isinstance(span, RowInterval):
            raise ProgramError("The gap of a session is a time: lit(10).minutes.")
        return _WithSize("SESSION", span)


@dataclass(frozen=True)
class OverWindow:
    """A window around each row, under a name."""

    name: str
    node: OverNode


class _Ordered:
    """A window that may get bounds, and needs a name."""

    def __init__(
        self, partition: tuple[Node, ...], order: Node, start: Expression | None = None, end: Expression | None = None
    ) -> None:
        self._partition = partition
        self._order = order
        self._start = start
        self._end = end

    def preceding(self, preceding: Expression) -> _Ordered:
        """Where it begins: so many rows (``row_interval``) or so long before a row, or UNBOUNDED_ROW or
        UNBOUNDED_RANGE."""
        return _Ordered(self._partition, self._order, preceding, self._end)

    def following(self, following: Expression) -> _Ordered:
        """Where it ends: CURRENT_ROW or CURRENT_RANGE."""
        return _Ordered(self._partition, self._order, self._start, following)

    def alias(self, alias: str) -> OverWindow:
        """The window under a name."""
        item = self._order if isinstance(self._order, OrderItem) else OrderItem(self._order, False, None, span=NOWHERE)
        return OverWindow(alias, OverNode(None, self._partition, (item,), self._frame(), span=NOWHERE))

    def _frame(self) -> WindowFrame | None:
        if self._start is None:
            return None
        rows, start = _bound(node_of(self._start), "PRECEDING")
        end: tuple[Node | None, str] = (None, "CURRENT ROW")
        if self._end is not None:
            of_rows, end = _bound(node_of(self._end), "FOLLOWING")
            if of_rows != rows:
                raise ProgramError("preceding() and following() are both of rows, or both of time.")
        return WindowFrame(rows, start, end, span=NOWHERE)


def _bound(node: Node, side: str) -> tuple[bool, tuple[Node | None, str]]:
    """Whether a bound counts rows, and what SQL would say."""
    if isinstance(node, Symbol):
        word, _, unit = node.word.partition("_")
        return unit == "ROW", (None, "CURRENT ROW" if word == "CURRENT" else side)
    if isinstance(node, RowInterval):
        return True, (node.count, side)
    return False, (node, side)


class _Partitioned:
    def __init__(self, partition: tuple[Node, ...]) -> None:
        self._partition = partition

    def order_by(self, order_by: Expression) -> _Ordered:
        """The time attribute in whose order rows are."""
        return _Ordered(self._partition, node_of(order_by))


class Over:
    """Windows around each row.

    >>> from firesteel.table.expressions import UNBOUNDED_RANGE, col
    >>> Over.partition_by(col("a")).order_by(col("rowtime")).preceding(UNBOUNDED_RANGE).alias("w").name
    'w'
    """

    @classmethod
    def partition_by(cls, *partition_by: Expression) -> _Partitioned:
        """Rows with the same values have a window of their own."""
        for each in partition_by:
            if not isinstance(each, Expression):
                raise ProgramError(f"partition_by() takes expressions such as col('a'), got {short_repr(each, 60)}.")
        return _Partitioned(tuple(node_of(each) for each in partition_by))

    @classmethod
    def order_by(cls, order_by: Expression) -> _Ordered:
        """All rows have one window."""
        return _Ordered((), node_of(order_by))
