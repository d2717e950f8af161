"""Map state: a tumbling window made by hand, and every method of a map."""

from collections.abc import Iterator

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor

ORDER = "none"
CLICK = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
Click = tuple[str, str, int]
CLICKS = [
    ("Mary", "./home", 1_000),
    ("Bob", "./cart", 2_500),
    ("Alice", "./home", 8_000),
    ("Cary", "./home", 9_999),
    ("Bob", "./home", 10_000),
    ("Mary", "./cart", 12_000),
    ("Mary", "./home", 19_999),
    ("Alice", "./home", 25_000),
]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value: Click, record_timestamp: int) -> int:
        return value[2]


class FakeWindow(KeyedProcessFunction):
    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        self.views = runtime_context.get_map_state(MapStateDescriptor("views", Types.LONG(), Types.LONG()))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> None:
        start = value[2] // self.size * self.size
        ctx.timer_service().register_event_time_timer(start + self.size - 1)
        if self.views.contains(start):
            self.views.put(start, self.views.get(start) + 1)
        else:
            self.views.put(start, 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        start = timestamp + 1 - self.size
        yield f"{ctx.get_current_key()} {self.views.get(start)} {start} ~ {timestamp + 1}"
        self.views.remove(start)


class Methods(KeyedProcessFunction):
    """Counts URLs per user and tells all that the map says of them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.urls = runtime_context.get_map_state(MapStateDescriptor("urls", Types.STRING(), Types.INT()))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        url = value[1]
        empty, known = self.urls.is_empty(), url in self.urls
        self.urls[url] = (self.urls[url] or 0) + 1
        facts = sorted(self.urls.items()), sorted(self.urls.keys()), sorted(self.urls.values()), sorted(self.urls)
        yield f"{value[0]} {empty} {known} {facts}"
        if self.urls.get(url) == 2:
            del self.urls[url]
            yield f"{value[0]} removed {url} {self.urls.contains(url)} {self.urls.get(url)} {sorted(self.urls)}"
        if value[2] > 20_000:
            self.urls.clear()
            yield f"{value[0]} cleared {list(self.urls.items())} {self.urls.is_empty()}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ClickTime())
    clicks = env.from_collection(CLICKS, CLICK).assign_timestamps_and_watermarks(by_time)
    clicks.key_by(lambda click: click[1], Types.STRING()).process(FakeWindow(10_000), Types.STRING()).print("window")
    clicks.key_by(lambda click: click[0], Types.STRING()).process(Methods(), Types.STRING()).print("methods")
    env.execute("map state")


if __name__ == "__main__":
    main()
