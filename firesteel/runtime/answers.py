"""The order in which answers go out: that of their elements, or any between two watermarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from firesteel.runtime.frames import Watermark

__all__ = ["Answers", "Element", "OrderedAnswers", "Request", "UnorderedAnswers"]

Element = tuple[list[Any], list[int] | None] | Watermark
"""Records and their timestamps, or a watermark between them."""


class Request:
    """One element on its way."""

    __slots__ = ("answer", "deadline", "segment", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value = value
        self.timestamp = timestamp
        self.answer: list[Any] | None = None
        self.deadline: float
        self.segment: _Segment


class Answers(ABC):
    """What was asked for and what may go out."""

    def __init__(self) -> None:
        self._elements: list[Element] = []
        self._values: list[Any] = []
        self._times: list[int] = []
        self._timed = False

    @abstractmethod
    def expect(self, request: Request) -> None:
        """A request starts, behind all that was expected and marked before."""

    @abstractmethod
    def mark(self, watermark: Watermark) -> None:
        """A watermark stands behind all that was expected so far."""

    @abstractmethod
    def answer(self, request: Request, answer: list[Any]) -> int:
        """A request has its answer. Returns how many requests are done with, because theirs may go out."""

    @abstractmethod
    def forget(self) -> None:
        """Nothing is expected any more."""

    def take(self) -> list[Element]:
        """What may go out, in order. It is handed over once."""
        self._seal()
        elements, self._elements = self._elements, []
        return elements

    def clear(self) -> None:
        self.take()
        self.forget()

    def _release(self, answer: list[Any], timestamp: int | None) -> None:
        if self._timed is not (timestamp is not None):
            self._seal()
            self._timed = timestamp is not None
        self._values += answer
        if timestamp is not None:
            self._times += [timestamp] * len(answer)

    def _release_watermark(self, watermark: Watermark) -> None:
        self._seal()
        self._elements.append(watermark)

    def _seal(self) -> None:
        if self._values:
            self._elements.append((self._values, self._times if self._timed else None))
            self._values, self._times = [], []


class OrderedAnswers(Answers):
    """Answers in the order of their elements.

    >>> answers, first, second = OrderedAnswers(), Request("a", None), Request("b", None)
    >>> answers.expect(first), answers.expect(second), answers.answer(second, ["B"]), answers.take()
    (None, None, 0, [])
    >>> answers.answer(first, ["A"]), answers.take()
    (2, [(['A', 'B'], None)])
    """

    def __init__(self) -> None:
        super().__init__()
        self._line: deque[Request | Watermark] = deque()

    def expect(self, request: Request) -> None:
        self._line.append(request)

    def mark(self, watermark: Watermark) -> None:
        if self._line:
            self._line.append(watermark)
        else:
            self._release_watermark(watermark)

    def answer(self, request: Request, answer: list[Any]) -> int:
        request.answer = answer
        line, released = self._line, 0
        while line:
            head = line[0]
            if isinstance(head, Watermark):
                self._release_watermark(head)
            elif head.answer is None:
                break
            else:
                self._release(head.answer, head.timestamp)
                released += 1
            line.popleft()
        return released

    def forget(self) -> None:
        self._line.clear()


class _Segment:
    """The requests between two watermarks."""

    __slots__ = ("answered", "expected", "watermark")

    def __init__(self) -> None:
        self.expected = 0
        self.answered: list[Request] = []
        """Those that wait for the segments before."""
        self.watermark: Watermark | None = None
        """The one that ends the segment, once it has come."""


class UnorderedAnswers(Answers):
    """Answers as they come, except that none passes a watermark, in either direction.

    >>> answers, first, second = UnorderedAnswers(), Request("a", None), Request("b", None)
    >>> answers.expect(first), answers.expect(second), answers.answer(second, ["B"]), answers.take()
    (None, None, 1, [(['B'], None)])
    """

    def __init__(self) -> None:
        super().__init__()
        self._segments = deque([_Segment()])

    def expect(self, request: Request) -> None:
        request.segment = self._segments[-1]
        request.segment.expected += 1

    def mark(self, watermark: Watermark) -> None:
        last = self._segments[-1]
        if len(self._segments) == 1 and not last.expected:
            self._release_watermark(watermark)
            return
        last.watermark = watermark
        self._segments.append(_Segment())

    def answer(self, request: Request, answer: list[Any]) -> int:
        segment = request.segment
        segment.expected -= 1
        if segment is not self._segments[0]:
            request.answer = answer
            segment.answered.append(request)
            return 0
        self._release(answer, request.timestamp)
        released = 1
        while segment.watermark is not None and not segment.expected:
            self._release_watermark(segment.watermark)
            self._segments.popleft()
            segment = self._segments[0]
            for waiting in segment.answered:
                assert waiting.answer is not None
                self._release(waiting.answer, waiting.timestamp)
            released += len(segment.answered)
            segment.answered = []
        return released

    def forget(self) -> None:
        self._segments = deque([_Segment()])
