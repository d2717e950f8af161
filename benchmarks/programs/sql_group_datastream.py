"""SELECT k, COUNT(*), SUM(v) FROM rows GROUP BY k, with every change of every group: on Firesteel's operators on tables
and on PyFlink's SQL, which runs in Java. The rows are made by the engines' own generators and end in a black hole."""

from dataclasses import dataclass
from typing import Any

from both import arguments
from measure import report, slope
from processes import Peaks

parser = arguments(__doc__)
parser.add_argument("--keys", type=int, default=10_000)
parser.add_argument("--mini-batch", action="store_true", help="what the rows of a micro-batch changed together")
options = parser.parse_args()

FACTOR = 2654435761


def on_pyflink(records: int) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", str(options.parallelism))
    if options.mini_batch:
        config.set("table.exec.mini-batch.enabled", "true")
        config.set("table.exec.mini-batch.allow-latency", "1 s")
        config.set("table.exec.mini-batch.size", "100000")
    env.execute_sql(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        f"'fields.n.start' = '0', 'fields.n.end' = '{records - 1}', 'rows-per-second' = '1000000000')"
    )
    env.execute_sql("CREATE TABLE nowhere (k BIGINT, c BIGINT, s BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql(
        f"INSERT INTO nowhere SELECT k, COUNT(*), SUM(v) FROM (SELECT MOD(n * {FACTOR}, {options.keys}) AS k, "
        "MOD(n, 1000) AS v FROM numbers WHERE n >= 0) GROUP BY k"
    ).wait()


def on_firesteel(records: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from firesteel.common import Configuration, WatermarkStrategy
    from firesteel.connectors.table.blackhole import BlackholeSink
    from firesteel.connectors.table.generating import BatchGeneratorSource
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.runtime.operators.table import (
        AggregateCall,
        Calc,
        ColumnsToRows,
        ColumnsType,
        GroupAggregate,
        KeyColumns,
    )

    @dataclass(frozen=True)
    class Modulo:
        factor: int
        divisor: int

        def evaluate(self, batch: Any) -> Any:
            product = pc.multiply(batch.column(0), self.factor)
            return pc.subtract(product, pc.multiply(pc.divide(product, self.divisor), self.divisor))

    @dataclass(frozen=True)
    class NotNegative:
        def evaluate(self, batch: Any) -> Any:
            return pc.greater_equal(batch.column(0), 0)

    def numbers(start: int, end: int) -> Any:
        return pa.record_batch([pa.array(np.arange(start, end))], names=["n"])

    configuration = Configuration()
    configuration.set_string("state.backend.type", options.backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(options.parallelism)
    long = pa.int64()
    rows = pa.schema([("k", long), ("v", long)])
    result = pa.schema([("k", long), ("c", long), ("s", long)])
    source = BatchGeneratorSource(numbers, pa.schema([("n", long)]), records)
    calc = Calc((Modulo(FACTOR, options.keys), Modulo(1, 1000)), rows, NotNegative())
    calls = (AggregateCall("COUNT", None, long), AggregateCall("SUM", 1, long))
    aggregate = GroupAggregate((0,), calls, rows, result, retracts=False, mini_batch=options.mini_batch)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    keyed = stream.transform("Calc", calc, ColumnsType(rows)).key_by(KeyColumns((0,)))
    changes = keyed.transform("GroupAggregate", aggregate, ColumnsType(result))
    if options.show:
        changes.transform("Rows", ColumnsToRows(result)).print()
    else:
        changes.sink_to(BlackholeSink())
    env.execute(f"group by, {records} rows")


job = on_firesteel if options.engine == "firesteel" else on_pyflink
if options.show:
    job(options.records)
else:
    peaks = Peaks()
    peaks.start()
    measured = slope(job, options.records, options.repeats, options.seconds)
    report(measured | {"memory": peaks.stop()})
