"""Records that come too late: corrected results while it makes sense, a side output for the rest.

    python examples/late_data.py

Parcels are counted per depot and ten minutes. Scanners lose their connection at times and send later what they have:

1. Up to a minute of disorder is normal. The watermark waits for it (bounded out-of-orderness).
2. Within another 15 minutes a late parcel still counts: the window fires again, corrected (allowed lateness).
3. What comes even later goes to a side output, to be looked at by people. Nothing is lost without a trace.
"""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

Parcel = tuple[str, int, str]
"""Depot, minute of the scan, number of the parcel."""

PARCELS: list[Parcel] = [
    ("north", 1, "p1"),
    ("north", 4, "p2"),
    ("north", 12, "p3"),  # the watermark passes 10: the first window fires
    ("north", 8, "p4"),  # late, and allowed: it fires again
    ("north", 23, "p5"),
    ("north", 9, "p6"),  # still allowed
    ("north", 31, "p7"),
    ("north", 5, "p8"),  # too late
    ("north", 27, "p9"),  # late for the third window, and allowed
]
TOO_LATE = OutputTag("too late")


class Scanned(TimestampAssigner):
    def extract_timestamp(self, value: Parcel, record_timestamp: int) -> int:
        return value[1] * 60_000


class Count(ProcessWindowFunction[Parcel, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Parcel]
    ) -> Iterator[str]:
        start, end = context.window().start // 60_000, context.window().end // 60_000
        numbers = [parcel[2] for parcel in elements]
        yield f"{key} minutes {start:2} to {end}: {len(numbers)} parcels {numbers}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    # A watermark after every record, so that this small stream has late ones at all.
    env.get_config().set_auto_watermark_interval(1)
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    timed = env.from_collection(PARCELS).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Scanned()))
    counts = (
        timed.key_by(lambda parcel: parcel[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(10)))
        .allowed_lateness(Time.minutes(15).to_milliseconds())
        .side_output_late_data(TOO_LATE)
        .process(Count())
    )
    counts.print()
    counts.get_side_output(TOO_LATE).map(lambda parcel: f"too late: {parcel}").print()
    env.execute("late data")


if __name__ == "__main__":
    main()
