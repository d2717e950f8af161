"""Triggers: by count, purging, continuous, and one of a user's with state and a timer."""

import operator
from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ReducingStateDescriptor
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

ORDER = "label"
Reading = tuple[str, int, int]


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        yield f"{self.name} {key}> {[reading[1] for reading in elements]}"


class Threshold(Trigger):
    """Fires and purges when the values sum up to 20, and fires what is left at the end."""

    def __init__(self) -> None:
        self.sum = ReducingStateDescriptor("sum", operator.add, Types.INT())

    def on_element(
        self, element: Reading, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        state = ctx.get_partitioned_state(self.sum)
        state.add(element[1])
        if state.get() < 20:
            return TriggerResult.CONTINUE
        state.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.sum)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.sum).clear()


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    readings = [
        *(("a", 1, 1000), ("b", 2, 9999), ("a", 3, 500), ("a", 16, 12000), ("b", 15, 31000), ("a", 7, 7000)),
        *(("a", 12, 2000), ("b", 21, 8000), ("a", 8, 2000), ("b", 9, 39000), ("a", 30, 13000)),
    ]
    stream = env.from_collection(readings, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.key_by(lambda reading: reading[0], Types.STRING())
    tens = TumblingEventTimeWindows.of(Time.seconds(10))
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(4))
    cases = {
        "count": (tens, CountTrigger.of(2)),
        "purging count": (tens, PurgingTrigger.of(CountTrigger.of(2))),
        "purging": (tens, PurgingTrigger.of(EventTimeTrigger())),
        "never": (tens, NeverTrigger()),
        "continuous": (tens, ContinuousEventTimeTrigger.of(Time.seconds(6))),
        "global": (GlobalWindows.create(), CountTrigger.of(3)),
        "purging global": (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2))),
        "sessions by count": (sessions, CountTrigger.of(3)),
        "own": (tens, Threshold()),
    }
    for name, (windows, trigger) in cases.items():
        keyed.window(windows).trigger(trigger).process(Show(name), Types.STRING()).print()
    env.execute("triggers")


if __name__ == "__main__":
    main()
