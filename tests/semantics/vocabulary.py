"""The words that the programs of transcripts are made of, besides Firesteel's own."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common import Time, Types
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from firesteel.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from firesteel.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import *  # noqa: F403
from firesteel.datastream.window import (
    EventTimeTrigger,
    Evictor,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
    Window,
    WindowAssigner,
)

Record = tuple[Any, Any]
"""Key and value."""

late = OutputTag("late")
forever = 2**63 - 1


def ms(millis: int) -> Time:
    return Time.milliseconds(millis)


def text(window: Window, *parts: Any) -> str:
    """A window and what belongs to it, as scripts write it."""
    shown = f"[{window.start},{window.end})" if isinstance(window, TimeWindow) else f"<{window}>"
    return f"{shown}: {' '.join(map(str, parts))}"


def with_late(stream: DataStream) -> DataStream:
    """The results, and the late records as ``late a=1``."""
    return stream.union(stream.get_side_output(late).map(lambda record: f"late {record[0]}={record[1]}"))


class Add(ReduceFunction):
    def reduce(self, value1: Record, value2: Record) -> Record:
        return value1[0], value1[1] + value2[1]


class Sum(AggregateFunction):
    """Sums up in a list, which is changed in place."""

    def create_accumulator(self) -> list[Any]:
        return [None, 0]

    def add(self, value: Record, accumulator: list[Any]) -> list[Any]:
        accumulator[:] = value[0], accumulator[1] + value[1]
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Record:
        return accumulator[0], accumulator[1]

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a[1] += acc_b[1]
        return acc_a


class Chain(ReduceFunction):
    """Strings values together, so that their order shows."""

    def reduce(self, value1: Record, value2: Record) -> Record:
        return value1[0], f"{value1[1]} {value2[1]}"


class Collect(AggregateFunction):
    """The same, with an accumulator that is changed in place."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Record, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Record:
        return accumulator[0][0], " ".join(str(value) for _, value in accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a.extend(acc_b)
        return acc_a


class General(EventTimeTrigger):
    """The default trigger, not recognised as such: windows with it take no short way."""


class Show(ProcessWindowFunction[Any, Any, Any, Any]):
    """Key, window and values: ``a[0,10): 1 2``."""

    def process(self, key: Any, context: Any, elements: Iterable[Record]) -> Iterator[str]:
        yield f"{key}{text(context.window(), *(value for _, value in elements))}"


class Apply(WindowFunction[Any, Any, Any, Any]):
    """The same, without a context."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Record]) -> list[str]:
        return [f"{key}{text(window, *(value for _, value in inputs))}"]


class ShowAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Record]) -> Iterator[str]:
        yield text(context.window(), *(f"{key}{value}" for key, value in elements))


class ApplyAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Record]) -> list[str]:
        return [text(window, *(f"{key}{value}" for key, value in inputs))]


class Nothing(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Record]) -> None:  # type: ignore[override]
        return None


class Times(ProcessWindowFunction[Any, Any, Any, Any]):
    """The watermark and the processing time while a window fires."""

    def process(self, key: Any, context: Any, elements: Iterable[Record]) -> Iterator[str]:
        mark = context.current_watermark()
        shown = "end" if mark == forever else mark
        yield f"{key} watermark {shown} now {context.current_processing_time()}"


class Stamped(ProcessFunction):
    """A result with its timestamp."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f"{value} at {ctx.timestamp()}"


class Firings(ProcessWindowFunction[Any, Any, Any, Any]):
    """How often this window has fired, and the windows of this key, in state of either kind; says what it clears."""

    OF_WINDOW = ValueStateDescriptor("firings", Types.INT())
    OF_KEY = ReducingStateDescriptor("firings", operator.add, Types.INT())

    def process(self, key: Any, context: Any, elements: Iterable[Record]) -> Iterator[str]:
        own = context.window_state().get_state(self.OF_WINDOW)
        own.update((own.value() or 0) + 1)
        every = context.global_state().get_reducing_state(self.OF_KEY)
        every.add(1)
        yield f"{key}{text(context.window(), *(value for _, value in elements))} fired {own.value()} of {every.get()}"

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.OF_WINDOW).clear()


class Forgetful(ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts the windows that are open in the key's own state, and takes them off in clear()."""

    OPEN = ValueStateDescriptor("fired", Types.INT())

    def process(self, key: Any, context: Any, elements: Iterable[Record]) -> Iterator[str]:
        state = context.global_state().get_state(self.OPEN)
        state.update((state.value() or 0) + 1)
        yield f"{key}{text(context.window(), *(value for _, value in elements))} open {state.value()}"

    def clear(self, context: Any) -> None:
        state = context.global_state().get_state(self.OPEN)
        state.update(state.value() - 1 or None)


def evens(stream: DataStream) -> DataStream:
    """Half of a stream, as one side of a join."""
    return stream.filter(lambda record: record[1] % 2 == 0).set_parallelism(1)


def odds(stream: DataStream) -> DataStream:
    """The other half."""
    return stream.filter(lambda record: record[1] % 2 == 1).set_parallelism(1)


def key(record: Record) -> Any:
    return record[0]


class Pairs(ProcessJoinFunction):
    """``a: 2 3 at 7`` for each pair of an interval join."""

    def process_element(self, left: Record, right: Record, ctx: ProcessJoinFunction.Context) -> Iterator[str]:
        assert ctx.get_timestamp() == max(ctx.get_left_timestamp(), ctx.get_right_timestamp())
        yield f"{left[0]}: {left[1]} {right[1]} at {ctx.get_timestamp()}"


def pair(left: Record, right: Record) -> str:
    return f"{left[0]}: {left[1]} {right[1]}"


def groups(lefts: list[Record], rights: list[Record]) -> list[str]:
    """``a: 2 4 / 3`` for each window of a co-group."""
    name = (lefts or rights)[0][0]
    return [f"{name}: {' '.join(str(v) for _, v in lefts)} / {' '.join(str(v) for _, v in rights)}"]


def sides(lefts: list[Record], rights: list[Record]) -> list[str]:
    """The same for scripts, which have no spaces at an end: ``a: 2 / -``."""
    return [" ".join(word or "-" for word in line.split(" ")) for line in groups(lefts, rights)]


class BelowZero(Trigger[Any, Any]):
    """Fires at a negative value, counts the others in its state, and fires a millisecond of event time after the
    third. In windows that merge, the counts are added and the timer is set anew."""

    COUNT = ReducingStateDescriptor("positive", operator.add, Types.INT())

    def on_element(self, element: Record, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if element[1] < 0:
            return TriggerResult.FIRE
        count: Any = ctx.get_partitioned_state(self.COUNT)
        count.add(1)
        if count.get() == 3:
            ctx.register_event_time_timer(timestamp + 1)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.COUNT)
        count: Any = ctx.get_partitioned_state(self.COUNT)
        if (count.get() or 0) >= 3:
            ctx.register_event_time_timer(window.start + 1)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.COUNT).clear()


class Early(EventTimeTrigger):
    """The default, and a purge without a result at the value 0."""

    def on_element(self, element: Record, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        super().on_element(element, timestamp, window, ctx)
        return TriggerResult.PURGE if element[1] == 0 else TriggerResult.CONTINUE


class Ahead(Trigger[Any, Any]):
    """Fires seven milliseconds after the start of a window, and leaves the timers of merged windows where they are."""

    def on_element(self, element: Record, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_event_time_timer(window.start + 7)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Nothing: the next record sets the timer."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Nothing: what is set comes."""


class FirstEnd(Ahead):
    """Fires at the end of the window that the value 1 made, and nowhere else; leaves its timer where it is, too."""

    def on_element(self, element: Record, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if element[1] == 1:
            ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE


class Odd(Evictor[Any, Any]):
    """Takes odd values out before, and whatever is below 10 after the function."""

    def evict_before(self, elements: list[Any], size: int, window: Any, evictor_context: Any) -> None:
        elements[:] = [one for one in elements if one.value[1] % 2 == 0]

    def evict_after(self, elements: list[Any], size: int, window: Any, evictor_context: Any) -> None:
        elements[:] = [one for one in elements if one.value[1] >= 10]


class ByValue(WindowAssigner[Any, TimeWindow]):
    """An assigner of a user's: a record with the value n is in n windows that end together."""

    def assign_windows(self, element: Record, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp - back, timestamp + 10) for back in range(element[1])]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class Bursts(MergingWindowAssigner[Any, TimeWindow]):
    """A merging assigner of a user's: windows of 5 that meet become one, as long as that is no longer than 12."""

    def assign_windows(self, element: Record, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 5)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        bursts: list[list[TimeWindow]] = []
        for window in sorted(windows, key=lambda one: (one.start, one.end)):
            near = bursts and window.start <= max(one.end for one in bursts[-1])
            if near and window.end - bursts[-1][0].start <= 12:
                bursts[-1].append(window)
            else:
                bursts.append([window])
        for burst in bursts:
            if len(burst) > 1:
                callback.merge(burst, TimeWindow(burst[0].start, max(one.end for one in burst)))

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True
