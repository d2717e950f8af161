"""Wherever a function of a user's stands in a query, it is opened with what the job knows before it is called, and
closed in the end."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa
import pytest
from conftest import environment
from operatorkit import OperatorRun

from firesteel.connectors.table.lookup import LookupTable
from firesteel.datastream.operators import StreamOperator
from firesteel.runtime.operators.table import (
    IntervalJoin,
    IntervalJoinOperator,
    Join,
    JoinOperator,
    LookupJoin,
    LookupJoinOperator,
    TemporalJoin,
    TemporalJoinOperator,
    WindowJoin,
    WindowJoinOperator,
)
from firesteel.table import FunctionContext, ScalarFunction, TableEnvironment
from firesteel.table.udf import udf

# In programs.


class Visitor(ScalarFunction):
    """Knows the city, if it was opened with it."""

    count: ClassVar[list[str]] = []

    def open(self, function_context: FunctionContext) -> None:
        self.count.append("opened")
        self.city = function_context.get_job_parameter("city", "nowhere")
        function_context.get_metric_group().counter("visits").inc()

    def close(self) -> None:
        self.count.append("closed")


class Named(Visitor):
    def eval(self, *given: Any) -> str:
        return self.city


class Is(Visitor):
    def eval(self, *given: Any) -> bool:
        return self.city == "Rome"


TIMES = "WATERMARK FOR ts AS ts"
NUMBERS = "('connector' = 'datagen', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '3')"
WINDOWS = "(SELECT * FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' HOUR)))"
QUERIES = {
    "columns": "SELECT named(k) FROM e",
    "condition": "SELECT 'Rome' FROM e WHERE rome(k)",
    "values": "SELECT * FROM (VALUES (named(1)), (named(2)), ('Rome')) AS v (x)",
    "a row of values": "SELECT * FROM (VALUES (named(1), 7)) AS v (x, y)",
    "arguments of aggregates": "SELECT MAX(named(k)) FROM e",
    "filters of aggregates": "SELECT 'Rome' FROM (SELECT COUNT(*) FILTER (WHERE rome(k)) AS n FROM e) WHERE n = 3",
    "keys": "SELECT named(k), COUNT(*) FROM e GROUP BY named(k)",
    "elements": "SELECT x FROM e CROSS JOIN UNNEST(ARRAY[named(k)]) AS u (x)",
    "a join": "SELECT 'Rome' FROM e AS a JOIN e AS b ON a.k = b.k AND rome(a.k + b.k)",
    "a semi-join": "SELECT 'Rome' FROM e AS a WHERE EXISTS (SELECT 1 FROM e AS b WHERE a.k = b.k AND rome(a.k, b.k))",
    "an interval join": (
        "SELECT 'Rome' FROM e AS a JOIN e AS b ON a.k = b.k AND rome(a.k + b.k) "
        "AND a.ts BETWEEN b.ts - INTERVAL '1' MINUTE AND b.ts"
    ),
    "a window join": (
        f"SELECT 'Rome' FROM {WINDOWS} AS a JOIN {WINDOWS} AS b ON a.window_start = b.window_start "
        "AND a.window_end = b.window_end AND a.k = b.k AND rome(a.k + b.k)"
    ),
    "a pattern": (
        "SELECT x FROM e MATCH_RECOGNIZE (ORDER BY ts MEASURES named(A.k) AS x PATTERN (A) DEFINE A AS rome(A.k)) AS m"
    ),
}


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("place", QUERIES)
def test_functions_are_opened_and_closed(place: str, mode: str) -> None:
    settings = {"pipeline.global-job-parameters": "city:Rome", "execution.runtime-mode": mode}
    env: TableEnvironment = environment(**settings)
    env.execute_sql(f"CREATE TABLE e (k BIGINT, ts AS TO_TIMESTAMP_LTZ(k, 0), {TIMES}) WITH {NUMBERS}")
    env.create_temporary_function("named", udf(Named(), result_type="STRING"))
    env.create_temporary_function("rome", udf(Is(), result_type="BOOLEAN"))
    Visitor.count.clear()
    with env.execute_sql(QUERIES[place]).collect() as found:
        assert {row[0] for row in found} == {"Rome"}
    assert Visitor.count.count("opened") == Visitor.count.count("closed") > 0


# In operators by themselves.


class Condition:
    """An expression with a function."""

    def __init__(self) -> None:
        self.functions = [self]
        self.calls: list[Any] = []

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pa.repeat(True, batch.num_rows)

    def open(self, runtime_context: Any) -> None:
        self.calls.append(runtime_context)

    def close(self) -> None:
        self.calls.append("closed")


class Nothing(LookupTable):
    def lookup(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        raise AssertionError("nobody asks")


SIDE = pa.schema([("k", pa.int64()), ("at", pa.timestamp("ms", "UTC"))])
INPUTS = ((0,), (0,), SIDE, SIDE, pa.schema([*SIDE, *SIDE]))


def joins(condition: Any) -> dict[type[StreamOperator[Any]], Any]:
    return {
        JoinOperator: Join("INNER", *INPUTS, condition),
        IntervalJoinOperator: IntervalJoin("INNER", *INPUTS, (1, 1), 0, 1, condition),
        TemporalJoinOperator: TemporalJoin("INNER", *INPUTS, (1, 1), condition),
        LookupJoinOperator: LookupJoin("INNER", *INPUTS, Nothing(), condition),
        WindowJoinOperator: WindowJoin("INNER", *INPUTS[:2], 1, 1, *INPUTS[2:], condition),
    }


@pytest.mark.parametrize("operator", joins(None), ids=lambda operator: str(operator.__name__))
def test_joins_open_the_functions_of_their_condition(operator: type[StreamOperator[Any]]) -> None:
    condition = Condition()
    run = OperatorRun(operator, joins(condition)[operator])
    assert condition.calls == [run.stub]
    run.operator.close()
    assert condition.calls == [run.stub, "closed"]
