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


TIMES = ", ts AS TO_TIMESTAMP_LTZ(n / 10, 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
EVENTS = keyed("numbers", 10_000, ", ts")
"""Of 10,000 keys, ten a millisecond of event time."""

QUERIES = {
    "stateless": "SELECT n * 3 + 1, MOD(n, 1000), n / 7 FROM numbers WHERE MOD(n, 2) = 0",
    "tumble": window("TUMBLE", "INTERVAL '10' SECOND"),
    "hop": window("HOP", "INTERVAL '10' SECOND, INTERVAL '1' MINUTE"),
    "join": f"SELECT o.k, o.v, c.v FROM {keyed('numbers', 100_000)} AS o JOIN customers AS c ON o.k = c.k",
    "interval_join": (
        f"SELECT o.k, o.v, p.v FROM {EVENTS} AS o JOIN {keyed('others', 10_000, ', ts')} AS p ON o.k = p.k "
        "AND p.ts BETWEEN o.ts - INTERVAL '2' SECOND AND o.ts + INTERVAL '2' SECOND"
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
    halves = records // 2 if options.query == "interval_join" else records
    for name, count in (("numbers", halves), ("others", halves), ("customer_numbers", 100_000)):
        env.execute_sql(sequence(name, count, TIMES))
    env.execute_sql("CREATE VIEW customers AS SELECT n AS k, MOD(n, 100) AS v FROM customer_numbers")
    env.execute_sql(f"CREATE VIEW by_key AS SELECT * FROM {EVENTS} AS parts")
    env.execute_sql(sink("a BIGINT, b BIGINT, c BIGINT", options))
    env.execute_sql(f"INSERT INTO sink {QUERIES[options.query]}").wait()


measure_job(job, options)
