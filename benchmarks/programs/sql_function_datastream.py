"""A user's function in SQL: a value for each row, general or with pandas, or an aggregate of groups.

Of the general ones ``general`` is arithmetic, which Firesteel computes for whole columns, and ``called`` looks into a
dict, so that both engines call it for each record. One program for Firesteel and for PyFlink; rows are made by each
engine's own datagen and end in a black hole."""

import importlib

from both import arguments, measure_job
from sql_tables import sequence, sink

parser = arguments(__doc__)
parser.add_argument("--kind", choices=["general", "called", "pandas", "aggregate"], default="general")
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()

table = importlib.import_module(f"{options.engine}.table")
udf = importlib.import_module(f"{options.engine}.table.udf")
FACTOR = 2654435761
OFFSETS = {"Rome": 1, "Oslo": 2}


class Sum(table.AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def accumulate(self, accumulator, value):
        accumulator[0] += value
        accumulator[1] += 1

    def get_value(self, accumulator):
        return accumulator[0]

    def get_result_type(self):
        return "BIGINT"

    def get_accumulator_type(self):
        return "ARRAY<BIGINT>"


FUNCTIONS = {
    "general": lambda: udf.udf(lambda n: n * 3 + 1, result_type="BIGINT"),
    "called": lambda: udf.udf(lambda n: n * 3 + OFFSETS["Rome"], result_type="BIGINT"),
    "pandas": lambda: udf.udf(lambda n: n * 3 + 1, result_type="BIGINT", func_type="pandas"),
    "aggregate": lambda: udf.udaf(
        Sum(), result_type=Sum().get_result_type(), accumulator_type=Sum().get_accumulator_type()
    ),
}
QUERIES = {
    "general": "SELECT f(n), n FROM numbers",
    "called": "SELECT f(n), n FROM numbers",
    "pandas": "SELECT f(n), n FROM numbers",
    "aggregate": f"SELECT k, f(n) FROM (SELECT MOD(n * {FACTOR}, {options.keys}) AS k, n FROM numbers) GROUP BY k",
}


def job(records: int) -> None:
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", str(options.parallelism))
    config.set("python.fn-execution.bundle.size", "100000")
    config.set("python.state.cache-size", "20000")
    if options.engine == "firesteel":
        config.set("state.backend.type", options.backend)
    env.execute_sql(sequence("numbers", records))
    env.execute_sql(sink("a BIGINT, b BIGINT", options))
    env.create_temporary_system_function("f", FUNCTIONS[options.kind]())
    env.execute_sql(f"INSERT INTO sink {QUERIES[options.kind]}").wait()


measure_job(job, options)
