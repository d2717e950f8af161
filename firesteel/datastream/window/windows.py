"""Windows: the finite groups that a stream without end is cut into.

Windows are small values. Equal ones are interchangeable, they have an order, and they may be keys of a dict.
"""

from __future__ import annotations

import copyreg
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from firesteel.durable.names import stored_as

if TYPE_CHECKING:
    from firesteel.datastream.window.assigners import MergingWindowAssigner

__all__ = ["MAX_TIMESTAMP", "NO_TIMESTAMP", "CountWindow", "GlobalWindow", "TimeWindow", "Window"]

MAX_TIMESTAMP = 2**63 - 1
"""The end of time: the watermark after the last record of a bounded stream."""

NO_TIMESTAMP = -(2**63)
"""What a record has that was given no timestamp."""


class Window(ABC):
    """The root of all windows. A window of your own must be hashable, comparable with ``==`` and picklable."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last millisecond that belongs to the window; it is complete when the watermark gets there."""


@total_ordering
class TimeWindow(Window):
    """The time from ``start`` up to, and without, ``end``, in milliseconds.

    >>> window = TimeWindow(0, 1000)
    >>> window.max_timestamp(), window == TimeWindow(0, 1000), window < TimeWindow(500, 1500)
    (999, True, True)
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch: a session that ends where another one starts goes on in it.

        >>> TimeWindow(0, 10).intersects(TimeWindow(10, 20)), TimeWindow(0, 10).intersects(TimeWindow(11, 20))
        (True, False)
        """
        return self.start <= other.end and other.start <= self.end

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both.

        >>> TimeWindow(0, 10).cover(TimeWindow(20, 30))
        TimeWindow(start=0, end=30)
        """
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Where the window of this size starts that a time falls into; starts lie at ``offset`` plus multiples.

        >>> TimeWindow.get_window_start_with_offset(17, 0, 5), TimeWindow.get_window_start_with_offset(-1, 2, 5)
        (15, -3)
        """
        # Python's remainder has the sign of the divisor, so times and offsets below zero need no case of their own.
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[Any]) -> None:
        """Calls back once for each group of different windows that overlap or touch, with the one they become."""
        group: list[TimeWindow] = []
        covered: TimeWindow | None = None
        groups = []
        for window in sorted(set(windows)):
            if covered is not None and covered.intersects(window):
                group.append(window)
                covered = covered.cover(window)
                continue
            if covered is not None:
                groups.append((group, covered))
            group, covered = [window], window
        if covered is not None:
            groups.append((group, covered))
        # All groups are known before the first call: a callback may change what the windows came from.
        for members, merged in groups:
            if len(members) > 1:
                callback.merge(members, merged)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return type(self) is type(other) and self.start == other.start and self.end == other.end

    def __lt__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) < (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


@total_ordering
class CountWindow(Window):
    """The window with a number, of those that hold so many elements each."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountWindow):
            return NotImplemented
        return type(self) is type(other) and self.id == other.id

    def __lt__(self, other: CountWindow) -> bool:
        if not isinstance(other, CountWindow):
            return NotImplemented
        return self.id < other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


@total_ordering
class GlobalWindow(Window):
    """The one window that holds everything.

    >>> GlobalWindow.get() == GlobalWindow()
    True
    """

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The window; there is no need for more than one."""
        return _GLOBAL

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __lt__(self, other: GlobalWindow) -> bool:
        return False if isinstance(other, GlobalWindow) else NotImplemented

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL = GlobalWindow()


@stored_as("time_window")
def _time_window(start: int, end: int) -> TimeWindow:
    return TimeWindow(start, end)


@stored_as("count_window")
def _count_window(id: int) -> CountWindow:
    return CountWindow(id)


@stored_as("global_window")
def _global_window() -> GlobalWindow:
    return _GLOBAL


def _reduce_time(window: TimeWindow) -> tuple[Any, ...]:
    return _time_window, (window.start, window.end)


def _reduce_count(window: CountWindow) -> tuple[Any, ...]:
    return _count_window, (window.id,)


def _reduce_global(window: GlobalWindow) -> tuple[Any, ...]:
    return _global_window, ()


# State is full of windows, and this is their shortest form. Registered rather than written as __reduce__, because
# it then counts for these very classes alone: a subclass with fields of its own is pickled with all of them.
copyreg.pickle(TimeWindow, _reduce_time)
copyreg.pickle(CountWindow, _reduce_count)
copyreg.pickle(GlobalWindow, _reduce_global)
