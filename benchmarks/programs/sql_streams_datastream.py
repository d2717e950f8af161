"""Queries on streams, one for each kind of operator: one SQL program for Firesteel and for PyFlink, whose SQL runs in
Java. The rows are made by each engine's own datagen and end in a black hole."""

import importlib

from both import arguments, measure_job
from sql_tables import sequence, sink

FACTOR = 2654435761


def keyed(table: str, keys: int, more: str = "") -> str:
    """Two numbers a row, the first of them one of so many keys."""
    return f"(SELECT MOD(n * {FACTOR}, {keys}) AS k, MOD(n * 7919, 1000003) AS v{more} FROM {table} WHERE n >= 0)"


def window(kind: str, sizes: str) -> str:
    return (
        f"SELECT k, COUNT(*), SUM(v) FROM TABLE({kind}(TABLE by_key, DESCRIPTOR(ts), {sizes})) "
        "GROUP BY k, window_start, window_end"
    )


def windows_of(view: str) -> str:
    return f"(SELECT * FROM TABLE(TUMBLE(TABLE {view}, DESCRIPTOR(ts), INTERVAL '4' SECOND)))"


TIMES = ", ts AS TO_TIMESTAMP_LTZ(n / 10, 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
EVENTS = keyed("numbers", 10_000, ", ts")
"""Of 10,000 keys, ten a millisecond of event time."""
OTHERS = keyed("others", 10_000, ", ts")
VISITS = (
    f"(SELECT MOD(n * {FACTOR}, 10000) + 10000 * MOD(n / 200000, 5) AS k, MOD(n * 7919, 1000003) AS v, ts "
    "FROM numbers WHERE n >= 0)"
)
"""The same, but a key has events for 20 s, 20 of them, and then none for 80 s."""

QUERIES = {
    "stateless": "SELECT n * 3 + 1, MOD(n, 1000), n / 7 FROM numbers WHERE MOD(n, 2) = 0",
    "tumble": window("TUMBLE", "INTERVAL '10' SECOND"),
    "cumulate": window("CUMULATE", "INTERVAL '10' SECOND, INTERVAL '1' MINUTE"),
    "session": (
        "SELECT k, COUNT(*), SUM(v) FROM TABLE(SESSION(TABLE visits PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end"
    ),
    "hop": window("HOP", "INTERVAL '10' SECOND, INTERVAL '1' MINUTE"),
    "join": f"SELECT o.k, o.v, c.v FROM {keyed('numbers', 100_000)} AS o JOIN customers AS c ON o.k = c.k",
    "interval_join": (
        f"SELECT o.k, o.v, p.v FROM {EVENTS} AS o JOIN {OTHERS} AS p ON o.k = p.k "
        "AND p.ts BETWEEN o.ts - INTERVAL '2' SECOND AND o.ts + INTERVAL '2' SECOND"
    ),
    "window_join": (
        f"SELECT o.k, o.v, p.v FROM {windows_of('by_key')} AS o JOIN {windows_of('others_by_key')} AS p "
        "ON o.k = p.k AND o.window_start = p.window_start AND o.window_end = p.window_end"
    ),
    "temporal_join": "SELECT o.k, o.v, p.v FROM by_key AS o JOIN versions FOR SYSTEM_TIME AS OF o.ts AS p ON o.k = p.k",
    "match": (
        "SELECT k, lowest, highest FROM by_key MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.v AS lowest, LAST(B.v) AS highest ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW "
        "PATTERN (A B+ C) DEFINE B AS B.v > A.v, C AS C.v < A.v)"
    ),
    "top": (
        "SELECT k, v, place FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS place "
        f"FROM {keyed('numbers', 10_000)} AS parts) AS ranked WHERE place <= 3"
    ),
    "deduplicate": (
        "SELECT k, v, place FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS place "
        f"FROM {keyed('numbers', 100_000, ', ts')} AS parts) AS ranked WHERE place = 1"
    ),
    "over": (
        "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) "
        f"FROM {EVENTS} AS parts"
    ),
}

OF_TWO_STREAMS = ("interval_join", "window_join", "temporal_join")

parser = arguments(__doc__)
parser.add_argument("--query", choices=sorted(QUERIES), default="stateless")
options = parser.parse_args()

table = importlib.import_module(f"{options.engine}.table")


def job(records: int) -> None:
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", str(options.parallelism))
    if options.engine == "firesteel":
        config.set("state.backend.type", options.backend)
    halves = records // 2 if options.query in OF_TWO_STREAMS else records
    for name, count in (("numbers", halves), ("others", halves), ("customer_numbers", 100_000)):
        env.execute_sql(sequence(name, count, TIMES))
    env.execute_sql("CREATE VIEW customers AS SELECT n AS k, MOD(n, 100) AS v FROM customer_numbers")
    for view, parts in (("by_key", EVENTS), ("others_by_key", OTHERS), ("visits", VISITS)):
        env.execute_sql(f"CREATE VIEW {view} AS SELECT * FROM {parts} AS parts")
    env.execute_sql(
        "CREATE VIEW versions AS SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) "
        "AS place FROM others_by_key) AS ranked WHERE place = 1"
    )
    env.execute_sql(sink("a BIGINT, b BIGINT, c BIGINT", options))
    env.execute_sql(f"INSERT INTO sink {QUERIES[options.query]}").wait()


measure_job(job, options)
