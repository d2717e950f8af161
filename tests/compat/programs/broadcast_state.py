"""Broadcast state: patterns for all, what users do by key, and limits for an unkeyed stream.

Which of two inputs comes first is open, so users' actions are kept and judged at the end of time, when all patterns are
known; and on the unkeyed side only what the broadcast records find is told.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from firesteel.common import TypeInformation, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor

ORDER = "none"


def pair_type() -> TypeInformation:
    return Types.TUPLE([Types.STRING(), Types.STRING()])


def patterns_state() -> MapStateDescriptor:
    return MapStateDescriptor("patterns", Types.STRING(), pair_type())


def limits_state() -> MapStateDescriptor:
    return MapStateDescriptor("limits", Types.STRING(), Types.INT())


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 1000


class Detector(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.actions = runtime_context.get_list_state(ListStateDescriptor("actions", Types.STRING()))

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        patterns = ctx.get_broadcast_state(patterns_state())
        patterns.put(f"{value[0]}-{value[1]}", value)
        if patterns.contains("login-nothing"):
            patterns.remove("login-nothing")

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        self.actions.add(value[1])
        ctx.timer_service().register_event_time_timer(5000)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[str]:
        patterns = ctx.get_broadcast_state(patterns_state())
        yield f"{ctx.get_current_key()} knows {sorted(patterns.keys())}"
        actions = list(self.actions.get())
        for before, now in pairwise(actions):
            for pattern in patterns.values():
                if (before, now) == tuple(pattern):
                    yield f"{ctx.get_current_key()} {before} {now} at {timestamp}"


class Limits(BroadcastProcessFunction):
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterator[str]:
        limits = ctx.get_broadcast_state(limits_state())
        before = limits.get(value[0])
        limits.put(value[0], value[1])
        yield f"{value[0]} {before} -> {limits.get(value[0])}, empty {limits.is_empty()}"

    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[str]:
        known = ctx.get_broadcast_state(limits_state()).get("never") is None
        yield f"record {value} {known}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    # One subtask until the keys are known, or a user's actions could overtake each other.
    env.set_parallelism(1)
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    actions = [("Alice", "login"), ("Alice", "pay"), ("Bob", "login"), ("Cary", "login"), ("Bob", "buy")]
    patterns = [("login", "pay"), ("login", "nothing"), ("login", "buy")]
    done = env.from_collection(actions, pair_type()).assign_timestamps_and_watermarks(by_time)
    wanted = env.from_collection(patterns, pair_type()).assign_timestamps_and_watermarks(by_time)
    users = done.key_by(lambda action: action[0], Types.STRING()).connect(wanted.broadcast(patterns_state()))
    users.process(Detector(), Types.STRING()).set_parallelism(2).print("keyed")
    limits = env.from_collection([("low", 1), ("high", 5), ("low", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    numbers = env.from_collection([1, 2, 3], Types.INT()).connect(limits.broadcast(limits_state()))
    numbers.process(Limits(), Types.STRING()).set_parallelism(2).print("unkeyed")
    env.execute("broadcast state")


if __name__ == "__main__":
    main()
