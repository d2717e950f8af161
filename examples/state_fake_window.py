"""A window made by hand: page views per URL and ten seconds of event time, with map state and timers.

    python examples/state_fake_window.py

A tumbling window is not magic. Each record belongs to the window that its timestamp falls into. What was counted so
far is kept per window, and a timer at the window's last millisecond gives the count out and throws it away.

Several windows of a URL can be open at once, since clicks may arrive out of order. So the state is a map: start of the
window to count.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor


class Click(NamedTuple):
    user: str
    url: str
    time: int


CLICKS = [
    Click("Mary", "./home", 1_000),
    Click("Bob", "./cart", 2_500),
    Click("Alice", "./home", 8_000),
    Click("Bob", "./home", 10_500),  # the second window of ./home opens,
    Click("Cary", "./home", 9_900),  # and a late click still counts in the first
    Click("Mary", "./cart", 12_000),  # the watermark reaches 9,999: the first windows are complete
    Click("Mary", "./home", 19_999),
    Click("Alice", "./home", 25_000),
]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.time)


class FakeWindow(KeyedProcessFunction):
    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        views = MapStateDescriptor("views per window", Types.LONG(), Types.LONG())
        self.views = runtime_context.get_map_state(views)

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> None:
        start = value.time - value.time % self.size
        # Registering the same timer again changes nothing: a key has at most one timer per moment.
        ctx.timer_service().register_event_time_timer(start + self.size - 1)
        self.views.put(start, (self.views.get(start) or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        end = timestamp + 1
        start = end - self.size
        yield f"url: {ctx.get_current_key()} views: {self.views.get(start)} window: {start} ~ {end}"
        self.views.remove(start)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # A watermark after every click instead of one per micro-batch, so that windows close in between (see
    # state_periodic_views.py).
    env.get_config().set_auto_watermark_interval(1)

    # Clicks may be up to a second late: the watermark stays that far behind the newest click.
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        ClickTime()
    )
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(by_time)
    clicks.key_by(lambda click: click.url).process(FakeWindow(10_000), Types.STRING()).print()

    env.execute("fake window")


if __name__ == "__main__":
    main()
