"""A source that follows a script: what comes in each micro-batch, and what time it is then."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.connectors.source import Chunk, SplitSource
from firesteel.datastream.connectors.base import Source
from firesteel.errors import SerializationError, short_repr
from firesteel.testing.crash import Crash
from firesteel.testing.steps import ProcessingTime, Step, Watermark, checked, chunks, parts

__all__ = ["ListSource", "ScriptReader"]


class ListSource(Source):
    """Each step is a micro-batch of its own: a list of elements, a watermark, or a moment of processing time.

    Elements are plain values, or :class:`~firesteel.testing.Record` where they have timestamps. A list may hold a
    :class:`~firesteel.testing.Watermark` between elements, and a :class:`~firesteel.testing.Crash`. Where a script
    sets processing time, the job's clock is the script's: it starts at 0 and stands still between those steps.

    All elements come from the source's first subtask, in order. Watermarks come from every one.

    >>> from firesteel.common import WatermarkStrategy
    >>> from firesteel.testing import Record, run_pipeline
    >>> steps = [[Record("a", 3), Record("b", 4)], Watermark(4), ["c"]]
    >>> def build(env):
    ...     source = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "steps")
    ...     return source.map(str.upper)
    >>> run_pipeline(build)
    ['A', 'B', 'C']
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = [checked(step) for step in steps]

    def split_source(self) -> SplitSource:
        times: list[int] = []
        for step in self._steps:
            before = times[-1] if times else 0
            times.append(max(before, step.milliseconds) if isinstance(step, ProcessingTime) else before)
        scripted = any(isinstance(step, ProcessingTime) for step in self._steps)
        return ScriptReader([_pickled(step) for step in self._steps], [*times, times[-1]] if scripted else [])


def _pickled(step: Step) -> bytes:
    # Time is known to the driver alone.
    elements = step if isinstance(step, list) else [step] if isinstance(step, Watermark) else []
    try:
        return pickle.dumps(elements, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise SerializationError(
            f"ListSource: a step cannot be pickled, so it cannot reach the workers: {error}. The step is "
            f"{short_repr(elements, 120)}."
        ) from error


class ScriptReader(SplitSource):
    """The reader behind a ListSource. A position is a number of steps; the end of input is a last step, alone."""

    splittable = False

    def __init__(self, steps: list[bytes], times: list[int]) -> None:
        self._steps = steps
        self._times = times
        self._end = len(steps) + 1

    def for_tasks(self) -> SplitSource:
        return ScriptReader([], [])

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(position + 1, self._end)

    def ended(self, position: int) -> bool:
        return position >= self._end

    def count(self, start: int, end: int) -> int:
        return end - start

    def processing_time(self, position: int) -> int | None:
        return self._times[position - 1] if self._times and position > 0 else None

    def plan(self, start: int, end: int, parallelism: int) -> list[Any]:
        steps = self._steps[start:end]
        return [(subtask, steps) for subtask in range(parallelism)]

    def read(self, share: Any) -> Iterator[Chunk | int]:
        subtask, steps = share
        for step in steps:
            for part in parts(pickle.loads(step)):
                if isinstance(part, Watermark):
                    yield part.timestamp
                elif subtask > 0:
                    continue
                elif isinstance(part, Crash):
                    part.hit()
                else:
                    yield from chunks(part)
