"""Bounded queries in batch mode: one SQL program for Firesteel, which runs it on Spark SQL, and for PyFlink, whose SQL
runs in Java. The rows are made by each engine's own datagen and end in a black hole."""

import importlib

from both import arguments, measure_job
from sql_tables import sequence, sink

FACTOR = 2654435761
PARTS = f"SELECT MOD(n * {FACTOR}, %d) AS k, MOD(n, 1000003) AS v FROM numbers WHERE n >= 0"
QUERIES = {
    "group": f"SELECT k, COUNT(*), SUM(v) FROM ({PARTS % 100_000}) AS parts GROUP BY k",
    "join": (
        f"SELECT c.region, COUNT(*), SUM(o.v) FROM ({PARTS % 100_000}) AS o "
        "JOIN (SELECT n AS k, MOD(n, 100) AS region FROM customers) AS c ON o.k = c.k GROUP BY c.region"
    ),
    "top": (
        "SELECT k, v, place FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS place "
        f"FROM ({PARTS % 1_000}) AS parts) AS ranked WHERE place <= 3"
    ),
}

parser = arguments(__doc__)
parser.add_argument("--query", choices=sorted(QUERIES), default="group")
options = parser.parse_args()

table = importlib.import_module(f"{options.engine}.table")


def job(records: int) -> None:
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_batch_mode())
    env.get_config().set("parallelism.default", str(options.parallelism))
    for name, count in (("numbers", records), ("customers", 100_000)):
        env.execute_sql(sequence(name, count, settings=f", 'number-of-rows' = '{count}'"))
    env.execute_sql(sink("a BIGINT, b BIGINT, c BIGINT", options))
    env.execute_sql(f"INSERT INTO sink {QUERIES[options.query]}").wait()


measure_job(job, options)
