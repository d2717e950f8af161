"""SELECT k, COUNT(*), SUM(v) … GROUP BY k, with every change of every group: one SQL program for Firesteel and for
PyFlink, whose SQL runs in Java. The rows are made by each engine's own datagen and end in a black hole."""

import importlib

from both import arguments, measure_job
from sql_tables import sequence, sink

parser = arguments(__doc__)
parser.add_argument("--keys", type=int, default=10_000)
parser.add_argument("--mini-batch", action="store_true", help="what the rows of a micro-batch changed together")
options = parser.parse_args()

table = importlib.import_module(f"{options.engine}.table")
FACTOR = 2654435761


def job(records: int) -> None:
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", str(options.parallelism))
    if options.engine == "firesteel":
        config.set("state.backend.type", options.backend)
    if options.mini_batch:
        config.set("table.exec.mini-batch.enabled", "true")
        config.set("table.exec.mini-batch.allow-latency", "1 s")
        config.set("table.exec.mini-batch.size", "100000")
    env.execute_sql(sequence("numbers", records))
    env.execute_sql(sink("k BIGINT, c BIGINT, s BIGINT", options))
    env.execute_sql(
        f"INSERT INTO sink SELECT k, COUNT(*), SUM(v) FROM (SELECT MOD(n * {FACTOR}, {options.keys}) AS k, "
        "MOD(n, 1000) AS v FROM numbers WHERE n >= 0) AS parts GROUP BY k"
    ).wait()


measure_job(job, options)
