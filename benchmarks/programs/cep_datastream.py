"""Three events in their order within ten minutes, of each of 10,000 users: with Firesteel's patterns, with a function
written by hand on both engines, and with PyFlink's MATCH_RECOGNIZE, which is Java from the source to the sink.

Ten events a millisecond of event time, in order; one event of a hundred ends a match.
"""

from collections.abc import Iterator
from typing import Any

import both

parser = both.arguments(__doc__)
parser.add_argument("--kind", choices=["pattern", "by_hand"], required=True)
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()

engine = both.Engine(options)
common, datastream, state = engine.common, engine.datastream, engine.state
KEYS = options.keys
WINDOW = 600_000
"""Milliseconds from the first event to the last."""
EVENT = common.Types.TUPLE([common.Types.LONG(), common.Types.LONG(), common.Types.LONG()])

TABLE = """
    CREATE TABLE events (
        i BIGINT,
        k AS MOD(i * 2654435761, {keys}),
        v AS MOD(i * i * 31 + i / {keys} * 17, 100),
        ts AS TO_TIMESTAMP_LTZ(i / 10, 3),
        WATERMARK FOR ts AS ts
    ) WITH (
        'connector' = 'datagen', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.i.end' = '{last}'
    )
"""
QUERY = """
    SELECT k, a, b, c FROM events MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts
        MEASURES A.v AS a, B.v AS b, C.v AS c
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A NOTB* B NOTC* C) WITHIN INTERVAL '10' MINUTE
        DEFINE A AS v < 10, NOTB AS v <= 90, B AS v > 90, NOTC AS v <= 40 OR v >= 60, C AS v > 40 AND v < 60
    )
"""


def event(number: int) -> tuple[int, int, int]:
    """A user, a value below 100, and a time."""
    return number * 2654435761 % KEYS, (number * number * 31 + number // KEYS * 17) % 100, number // 10


class EventTime(common.watermark_strategy.TimestampAssigner):  # type: ignore[name-defined,misc]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class ByHand(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """The same without a library: what was seen so far is a state."""

    def open(self, runtime_context: Any) -> None:
        descriptor = state.ValueStateDescriptor("seen", common.Types.PICKLED_BYTE_ARRAY())
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[int, int, int]]:
        seen, found = self.seen.value(), value[1]
        if seen is not None and value[2] - seen[0] >= WINDOW:
            seen = None
        if seen is None:
            if found < 10:
                self.seen.update((value[2], found))
        elif len(seen) == 2:
            if found > 90:
                self.seen.update((*seen, found))
        elif 40 < found < 60:
            self.seen.clear()
            yield seen[1], seen[2], found


def user_of(record: Any) -> int:
    return int(record[0])


def matched(keyed: Any) -> Any:
    cep = engine.module("cep")
    first = cep.Pattern.begin("a", cep.AfterMatchSkipStrategy.skip_past_last_event()).where(lambda one: one[1] < 10)
    second = first.followed_by("b").where(lambda one: one[1] > 90)
    pattern = second.followed_by("c").where(lambda one: 40 < one[1] < 60).within(common.Duration.of_millis(WINDOW))
    return cep.CEP.pattern(keyed, pattern).select(
        lambda match: (match["a"][0][1], match["b"][0][1], match["c"][0][1]), output_type=EVENT
    )


def job(records: int) -> None:
    if options.kind == "pattern" and options.engine == "pyflink":
        match_recognize(records)
        return
    env = engine.environment()
    strategy = common.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    # One reader to the end of the chain: the function written by hand sees a user's events as they come.
    events = engine.numbers_in_order(env, records).map(event, EVENT).set_parallelism(1)
    timed = events.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    keyed = timed.key_by(user_of, common.Types.LONG())
    engine.discard(matched(keyed) if options.kind == "pattern" else keyed.process(ByHand(), EVENT))
    env.execute(f"{options.kind}, {records} events")


def match_recognize(records: int) -> None:
    table = engine.module("table").StreamTableEnvironment.create(engine.environment())
    table.execute_sql(TABLE.format(keys=KEYS, last=max(1, records) - 1))
    connector = "print" if options.show else "blackhole"
    table.execute_sql(
        f"CREATE TABLE results (k BIGINT, a BIGINT, b BIGINT, c BIGINT) WITH ('connector' = '{connector}')"
    )
    table.execute_sql(f"INSERT INTO results {QUERY}").wait()


engine.measure(job)
