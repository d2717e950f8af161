"""What people do in one visit to a shop: sessions that end after half an hour of silence.

    python examples/session_analysis.py

Sessions have no fixed size. Each click opens a window of 30 minutes, and windows that overlap or touch become one.
Clicks may come out of order: one that arrives late may turn out to be the bridge between two sessions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, TimeWindow

MINUTE = 60_000
Click = tuple[str, int, str]
"""User, minute, page."""

CLICKS: list[Click] = [
    ("ada", 0, "/home"),
    ("bob", 3, "/home"),
    ("ada", 5, "/shop"),
    ("ada", 60, "/cart"),  # so far a session of its own
    ("bob", 40, "/help"),  # more than 30 minutes after bob's last click
    ("ada", 33, "/shop"),  # came late: it joins ada's two sessions
    ("bob", 44, "/shop"),
    ("ada", 62, "/paid"),
    ("ada", 200, "/home"),
]


class Clicked(TimestampAssigner):
    def extract_timestamp(self, value: Click, record_timestamp: int) -> int:
        return value[1] * MINUTE


class Visit(ProcessWindowFunction[Click, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterator[str]:
        clicks = sorted(elements, key=lambda click: click[1])
        first, last = clicks[0][1], clicks[-1][1]
        pages = Counter(page for _, _, page in clicks)
        bought = "bought" if "/paid" in pages else "left"
        length = last - first
        yield f"{key} from minute {first:3}, {length:2} minutes, {len(clicks)} clicks, {bought} at {clicks[-1][2]}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(40))
    timed = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Clicked()))
    visits = (
        timed.key_by(lambda click: click[0]).window(EventTimeSessionWindows.with_gap(Time.minutes(30))).process(Visit())
    )
    for line in sorted(visits.execute_and_collect("sessions")):
        print(line)


if __name__ == "__main__":
    main()
