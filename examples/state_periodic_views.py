"""Page views per user, reported every ten seconds: two value states and a timer.

    python examples/state_periodic_views.py

Telling the new count at every click would flood whoever reads the results. So the first click of a user sets a
timer ten seconds ahead. When it fires, the count goes out, and the user's next click sets the next timer.

Two states per user: ``count`` is what we want to know, ``timer`` remembers whether a timer is set.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

PERIOD = 10_000
"""Milliseconds of event time between two results of a user."""


class Click(NamedTuple):
    user: str
    url: str
    time: int


CLICKS = [
    Click("Mary", "./home", 1_000),
    Click("Bob", "./cart", 2_000),
    Click("Mary", "./prod?id=1", 4_000),
    Click("Mary", "./prod?id=2", 9_000),
    Click("Bob", "./home", 11_500),  # 11.5 s: Mary's timer (set at 1 s) is due now, Bob's (set at 2 s) is not
    Click("Mary", "./cart", 13_000),  # Bob's timer is due, and Mary needs a new one
    Click("Mary", "./home", 22_000),
    Click("Bob", "./prod?id=1", 30_000),  # Mary's second timer (set at 13 s) is due
]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.time)


class PeriodicViews(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        # A handle shows the value of the user whose click is being processed: there is one value per key.
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> None:
        # A state that was never written reads as None.
        self.count.update((self.count.value() or 0) + 1)
        if self.timer.value() is None:
            due = value.time + PERIOD
            ctx.timer_service().register_event_time_timer(due)
            self.timer.update(due)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        yield f"{ctx.get_current_key()} pv: {self.count.value()}"
        # The count goes on; only the timer is forgotten, so that the next click sets a new one.
        self.timer.clear()


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # The watermark, which fires timers, moves when a micro-batch ends. All clicks here fit into one batch, so ask for
    # a watermark after every click instead: then the timers fire between them.
    env.get_config().set_auto_watermark_interval(1)

    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ClickTime())
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(by_time)
    clicks.print("input")
    clicks.key_by(lambda click: click.user).process(PeriodicViews(), Types.STRING()).print()

    env.execute("periodic page views")


if __name__ == "__main__":
    main()
