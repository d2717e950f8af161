"""Which window does a moment fall into? The formula, and what an offset does to it.

    python examples/window_start.py

Windows are not started by the first record. They lie on the time line as if drawn with a ruler that begins in 1970, so
that every key and every machine cuts at the same places. A window of ``size`` that a moment falls into starts at

    start = moment - (moment - offset) % size

and holds all moments from start up to, and without, start + size. With 15 seconds a record at second 199 is in
[195, 210): 199 % 15 = 4, and 199 - 4 = 195. The remainder is Python's, which is never negative, so the formula
also holds before 1970 and for negative offsets.

An offset moves the ruler. Days in Beijing begin at 16:00 UTC of the day before: their offset is -8 hours.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

HOUR = 3_600_000
Sale = tuple[int, float]
"""Moment in milliseconds, amount."""


class MomentOfSale(TimestampAssigner):
    def extract_timestamp(self, value: Sale, record_timestamp: int) -> int:
        return value[0]


class Turnover(ProcessWindowFunction[Sale, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Sale]
    ) -> Iterator[str]:
        window = context.window()
        total = sum(amount for _, amount in elements)
        yield f"  {shown(window.start)} to {shown(window.end)}: {total:6.2f}"


def shown(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%d %b %H:%M")


def formula() -> None:
    print("size 15, seconds:  moment  offset  window")
    for moment, offset in ((199, 0), (195, 0), (210, 0), (199, 5), (199, -5), (-1, 0)):
        start = TimeWindow.get_window_start_with_offset(moment, offset, 15)
        assert start == moment - (moment - offset) % 15
        print(f"{moment:25} {offset:7}  [{start}, {start + 15})")


def sales_per_day(title: str, offset: Time) -> None:
    print(title)
    env = StreamExecutionEnvironment.get_execution_environment()
    # The first evening of 2024 as London sees it. In Beijing the last two sales are made on the second of January.
    new_year = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    sales = [(new_year + hour * HOUR, amount) for hour, amount in ((1, 10.0), (15, 20.0), (16, 40.0), (23, 80.0))]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
    strategy = strategy.with_timestamp_assigner(MomentOfSale())
    timed = env.from_collection(sales).assign_timestamps_and_watermarks(strategy)
    days = timed.key_by(lambda sale: "shop").window(TumblingEventTimeWindows.of(Time.days(1), offset))
    for line in sorted(days.process(Turnover()).execute_and_collect()):
        print(line)


def main() -> None:
    formula()
    sales_per_day("days in London (UTC), no offset:", Time.hours(0))
    sales_per_day("days in Beijing (UTC+8), offset -8 hours, shown in UTC:", Time.hours(-8))


if __name__ == "__main__":
    main()
