"""Windows and joins over event time, for PyFlink and for Firesteel: one program, two imports.

Ten events a millisecond of event time, out of order by up to two seconds, of 10,000 users. PyFlink has no joins within
windows or intervals.
"""

from collections.abc import Iterator
from typing import Any

import both

parser = both.arguments(__doc__)
parser.add_argument("--kind", choices=["tumbling", "sliding", "session", "join", "interval_join"], required=True)
options = parser.parse_args()

engine = both.Engine(options)
common, datastream, window = engine.common, engine.datastream, engine.window
Time, Types = common.Time, common.Types
EVENT = Types.TUPLE([Types.STRING(), Types.LONG()])
KEYS = 10_000
DISORDER = 1_999
"""Milliseconds; a prime number, so that a user's own events are out of order, too."""
QUARTER = KEYS // 4
ACTIVE = 50_000


def event(number: int, per_millisecond: int) -> tuple[str, int]:
    """A user's name and a time; each user comes once in 10,000 events."""
    return f"user-{number * 2654435761 % KEYS}", number // per_millisecond + number * 7919 % DISORDER


def visit(number: int) -> tuple[str, int]:
    """The same with pauses: a quarter of the users have 20 events each within five seconds, then another quarter."""
    user = number // ACTIVE % 4 * QUARTER + number * 2654435761 % QUARTER
    return f"user-{user}", number // 10 + number * 7919 % DISORDER


class EventTime(common.watermark_strategy.TimestampAssigner):  # type: ignore[name-defined,misc]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Count(datastream.AggregateFunction):  # type: ignore[name-defined,misc]
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def events(env: Any, records: int, function: Any) -> Any:
    strategy = common.WatermarkStrategy.for_bounded_out_of_orderness(common.Duration.of_millis(DISORDER))
    stream = engine.numbers_in_order(env, records).map(function, EVENT)
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime()))


def user_of(record: tuple[str, int]) -> str:
    return record[0]


def counts(env: Any, records: int) -> Any:
    assigners = {
        "tumbling": lambda: window.TumblingEventTimeWindows.of(Time.seconds(10)),
        "sliding": lambda: window.SlidingEventTimeWindows.of(Time.seconds(60), Time.seconds(10)),
        "session": lambda: window.EventTimeSessionWindows.with_gap(Time.seconds(5)),
    }
    make = visit if options.kind == "session" else lambda number: event(number, 10)
    windowed = events(env, records, make).key_by(user_of, Types.STRING()).window(assigners[options.kind]())
    return windowed.aggregate(Count(), accumulator_type=Types.LONG(), output_type=Types.LONG())


def joined(env: Any, records: int) -> Any:
    """Two streams of half the events each; an event meets about two of the other stream."""
    left, right = (events(env, half, lambda number: event(number, 5)) for half in (records // 2, records // 2))
    if options.kind == "join":
        keyed = left.join(right).where(user_of, Types.STRING()).equal_to(user_of, Types.STRING())
        pairs = keyed.window(window.TumblingEventTimeWindows.of(Time.seconds(4)))
        return pairs.apply(lambda one, other: (one[0], one[1] + other[1]), EVENT)
    keyed = left.key_by(user_of, Types.STRING()).interval_join(right.key_by(user_of, Types.STRING()))
    return keyed.between(Time.seconds(-2), Time.seconds(2)).process(pair_function(), EVENT)


def pair_function() -> Any:
    """Here, not above: PyFlink lacks the class."""

    class Pair(datastream.ProcessJoinFunction):  # type: ignore[name-defined,misc]
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[tuple[str, int]]:
            yield left[0], left[1] + right[1]

    return Pair()


def job(records: int) -> None:
    env = engine.environment()
    results = joined(env, records) if options.kind in ("join", "interval_join") else counts(env, records)
    engine.discard(results)
    env.execute(f"{options.kind}, {records} events")


engine.measure(job)
