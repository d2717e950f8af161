"""Batch mode on Spark SQL: the queries of the other tests, with the final rows that streaming gives in memory; and the
functions with their edge values, as PyFlink gives them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import test_queries
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sparkkit import spark_env
from test_function_matrix import NO_VALUE, RECORDED, resolved, same

from firesteel.common import Configuration
from firesteel.common.types import RowKind
from firesteel.errors import JobExecutionError
from firesteel.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    FunctionContext,
    ScalarFunction,
    TableEnvironment,
    TableFunction,
)
from firesteel.table.batch.execution import executor_of
from firesteel.table.batch.expressions import ExpressionTranslator
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.batch.operators import by_operators
from firesteel.table.expressions import col
from firesteel.table.functions import Evaluator
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, rewrite
from firesteel.table.logical.plan import Aggregate, Project, Values
from firesteel.table.types import RowType
from firesteel.table.udf import udaf, udf, udtf

SPARK = {"firesteel.master": "local", "spark.sql.shuffle.partitions": "1"}
MEMORY = {"firesteel.master": "memory", "parallelism.default": "1"}


def filled(settings: dict[str, str], batch: bool) -> TableEnvironment:
    """With the tables of the other tests."""
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(settings))
    env = TableEnvironment.create((builder.in_batch_mode() if batch else builder.in_streaming_mode()).build())
    columns = [
        DataTypes.FIELD("k", DataTypes.INT()),
        DataTypes.FIELD("s", DataTypes.STRING()),
        DataTypes.FIELD("v", DataTypes.DOUBLE()),
    ]
    rows = [(1, "a", 1.5), (2, "b", 2.5), (1, "c", None), (None, "d", 0.1)]
    env.create_temporary_view("t", env.from_elements(rows, DataTypes.ROW(columns)))
    env.create_temporary_view("a", env.from_elements([(1, "x"), (2, "y"), (3, "z")], ["k", "s"]))
    env.create_temporary_view("b", env.from_elements([(1, 10), (1, 11), (3, 30), (4, 40)], ["k", "v"]))
    test_queries.create_ticks(env)
    return env


@pytest.fixture(scope="module")
def batch() -> TableEnvironment:
    spark_env()
    env = filled(SPARK, True)
    # Columns of Spark can only be made while it runs.
    env.sql_query("SELECT 1").to_spark()
    return env


@pytest.fixture(scope="module")
def streaming() -> TableEnvironment:
    return filled(MEMORY, False)


def final(env: TableEnvironment, query: str) -> Counter[str]:
    """How often each row is there in the end."""
    kept: Counter[str] = Counter()
    with env.execute_sql(query).collect() as rows:
        for row in rows:
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            kept[repr(tuple(row))] += 1 if added else -1
    return +kept


def queries_of(test: Any) -> Iterator[str]:
    """Those that another test is parametrised with."""
    for mark in test.pytestmark:
        for case in mark.args[1]:
            yield case[0] if isinstance(case, tuple) else case["sql"]


CORPUS = [
    query
    for test in (
        test_queries.test_prints_what_pyflink_prints,
        test_queries.test_joins,
        test_queries.test_first_rows,
        test_queries.test_windows,
    )
    for query in queries_of(test)
    if query.startswith(("SELECT", "WITH", "VALUES"))
]


@pytest.mark.parametrize("query", CORPUS)
def test_the_same_rows_as_in_streaming(query: str, batch: TableEnvironment, streaming: TableEnvironment) -> None:
    expected = final(streaming, query)
    if not expected and "COUNT(*), SUM" in query:
        # Nothing was summed yet in a stream; a table without rows has a sum.
        expected = Counter({"(0, None, None)": 1})
    assert final(batch, query) == expected


ALL = {text: result for group in RECORDED.values() for text, result in group.items() if result[0] not in NO_VALUE}
"""Every recorded call, with its type and its value."""
SAMPLE = {text for group in RECORDED.values() for text in list(group)[:5]}
"""Calls that our own kernels compute inside Spark, too: enough of each function to see each type go there and back."""


def computed_on_spark(env: TableEnvironment, expressions: list[Expression], rows: Values) -> list[Any]:
    names = tuple(f"e{index}" for index in range(len(expressions)))
    plan = Project(rows, tuple(expressions), names)
    executor = executor_of(env.get_config().get_configuration(), "UTC")
    (found,) = executor.rows(plan, "functions")
    texts = []
    for index, expression in enumerate(expressions):
        one = pa.record_batch([found.column(index)], ["c"])
        text = Call("CAST", (InputRef(0, expression.type),), DataTypes.STRING())
        texts.append(Evaluator([text]).columns(one)[0][0].as_py())
    return texts


class Lifting:
    """Constants as columns, so that nothing is computed before rows come."""

    def __init__(self) -> None:
        self.literals: list[Literal] = []
        self._native = ExpressionTranslator([f"l{index}" for index in range(2000)], KernelContext("UTC", 0.0))

    def lifted(self, expression: Expression) -> Expression:
        """Where Spark computes it then, too."""
        before = list(self.literals)
        found = rewrite(expression, self._column)
        if self._native.is_native(found):
            return found
        self.literals = before
        return expression

    def _column(self, part: Expression) -> Expression | None:
        if not isinstance(part, Literal) or part.value is None:
            return None
        if part not in self.literals:
            self.literals.append(part)
        return InputRef(self.literals.index(part), part.type)

    def rows(self) -> Values:
        kinds = [each.type for each in self.literals]
        return Values((tuple(self.literals),), RowType.of([f"l{index}" for index in range(len(kinds))], kinds))


def test_functions_have_the_values_that_pyflink_gives(batch: TableEnvironment) -> None:
    wrong, native = [], 0
    translated = ExpressionTranslator([], KernelContext("UTC", 0.0))
    texts = [text for text in ALL if text in SAMPLE or translated.is_native(resolved(text))]
    for start in range(0, len(texts), 300):
        part, lifting = texts[start : start + 300], Lifting()
        calls = [resolved(text) for text in part]
        over_columns = [lifting.lifted(each) for each in calls]
        native += sum(one is not other for one, other in zip(calls, over_columns, strict=True))
        for text, found in zip(part, computed_on_spark(batch, over_columns, lifting.rows()), strict=True):
            kind, value = ALL[text]
            if not same(value, found, kind or ""):
                wrong.append(f"{text}: expected {kind} {value}, got {found}")
    assert not wrong, "\n".join(wrong)
    # Or the comparison would be of our functions with themselves.
    assert native > 300


MORE = [
    "SELECT n, COUNT(*) OVER w, SUM(n) OVER w, AVG(n) OVER w FROM ticks WINDOW w AS (PARTITION BY odd ORDER BY ts"
    " RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW)",
    "SELECT n, MAX(n) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM ticks",
    "SELECT odd, window_start, COUNT(*) FROM TABLE(SESSION(TABLE ticks PARTITION BY odd, DESCRIPTOR(ts),"
    " INTERVAL '1' SECOND)) GROUP BY odd, window_start, window_end",
    "SELECT k, s, COUNT(*), GROUPING(k) FROM t GROUP BY ROLLUP (k, s)",
    "SELECT k, LISTAGG(s), FIRST_VALUE(s), STDDEV_POP(v) FROM t WHERE k = 2 GROUP BY k",
    "SELECT s, x FROM a CROSS JOIN UNNEST(ARRAY[1, 2]) AS u (x)",
    "SELECT x, y FROM UNNEST(ARRAY['p', 'q', 'q']) AS u (x), UNNEST(ARRAY[1, 2]) AS v (y)",
    "SELECT s FROM t WHERE k IN (SELECT k FROM b) OR v > 2",
    "SELECT s FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT s, (SELECT MAX(v) FROM b WHERE b.k = a.k) FROM a",
    "SELECT k FROM b INTERSECT SELECT k FROM t",
    "SELECT k FROM t INTERSECT ALL SELECT CAST(k AS INT) FROM b",
    "SELECT k FROM t EXCEPT SELECT CAST(k AS INT) FROM b",
    "SELECT CAST(k AS INT) FROM b EXCEPT ALL SELECT k FROM t",
    "SELECT k, s, v FROM a NATURAL JOIN b",
    "SELECT a.s, b.v FROM a LEFT JOIN b ON a.k = b.k AND INITCAP(a.s) || CAST(b.v AS STRING) = 'X11'",
    "SELECT a.s, b.v FROM a FULL JOIN b ON a.k = b.k AND INITCAP(a.s || CAST(b.v AS STRING)) = 'X11'",
    "SELECT CASE WHEN s = '1' THEN CAST(s AS INT) ELSE 7 / k END FROM t WHERE k <> 0 AND INITCAP(s) <> 'Q'",
    "SELECT AVG(CAST(v AS DECIMAL(10, 2))), SUM(CAST(v AS DECIMAL(10, 2))), AVG(k), SUM(CAST(100 AS TINYINT)) FROM t",
    "SELECT k, AVG(v) * 2, SUM(CAST(v AS TINYINT)) * CAST(10 AS TINYINT) FROM b GROUP BY k",
    "SELECT CAST(k AS TIME(0)), COUNT(*) FROM (SELECT TIME '12:00:00' AS k FROM a) GROUP BY k",
    "SELECT MAX(x), MIN(y) FROM (SELECT TIMESTAMP '2024-01-01 00:00:00.123456789' AS x, INTERVAL '3' DAY AS y FROM a)",
    "SELECT k, COUNT(DISTINCT v), SUM(DISTINCT v), AVG(DISTINCT v), COUNT(*) FILTER (WHERE v > 10) FROM b GROUP BY k",
    "SELECT ARRAY[k, 1], MAP['a', s], ROW(k, s) FROM a",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY odd ORDER BY ts"
    " MEASURES FIRST(a.n) AS first_n, LAST(b.n) AS last_n"
    " AFTER MATCH SKIP PAST LAST ROW PATTERN (a b{2}) DEFINE b AS b.n > a.n) AS matches",
]


@pytest.mark.parametrize("query", MORE)
def test_more_of_the_same_rows(query: str, batch: TableEnvironment, streaming: TableEnvironment) -> None:
    assert final(batch, query) == final(streaming, query)


def test_order_is_kept(batch: TableEnvironment) -> None:
    with batch.execute_sql("SELECT s FROM t ORDER BY v DESC, s").collect() as found:
        assert [row[0] for row in found] == ["b", "a", "d", "c"]
    with batch.execute_sql("SELECT v FROM b ORDER BY v DESC LIMIT 2 OFFSET 1").collect() as found:
        assert [row[0] for row in found] == [30, 11]


def test_errors_are_those_of_functions(batch: TableEnvironment) -> None:
    with pytest.raises(JobExecutionError, match="/ by zero"):
        batch.execute_sql("SELECT 1 / (k - 1) FROM a").print()
    with pytest.raises(JobExecutionError, match="cannot be cast to INT"):
        batch.execute_sql("SELECT CAST(s AS INT) FROM a").print()


def test_operators_of_streams_run_in_workers(batch: TableEnvironment) -> None:
    """An aggregate that Spark does not have, with groups and without rows."""
    executor = executor_of(batch.get_config().get_configuration(), "UTC")
    for query, expected in (
        ("SELECT k, SUM(v), COUNT(*) FROM b GROUP BY k", [(1, 21, 2), (3, 30, 1), (4, 40, 1)]),
        ("SELECT SUM(v), COUNT(*) FROM b WHERE v > 100", [(None, 0)]),
    ):
        plan = batch.sql_query(query)._plan
        assert isinstance(plan, Aggregate)
        translator = executor.translator()  # type: ignore[attr-defined]
        found = by_operators(translator, plan, [plan.keys]).collect()
        assert sorted(map(tuple, found)) == expected


def test_dataframes_are_tables_and_tables_dataframes(batch: TableEnvironment, streaming: TableEnvironment) -> None:
    spark, active = SparkSession.builder.getOrCreate(), SparkSession.getActiveSession()
    before = spark.conf.get("spark.sql.ansi.enabled"), spark.conf.get("spark.sql.session.timeZone")
    frame = spark.sql(
        "SELECT id AS n, CAST(id AS DECIMAL(10, 2)) AS price, TIMESTAMP_NTZ'2024-01-01' AS at FROM range(4)"
    )
    query = "SELECT n % 2 AS odd, SUM(price) AS total, MAX(at) AS at FROM frame GROUP BY n % 2"
    for env in (batch, streaming):
        env.create_temporary_view("frame", frame)
        assert [str(kind) for kind in env.from_path("frame").get_schema().get_field_data_types()] == [
            "BIGINT NOT NULL",
            "DECIMAL(10, 2)",
            "TIMESTAMP(6) NOT NULL",
        ]
    assert final(batch, query) == final(streaming, query)
    result = batch.sql_query(query).to_spark()
    assert result.sparkSession is spark
    result.createOrReplaceTempView("result")
    assert [tuple(row) for row in spark.sql("SELECT odd, total FROM result ORDER BY odd").collect()] == [
        (0, Decimal("2.00")),
        (1, Decimal("4.00")),
    ]
    spark.catalog.dropTempView("result")
    odd = batch.sql_query("SELECT TIME '01:02:03' AS t, INTERVAL '3' DAY AS d, INTERVAL '2' MONTH AS m").to_spark()
    assert [tuple(row) for row in odd.select("t", "d", F.col("m").cast("string")).collect()] == [
        ("01:02:03", datetime.timedelta(days=3), "INTERVAL '0-2' YEAR TO MONTH")
    ]
    # The program's session is as it was.
    assert SparkSession.getActiveSession() is active
    assert (spark.conf.get("spark.sql.ansi.enabled"), spark.conf.get("spark.sql.session.timeZone")) == before


def test_sinks(batch: TableEnvironment, capsys: Any) -> None:
    batch.execute_sql("CREATE TABLE IF NOT EXISTS hole (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
    batch.execute_sql("INSERT INTO hole SELECT k, COUNT(*) FROM b GROUP BY k").wait()
    batch.execute_sql("CREATE TABLE IF NOT EXISTS p (k BIGINT, n BIGINT) WITH ('connector' = 'print')")
    batch.execute_sql("INSERT INTO p SELECT k, COUNT(*) FROM b WHERE k = 1 GROUP BY k").wait()
    assert "+I[1, 2]" in capsys.readouterr().out


def test_top_n_is_cut_before_rows_are_moved(batch: TableEnvironment) -> None:
    """Spark keeps no more rows of a partition than are asked for, where it sees the limit."""
    top = batch.sql_query(
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM b) WHERE n <= 1"
    )
    plan = top.to_spark()._jdf.queryExecution().executedPlan().toString()
    assert "WindowGroupLimit" in plan


def test_modules_that_functions_need(tmp_path: Path) -> None:
    spark_env()
    (tmp_path / "needed_in_batch.py").write_text("def twice(value):\n    return value * 2\n")
    env = filled(SPARK, True)
    env.add_python_file(str(tmp_path / "needed_in_batch.py"))

    @udf(result_type="BIGINT")
    def doubled(value: Any) -> Any:
        import importlib

        return importlib.import_module("needed_in_batch").twice(value)

    env.create_temporary_function("doubled", doubled)
    assert final(env, "SELECT doubled(v) FROM b WHERE v > 20") == Counter({"(60,)": 1, "(80,)": 1})


class Visitor(ScalarFunction):
    """Knows what it was opened with, and writes down that it was."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def open(self, function_context: FunctionContext) -> None:
        self.said = function_context.get_job_parameter("city", "nowhere")
        self._visits = function_context.get_metric_group().counter("visits")
        assert function_context.get_index_of_this_subtask() >= 0
        self._write("opened")

    def eval(self, *given: Any) -> str:
        self._visits.inc()
        return f"{self.said}{given[0]}"

    def close(self) -> None:
        self._write("closed")

    def _write(self, what: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{what}\n")


class Largest(Visitor, AggregateFunction[Any, Any]):
    def create_accumulator(self) -> Any:
        return [None]

    def accumulate(self, accumulator: Any, *given: Any) -> None:
        accumulator[0] = max(accumulator[0] or 0, given[0])

    def get_value(self, accumulator: Any) -> str:
        return self.eval(*accumulator)

    def get_result_type(self) -> str:
        return "STRING"

    def get_accumulator_type(self) -> str:
        return "ARRAY<BIGINT>"


class Once(Visitor, TableFunction):
    def eval(self, *given: Any) -> Any:
        return super().eval(*given)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT visitor(k), doubled(k) FROM n WHERE visitor(k + 1, k) <> 'Rome3'", {("Rome1", 2), ("Rome3", 6)}),
        ("SELECT visitor(k), COUNT(*) FROM n GROUP BY visitor(k)", {("Rome1", 1), ("Rome2", 1), ("Rome3", 1)}),
        ("SELECT a.k FROM n AS a JOIN n AS b ON visitor(a.k) = visitor(b.k - 1)", {(1,), (2,)}),
        ("SELECT a.k FROM n AS a LEFT JOIN n AS b ON a.k = b.k AND visitor(a.k, b.k) = 'Rome1'", {(1,), (2,), (3,)}),
        ("SELECT x FROM n, LATERAL TABLE(once(k)) AS o (x)", {("Rome1",), ("Rome2",), ("Rome3",)}),
        ("SELECT largest(k) FROM n", {("Rome3",)}),
    ],
)
def test_functions_know_the_job_and_are_closed(
    batch: TableEnvironment, tmp_path: Path, query: str, expected: set[Any]
) -> None:
    env = filled({**SPARK, "pipeline.global-job-parameters": "city:Rome"}, batch=True)
    file = tmp_path / "visits"
    env.create_temporary_view("n", env.from_elements([(1,), (2,), (3,)], ["k"]))
    env.create_temporary_function("visitor", udf(Visitor(file), result_type="STRING"))
    env.create_temporary_function("doubled", udf(lambda k: k * 2, result_type="BIGINT"))
    env.create_temporary_function("once", udtf(Once(file), result_types="STRING"))
    env.create_temporary_function("largest", udaf(Largest(file)))
    with env.execute_sql(query).collect() as found:
        assert {tuple(row) for row in found} == expected
    visits = file.read_text().split()
    assert visits.count("opened") == visits.count("closed") > 0


def test_a_function_cannot_ask_how_many_tasks_spark_makes(batch: TableEnvironment) -> None:
    class Counting(ScalarFunction):
        def open(self, function_context: FunctionContext) -> None:
            self.number = function_context.get_number_of_parallel_subtasks()

        def eval(self, value: Any) -> int:
            return self.number

    table = batch.from_path("t").select(udf(Counting(), result_type="INT")(col("k")))
    with pytest.raises(JobExecutionError, match="cannot ask how many subtasks there are"):
        list(table.execute().collect())
