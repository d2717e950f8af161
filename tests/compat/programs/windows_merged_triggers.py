"""Triggers of sessions that a record bridges: what becomes of their state and their timers when windows merge."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
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
        window = context.window()
        yield f"{self.name} {key}> [{window.start}, {window.end}) {sorted(reading[1] for reading in elements)}"


class Quiet(Trigger):
    """Never fires, and can merge."""

    def can_merge(self) -> bool:
        return True

    def on_element(
        self, element: Reading, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        pass


class Sum(Quiet):
    """Fires with each record from a sum of 20 on. Two sessions may have that together only."""

    def __init__(self, merging: bool) -> None:
        self.merging = merging
        # In PyFlink a ReducingState forgets one of the two sums.
        self.values = ListStateDescriptor("values", Types.INT())

    def on_element(
        self, element: Reading, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        state = ctx.get_partitioned_state(self.values)
        state.add(element[1])
        return TriggerResult.FIRE if sum(state.get()) >= 20 else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if self.merging:
            ctx.merge_partitioned_state(self.values)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.values).clear()


class Seen(Quiet):
    """Fires and purges when an even number of records was seen in all parts of a session."""

    def __init__(self) -> None:
        self.seen = ListStateDescriptor("seen", Types.INT())

    def on_element(
        self, element: Reading, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        state = ctx.get_partitioned_state(self.seen)
        state.add(element[1])
        return TriggerResult.CONTINUE if len(list(state.get())) % 2 else TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.seen)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.seen).clear()


class Starts(Quiet):
    """Has a timer at the start of each session and of each merger. Those of sessions that are part of another now
    may still be set, or be deleted with them."""

    def __init__(self, deleting: bool) -> None:
        self.deleting = deleting

    def on_element(
        self, element: Reading, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.start)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.register_event_time_timer(window.start + 1)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        if self.deleting:
            ctx.delete_event_time_timer(window.start)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(600))
    readings = [
        *(("a", 12, 1000), ("a", 9, 14000), ("b", 3, 5000), ("a", 1, 8000), ("a", 5, 60000), ("b", 6, 15000)),
        *(("b", 11, 26001), ("a", 8, 51000), ("c", 9, 3000), ("c", 10, 12000), ("a", 7, 33000), ("a", 4, 42000)),
        *(("a", 2, 24000), ("c", 13, 3000)),
    ]
    stream = env.from_collection(readings, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.key_by(lambda reading: reading[0], Types.STRING())
    triggers = {
        "merged sum": Sum(merging=True),
        "sum of a part": Sum(merging=False),
        "seen": Seen(),
        "starts": Starts(deleting=False),
        "starts, deleted": Starts(deleting=True),
        "purging": PurgingTrigger.of(EventTimeTrigger.create()),
    }
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(10))
    for name, trigger in triggers.items():
        keyed.window(sessions).trigger(trigger).process(Show(name), Types.STRING()).print()
    # Sessions that grow and are not bridged: PyFlink's counters are ReducingStates, too.
    growing = timed.filter(lambda reading: reading[0] != "a").key_by(lambda reading: reading[0], Types.STRING())
    for name, trigger in {"count": CountTrigger.of(3), "purging count": PurgingTrigger.of(CountTrigger.of(2))}.items():
        growing.window(sessions).trigger(trigger).process(Show(name), Types.STRING()).print()
    env.execute("triggers of merged sessions")


if __name__ == "__main__":
    main()
