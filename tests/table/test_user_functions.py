"""Users' functions on the memory engine, with what PyFlink 2.3 gives for the same programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import function_programs
import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError, JobExecutionError, ProgramError
from firesteel.table import (
    AggregateFunction,
    AsyncScalarFunction,
    DataTypes,
    EnvironmentSettings,
    ScalarFunction,
    StreamTableEnvironment,
    TableEnvironment,
)
from firesteel.table.expressions import col, lit
from firesteel.table.sql import NotSupportedError, SqlError, SqlValidationError
from firesteel.table.udf import udaf, udf, udtf

RECORDED = json.loads((Path(__file__).parent / "functions_by_pyflink.json").read_text())

OTHERWISE = {
    # PyFlink takes only what has a method quantize().
    "misfit_number_for_decimal",
    # PyFlink fails in its own conversion.
    "misfit_tuple_for_array",
}
"""Programs that do something else on PyFlink, for a reason."""


RECORDED_PROGRAMS = [each for each in function_programs.PROGRAMS if each.__name__ in RECORDED]


@pytest.mark.parametrize("program", RECORDED_PROGRAMS, ids=lambda program: str(program.__name__))
def test_gives_what_pyflink_gives(program: Any) -> None:
    expected = RECORDED[program.__name__]
    found = function_programs.outcome(program)
    if program.__name__ in OTHERWISE:
        assert "error" in expected
        assert "error" not in found
    elif "error" in expected:
        assert "error" in found
    else:
        assert found == expected


@pytest.mark.parametrize(
    "program",
    [each for each in function_programs.PROGRAMS if each.__name__ not in RECORDED],
    ids=lambda program: str(program.__name__),
)
def test_runs_also_where_nothing_is_recorded(program: Any) -> None:
    assert function_programs.outcome(program).get("changes")


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


# How often functions are called.


class Counting(ScalarFunction):
    """Says how often it was called, opened and closed."""

    calls: ClassVar[Counter[str]] = Counter()

    def open(self, function_context: Any) -> None:
        Counting.calls["open"] += 1
        self._metric = function_context.get_metric_group().counter("calls")
        assert function_context.get_number_of_parallel_subtasks() == 1
        assert function_context.get_index_of_this_subtask() == 0

    def close(self) -> None:
        Counting.calls["close"] += 1

    def eval(self, value: Any) -> Any:
        Counting.calls["eval"] += 1
        self._metric.inc()
        return value


@pytest.fixture
def counting(env: TableEnvironment) -> TableEnvironment:
    Counting.calls = Counter()
    env.create_temporary_function("counting", udf(Counting(), result_type="INT"))
    return env


@pytest.mark.parametrize(
    ("query", "calls"),
    [
        ("SELECT counting(k), counting(k) + 1, counting(k) * 2 FROM t", 4),
        ("SELECT counting(k) FROM t WHERE counting(k) > 0", 4),
        ("SELECT y, y + 1 FROM (SELECT counting(k) AS y FROM t) WHERE y > 0", 4),
        ("SELECT CASE WHEN counting(k) > 1 THEN counting(k) ELSE 0 END FROM t", 4),
        # The rest of a condition comes first, wherever it stands.
        ("SELECT s FROM t WHERE counting(k) > 0 AND v > 1", 2),
        ("SELECT y FROM (SELECT counting(k) AS y, v FROM t) WHERE v > 2", 1),
        ("SELECT counting(k), counting(k + 1) FROM t", 8),
    ],
)
def test_functions_are_called_once_for_a_row(counting: TableEnvironment, query: str, calls: int) -> None:
    rows(counting, query)
    assert Counting.calls["eval"] == calls
    assert Counting.calls["open"] == Counting.calls["close"] > 0


def test_what_is_not_deterministic_is_called_wherever_it_stands(env: TableEnvironment) -> None:
    numbers = iter(range(100))
    draw = udf(lambda: next(numbers), result_type="INT", deterministic=False)
    env.create_temporary_function("draw", draw)
    drawn = [number for row in rows(env, "SELECT draw(), draw() FROM t") for number in row]
    assert sorted(drawn) == list(range(8))
    # And a column of it has one value, however often it is used.
    assert all(a == b for a, b in rows(env, "SELECT x, x FROM (SELECT draw() AS x FROM t)"))


def test_equal_zeros_are_two_constants(env: TableEnvironment) -> None:
    shown = udf(lambda number: str(number), result_type="STRING")
    table = env.from_path("t").select(shown(lit(0.0)), shown(lit(-0.0)), lit(0.0), lit(-0.0), shown(lit(0.0)))
    with table.execute().collect() as found:
        assert repr(tuple(next(iter(found)))) == "('0.0', '-0.0', 0.0, -0.0, '0.0')"


def test_pandas_functions_get_whole_batches(env: TableEnvironment) -> None:
    size = udf(lambda v: v * 0 + len(v), result_type="DOUBLE", func_type="pandas")
    table = env.from_elements([(float(n),) for n in range(100)], ["v"]).select(size(col("v")))
    with table.execute().collect() as found:
        assert [row[0] for row in found] == [100.0] * 100


def test_asynchronous_functions_wait_together(env: TableEnvironment) -> None:
    import asyncio

    waiting: list[int] = []

    @udf(result_type="INT")
    async def slow(k: int | None) -> int | None:
        waiting.append(1)
        # Everybody waits until all four are there.
        while len(waiting) < 4:
            await asyncio.sleep(0)
        return k

    env.create_temporary_function("slow", slow)
    assert rows(env, "SELECT slow(k) FROM t") == [(1,), (2,), (1,), (None,)]


class Shaky(AsyncScalarFunction):
    """Fails at first."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    async def eval(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls <= self._failures:
            raise ValueError("not yet")
        return args[0]


@pytest.mark.parametrize("batch", [False, True])
def test_asynchronous_functions_are_called_again(batch: bool) -> None:
    settings = {"firesteel.master": "memory", "parallelism.default": "1"}
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(settings))
    env = TableEnvironment.create((builder.in_batch_mode() if batch else builder.in_streaming_mode()).build())
    env.get_config().set("table.exec.async-scalar.retry-delay", "1 ms")
    table = env.from_elements([(7,)], ["k"])

    def result(failures: int) -> Any:
        shaky = udf(Shaky(failures), result_type="BIGINT", name="shaky")
        with table.select(shaky(col("k"))).execute().collect() as found:
            return [row[0] for row in found]

    assert result(3) == [7]
    with pytest.raises(JobExecutionError, match=r"not yet[\s\S]*in the function shaky, called with \(7,\)"):
        result(4)
    env.get_config().set("table.exec.async-scalar.max-attempts", "5")
    assert result(5) == [7]
    env.get_config().set("table.exec.async-scalar.retry-strategy", "NO_RETRY")
    with pytest.raises(JobExecutionError, match="not yet"):
        result(1)
    env.get_config().set("table.exec.async-scalar.retry-strategy", "SOMETIMES")
    with pytest.raises(ConfigurationError, match="should be FIXED_DELAY or NO_RETRY, got 'SOMETIMES'"):
        result(0)


def test_asynchronous_functions_have_a_time(env: TableEnvironment) -> None:
    import asyncio

    @udf(result_type="INT")
    async def endless(k: int | None) -> int | None:
        await asyncio.sleep(60)
        return k

    env.get_config().set("table.exec.async-scalar.timeout", "20 ms")
    env.create_temporary_function("endless", endless)
    with pytest.raises(JobExecutionError, match=r"took longer than 0\.02 s, with its retries"):
        rows(env, "SELECT endless(k) FROM t")


# Errors.


def failure(env: TableEnvironment, query: str) -> str:
    with pytest.raises(JobExecutionError) as raised:
        rows(env, query)
    return str(raised.value)


def test_an_exception_names_function_line_and_row(env: TableEnvironment) -> None:
    env.create_temporary_function("inverse", udf(lambda k, s: 1 / (k - 2), result_type="DOUBLE", name="inverse"))
    text = failure(env, "SELECT inverse(k, s) FROM t")
    assert "ZeroDivisionError" in text
    assert "in the function inverse, called with (2, 'b')" in text
    assert f"{Path(__file__)}:" in text
    assert "1 / (k - 2)" in text


def test_a_table_function_names_its_row_too(env: TableEnvironment) -> None:
    env.create_temporary_function("parts", udtf(lambda k: range(10 // (k - 2)), result_types="INT", name="parts"))
    assert "in the function parts, called with (2,)" in failure(env, "SELECT * FROM t, LATERAL TABLE(parts(k))")


@pytest.mark.parametrize(
    ("result_type", "value", "expected"),
    [
        ("BIGINT", "seven", "expected BIGINT, got str 'seven', in the function f, called with (1,)"),
        ("BIGINT", float("nan"), "expected BIGINT, got float nan"),
        ("TINYINT", 300, "expected TINYINT, got int 300"),
        ("ARRAY<INT>", [1, "x"], "expected INT, got str 'x' in [1, 'x']"),
        ("ROW<a INT, b INT>", (1,), "expected ROW<`a` INT, `b` INT>, got tuple (1,)"),
        ("MAP<STRING, INT>", [1], "expected MAP<STRING, INT>, got list [1]"),
        ("INT NOT NULL", None, "expected INT NOT NULL, got None"),
    ],
)
def test_a_result_of_another_type(env: TableEnvironment, result_type: str, value: Any, expected: str) -> None:
    env.create_temporary_function("f", udf(lambda k: value, result_type=result_type, name="f"))
    text = failure(env, "SELECT f(k) FROM t")
    assert expected in text
    assert f"The function f ({Path(__file__)}:" in text


def test_pandas_results_are_checked(env: TableEnvironment) -> None:
    for name, function, expected in (
        ("single", lambda v: 1, "gives a Series or a DataFrame with a value for each row, got int 1"),
        ("short", lambda v: v[:1], "got 4 rows and gave 1 values"),
        ("text", lambda v: v.map(str), "gave a Series of object, its type is BIGINT"),
    ):
        env.create_temporary_function(name, udf(function, result_type="BIGINT", func_type="pandas", name=name))
        assert expected in failure(env, f"SELECT {name}(v) FROM t")


def test_rows_of_a_table_function_are_checked(env: TableEnvironment) -> None:
    env.create_temporary_function("f", udtf(lambda k: [(1, 2, 3)], result_types=["INT", "INT"], name="f"))
    expected = "is declared to give rows of 2 values (ROW<`f0` INT, `f1` INT>), got 3: (1, 2, 3)"
    assert expected in failure(env, "SELECT * FROM t, LATERAL TABLE(f(k))")


class Total(AggregateFunction[Any, Any]):
    """Sums; what is not stated about it is left out."""

    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator[0] += args[0] or 0

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def get_result_type(self) -> str:
        return "BIGINT"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT words(s) FROM t", "words gives rows, not a value: it stands in FROM"),
        ("SELECT * FROM t, LATERAL TABLE(inc(k))", "inc is not a table function"),
        ("SELECT * FROM t, LATERAL TABLE(nobody(k))", "There is no table function nobody"),
        ("SELECT * FROM t, LATERAL TABLE(words(s)) AS w(a, b)", "2 names for 1 columns"),
        ("SELECT * FROM t RIGHT JOIN LATERAL TABLE(words(s)) AS w(a) ON TRUE", "RIGHT JOIN cannot be used"),
        ("SELECT * FROM t LEFT JOIN LATERAL TABLE(words(s)) AS w(a) ON a = s", "takes no condition but ON TRUE"),
        ("SELECT * FROM t CROSS JOIN UNNEST(s) AS u(x)", "UNNEST takes an array, a map or a multiset, got STRING"),
        ("SELECT inc(s) FROM t", r"inc(STRING): the function takes inc(BIGINT)"),
        ("SELECT inc(k, k) FROM t", r"inc(INT, INT): the function takes inc(BIGINT)"),
        ("SELECT inc(DISTINCT k) FROM t", "inc is not an aggregate"),
        ("SELECT k FROM t WHERE total(k) > 1", "WHERE has no aggregates"),
    ],
)
def test_what_cannot_be_called_so(env: TableEnvironment, query: str, expected: str) -> None:
    env.create_temporary_function("words", udtf(str.split, result_types="STRING", name="words"))
    env.create_temporary_function("inc", udf(lambda k: k, "BIGINT", "BIGINT", name="inc"))
    env.create_temporary_function("total", udaf(Total()))
    with pytest.raises(SqlError) as raised:
        env.sql_query(query)
    assert expected in str(raised.value)


def test_declarations_are_checked() -> None:
    with pytest.raises(TypeError, match="returnType is a DataType or its text, such as 'INT'; got None"):
        udf(lambda k: k)
    with pytest.raises(ValueError, match="func_type is 'general' or 'pandas', got 'fast'"):
        udf(lambda k: k, result_type="INT", func_type="fast")
    with pytest.raises(TypeError, match="takes a function or an instance, not a class"):
        udf(Counting, result_type="INT")
    with pytest.raises(ValueError, match="deterministic=False was given, but is_deterministic"):
        udf(Counting(), result_type="INT", deterministic=False)
    with pytest.raises(TypeError, match="takes an instance of AggregateFunction"):
        udaf(lambda v: v, result_type="INT")


# Names.


def test_functions_by_ddl(env: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    env.execute_sql("CREATE TEMPORARY SYSTEM FUNCTION shout AS 'user_function_module.shout' LANGUAGE PYTHON")
    env.execute_sql("CREATE FUNCTION letters AS 'user_function_module.letters' LANGUAGE PYTHON")
    env.execute_sql("CREATE FUNCTION IF NOT EXISTS letters AS 'nobody.knows' LANGUAGE PYTHON")
    found = rows(env, "SELECT shout(x) FROM t, LATERAL TABLE(letters(s)) AS l(x) WHERE k = 2")
    assert found == [("B!",)]
    assert env.list_user_defined_functions() == ["letters", "shout"]
    assert rows(env, "SHOW USER FUNCTIONS") == [("letters",), ("shout",)]
    assert {("shout",), ("upper",)} <= set(rows(env, "SHOW FUNCTIONS"))
    env.execute_sql("DROP TEMPORARY SYSTEM FUNCTION shout")
    env.execute_sql("DROP FUNCTION letters")
    assert env.list_user_defined_functions() == []
    with pytest.raises(SqlValidationError, match="There is no function SHOUT"):
        env.sql_query("SELECT shout(s) FROM t")
    del sys.modules["user_function_module"]


def test_names_that_do_not_fit(env: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with pytest.raises(NotSupportedError, match="Functions in JAVA cannot run here"):
        env.execute_sql("CREATE FUNCTION f AS 'com.example.F'")
    env.execute_sql("CREATE FUNCTION f AS 'user_function_module.missing' LANGUAGE PYTHON")
    env.execute_sql("CREATE FUNCTION g AS 'user_function_module.number' LANGUAGE PYTHON")
    with pytest.raises(ProgramError, match=r"There is no Python function 'user_function_module\.missing'"):
        env.sql_query("SELECT f(s) FROM t")
    with pytest.raises(ProgramError, match=r"takes a function that udf\(\).* made, got 7"):
        env.sql_query("SELECT g(s) FROM t")
    with pytest.raises(SqlValidationError, match=r"There is a function default_catalog\.default_database\.f already"):
        env.execute_sql("CREATE FUNCTION F AS 'a.b' LANGUAGE PYTHON")
    with pytest.raises(SqlValidationError, match="There is no temporary function"):
        env.execute_sql("DROP TEMPORARY FUNCTION f")
    with pytest.raises(ProgramError, match=r"made, got <function"):
        env.create_temporary_function("h", lambda k: k)
    with pytest.raises(NotSupportedError, match=r"com\.example\.F: functions in Java cannot run here"):
        env.create_java_temporary_function("h", "com.example.F")
    assert not env.drop_temporary_function("nobody")
    del sys.modules["user_function_module"]


@pytest.mark.parametrize("kind", ["tables", "streams", "batch"])
def test_modules_that_functions_need(tmp_path: Path, kind: str, env: TableEnvironment) -> None:
    (tmp_path / f"needed_by_{kind}.py").write_text(
        "def twice(value):\n    return None if value is None else value * 2\n"
    )
    if kind == "streams":
        settings = Configuration.from_dict({"firesteel.master": "memory"})
        env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(settings))
        env.create_temporary_view("t", env.from_elements([(1,), (2,), (1,), (None,)], ["k"]))
    if kind == "batch":
        settings = Configuration.from_dict({"firesteel.master": "memory"})
        builder = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(settings)
        env = TableEnvironment.create(builder.build())
        env.create_temporary_view("t", env.from_elements([(1,), (2,), (1,), (None,)], ["k"]))
    env.add_python_file(str(tmp_path / f"needed_by_{kind}.py"))

    @udf(result_type="BIGINT")
    def doubled(value: Any) -> Any:
        import importlib

        return importlib.import_module(f"needed_by_{kind}").twice(value)

    env.create_temporary_function("doubled", doubled)
    assert rows(env, "SELECT doubled(k) FROM t") == [(2,), (4,), (2,), (None,)]


def test_explain_has_flinks_names(env: TableEnvironment) -> None:
    env.create_temporary_function("words", udtf(str.split, result_types="STRING", name="words"))
    env.create_temporary_function("total", udaf(Total()))
    env.create_temporary_function("inc", udf(lambda k: k, result_type="INT", name="inc"))
    plan = env.explain_sql("SELECT w, total(inc(k)) FROM t, LATERAL TABLE(words(s)) AS l(w) GROUP BY w")
    for part in ("PythonCalc(select=[w, inc(k)", "PythonCorrelate(invocation=[words(s)]", "PythonGroupAggregate("):
        assert part in plan


def test_multisets_give_an_element_as_often_as_it_is_there() -> None:
    import pyarrow as pa

    from firesteel.table.logical.expressions import Call, InputRef
    from firesteel.table.physical.made_rows import made_rows
    from firesteel.table.types import MultisetType, RowType

    kind = MultisetType(DataTypes.STRING())
    made = RowType.of(["x", "n"], [DataTypes.STRING(), DataTypes.INT()])
    column = pa.array([[("a", 2), ("b", 1)], None, [], [("c", 1)]], pa.map_(pa.string(), pa.int32()))
    rows_of = made_rows(Call("UNNEST WITH ORDINALITY", (InputRef(0, kind),), made), "UTC")
    places, (elements, numbers) = rows_of.rows(pa.record_batch({"m": column}), 0)
    assert places.tolist() == [0, 0, 0, 3]
    assert elements.to_pylist() == ["a", "a", "b", "c"]
    assert numbers.to_pylist() == [1, 2, 3, 1]
