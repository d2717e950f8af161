"""Nexmark's queries as SQL on streams, one program for Firesteel and for PyFlink, whose SQL runs in Java. Each engine
makes the events of numbers, and the results end in a black hole. How many rows a small run gives is told, too: it must
be the same on both."""

import importlib

from both import arguments
from measure import report, slope
from nexmark_queries import QUERIES
from nexmark_tables import declarations
from processes import Peaks

CHECKED = 2_000
"""Events of the run whose rows are counted."""

BY_CLOCK = {
    "q12": """
        SELECT bidder, COUNT(*) AS bids, window_start, window_end FROM TABLE(
        TUMBLE(TABLE bid_by_clock, DESCRIPTOR(arrived), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end
    """
}
"""What its windows have depends on when they end, so its rows are not counted."""
ALL = QUERIES | BY_CLOCK

parser = arguments(__doc__)
parser.add_argument("--query", choices=sorted(ALL), default="q0")
options = parser.parse_args()

table = importlib.import_module(f"{options.engine}.table")
RowKind = importlib.import_module(f"{options.engine}.common").RowKind


def environment(events: int):
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", str(options.parallelism))
    config.set("table.local-time-zone", "UTC")
    if options.engine == "firesteel":
        config.set("state.backend.type", options.backend)
    for statement in declarations(events):
        env.execute_sql(statement)
    env.execute_sql("CREATE VIEW bid_by_clock AS SELECT bidder, PROCTIME() AS arrived FROM bid")
    return env


def rows(events: int) -> int | None:
    """How many rows the final table has."""
    if options.query in BY_CLOCK:
        return None
    with environment(events).execute_sql(QUERIES[options.query]).collect() as found:
        taken_back = (RowKind.UPDATE_BEFORE, RowKind.DELETE)
        return sum(-1 if row.get_row_kind() in taken_back else 1 for row in found)


def job(events: int) -> None:
    sink = "CREATE TABLE sink WITH ('connector' = 'blackhole') AS "
    environment(events).execute_sql(sink + ALL[options.query]).wait()


if options.show:
    environment(options.records).execute_sql(ALL[options.query]).print()
else:
    peaks = Peaks()
    peaks.start()
    measured = slope(job, options.records, options.repeats, options.seconds)
    report(measured | {"rows": rows(CHECKED), "memory": peaks.stop()})
