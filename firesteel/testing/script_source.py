"""A source that follows a script: what comes in each micro-batch, and what time it is then."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream.connectors.base import Source
from firesteel.errors import SerializationError, short_repr
from firesteel.testing.crash import Crash
from firesteel.testing.steps import ProcessingTime, Step, Watermark, checked, chunks, parts

__all__ = ["ListSource", "ScriptEnumerator", "ScriptReader"]


class StepSplit(NamedTuple):
    """One step of one script, on its way to a subtask."""

    pickled: bytes
    with_elements: bool
    """Elements come from one subtask, watermarks from all."""


class ListSource(Source[StepSplit, Any]):
    """Each step is a micro-batch of its own: a list of elements, a watermark, or a moment of processing time.

    Elements are plain values, or :class:`~firesteel.testing.Record` where they have timestamps. A list may hold a
    :class:`~firesteel.testing.Watermark` between elements, and a :class:`~firesteel.testing.Crash`. Where a script
    sets processing time, the job's clock is the script's: it starts at 0 and stands still between those steps.

    All elements come from the source's first subtask, in order. Watermarks come from every one. With ``ends=False``
    the input does not end with the last step: the job waits for more until it is stopped, with a savepoint perhaps.

    >>> from firesteel.common import WatermarkStrategy
    >>> from firesteel.testing import Record, run_pipeline
    >>> steps = [[Record("a", 3), Record("b", 4)], Watermark(4), ["c"]]
    >>> def build(env):
    ...     source = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "steps")
    ...     return source.map(str.upper)
    >>> run_pipeline(build)
    ['A', 'B', 'C']

    A dict of scripts is a source with splits, as partitions of a topic are: each script is a split with an event time
    of its own, which lasts until its last step. The n-th steps of all splits come together. Splits go to the subtasks
    by turns, and a watermark is of its split.

    >>> splits = {"north": [[Record("a", 3)], [Record("b", 9)]], "south": [[Record("c", 1)]]}
    >>> def build(env):
    ...     return env.from_source(ListSource(splits), WatermarkStrategy.for_monotonous_timestamps(), "stations")
    >>> run_pipeline(build)
    ['a', 'c', 'b']
    """

    def __init__(self, steps: Iterable[Step] | Mapping[str, Iterable[Step]], ends: bool = True) -> None:
        self._ends = ends
        self._splits = isinstance(steps, Mapping)
        scripts = steps if isinstance(steps, Mapping) else {"": steps}
        self._scripts = {name: [checked(step) for step in script] for name, script in scripts.items()}

    def create_enumerator(self) -> ScriptEnumerator:
        times = [0]
        for together in zip_longest(*self._scripts.values()):
            moments = [step.milliseconds for step in together if isinstance(step, ProcessingTime)]
            times.append(max([times[-1], *moments]))
        scripted = any(isinstance(step, ProcessingTime) for script in self._scripts.values() for step in script)
        scripts = {name: [_pickled(step) for step in script] for name, script in self._scripts.items()}
        return ScriptEnumerator(scripts, [*times[1:], times[-1]] if scripted else [], self._splits, self._ends)

    def create_reader(self) -> ScriptReader:
        return ScriptReader()


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


class ScriptEnumerator(SplitEnumerator[StepSplit]):
    """The enumerator of a ListSource. A position is a number of steps; the end of input is a last step, alone."""

    splittable = False

    def __init__(self, scripts: dict[str, list[bytes]], times: list[int], has_splits: bool, ends: bool = True) -> None:
        self._scripts = scripts
        self._times = times
        self._has_splits = has_splits
        self._end = max((len(script) for script in scripts.values()), default=0) + 1
        self._last = self._end if ends else self._end - 1
        self.bounded = ends

    def ends_within(self, records: int) -> bool:
        return self.bounded and self._end <= records

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(position + 1, max(position, self._last))

    def ended(self, position: int) -> bool:
        return position >= self._end

    def count(self, start: int, end: int) -> int:
        return end - start

    def processing_time(self, position: int) -> int | None:
        return self._times[position - 1] if self._times and position > 0 else None

    def splits(self, position: int, parallelism: int) -> list[list[str]] | None:
        if not self._has_splits:
            return None
        # A script that does not end may go on after its last step.
        left = [name for name, script in self._scripts.items() if len(script) > position or not self.bounded]
        return [[name for name in names if name in left] for names in self._shared_out(parallelism)]

    def _shared_out(self, parallelism: int) -> list[list[str]]:
        names = list(self._scripts)
        return [names[subtask::parallelism] if self._has_splits else names for subtask in range(parallelism)]

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[StepSplit]]]:
        shares = enumerate(self._shared_out(parallelism))
        return [
            [self._range(name, step, subtask) for step in range(start, end) for name in names if self._has(name, step)]
            for subtask, names in shares
        ]

    def _has(self, name: str, step: int) -> bool:
        return step < len(self._scripts[name])

    def _range(self, name: str, step: int, subtask: int) -> SplitRange[StepSplit]:
        split = StepSplit(self._scripts[name][step], self._has_splits or subtask == 0)
        return SplitRange(split, step, step + 1, name if self._has_splits else None)


class ScriptReader(SourceReader[StepSplit, Any]):
    def read(self, split: StepSplit, start: int, end: int) -> Iterator[Records[Any] | int]:
        for part in parts(pickle.loads(split.pickled)):
            if isinstance(part, Watermark):
                yield part.timestamp
            elif not split.with_elements:
                continue
            elif isinstance(part, Crash):
                part.hit()
            else:
                yield from chunks(part)
