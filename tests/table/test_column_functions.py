"""Functions for whole columns: which ones there are, when they are left to be called row by row, and that a program
notices nothing of it."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from conftest import environment
from written_functions import outcome, user_function, written

from firesteel.table import DataTypes, ScalarFunction, TableEnvironment
from firesteel.table.expressions import col, row
from firesteel.table.functions.column_functions import GuardedColumn, NotTranslatedError, column_form
from firesteel.table.functions.column_functions.column_values import GivenUpError
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.types.data_types import DataType
from firesteel.table.udf import udf

BIGINT, DOUBLE, STRING, BOOLEAN = DataTypes.BIGINT(), DataTypes.DOUBLE(), DataTypes.STRING(), DataTypes.BOOLEAN()
LEAST, MOST = -(1 << 63), (1 << 63) - 1
RATE = 3


def computed(function: Any, result: DataType, columns: Sequence[Any], kinds: Sequence[DataType]) -> list[Any]:
    """What is computed for whole columns, which has to be what is computed row by row."""
    arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in columns]
    form = column_form(function, result)
    found = GuardedColumn(form, result).computed(function, arrays, kinds, len(arrays[0]))
    by_rows = outcome(user_function(function, result), arrays, kinds)
    assert (str(found.type), [repr(each) for each in found.to_pylist()]) == by_rows
    values: list[Any] = found.to_pylist()
    return values


# What is computed for columns.


def graded(points):
    """A docstring."""
    total = points * 2
    if points is None:
        return None
    if total >= 100:
        grade = "A"
    elif 50 <= total < 100:
        grade = "B"
    else:
        grade = "C"
        grade += "-"
    return grade


@pytest.mark.parametrize(
    ("function", "result", "kind", "values", "expected"),
    [
        (lambda n: n * 3 + 1, BIGINT, BIGINT, [0, -1, 7], [1, -2, 22]),
        (lambda n: n // 2 - n % 3, BIGINT, BIGINT, [-7, 7], [-6, 2]),
        (lambda n: n // 10**9 + n**2, BIGINT, BIGINT, [3, 10**9], [9, 1 + 10**18]),
        (lambda n: n / 4, DOUBLE, BIGINT, [1, -2], [0.25, -0.5]),
        (lambda n: 0 if n is None else n + 1, BIGINT, BIGINT, [None, 4], [0, 5]),
        (lambda n: n or 5, BIGINT, BIGINT, [None, 0, 4], [5, 5, 4]),
        (lambda n: n is not None and n > 3, BOOLEAN, BIGINT, [None, 3, 4], [False, False, True]),
        (lambda n: 100 // n if n else -1, BIGINT, BIGINT, [0, 30], [-1, 3]),
        (lambda n: n in (1, 2, None), BOOLEAN, BIGINT, [None, 1, 3], [True, True, False]),
        (lambda n: 1 if n < 0 else 0.5, DOUBLE, BIGINT, [-1, 1], [1.0, 0.5]),
        (lambda n: f"{n} of {RATE}", STRING, BIGINT, [1, 2], ["1 of 3", "2 of 3"]),
        (lambda x: round(x, 2), DOUBLE, DOUBLE, [2.675, 0.125, -0.001, 7.0], [2.67, 0.12, -0.0, 7.0]),
        (lambda x: int(x), BIGINT, DOUBLE, [-1.9, 1.9], [-1, 1]),
        (lambda s: s.strip().upper() + "!", STRING, STRING, [" a\x1c", "straße\u00a0"], ["A!", "STRASSE!"]),
        (lambda s: s.strip() + s.lower(), STRING, STRING, ["\x1fA\v", "b"], ["A\x1fa\v", "bb"]),
        (lambda s: s[1:-1], STRING, STRING, ["", "abcd", "日本語"], ["", "bc", "本"]),
        (lambda s: len(s) > 2 and s.startswith("a"), BOOLEAN, STRING, ["abc", "ab", "bcd"], [True, False, False]),
        (lambda s: int(s) * 2, BIGINT, STRING, [" 12 ", "-1_0"], [24, -20]),
    ],
)
def test_simple_functions(function: Any, result: DataType, kind: DataType, values: Any, expected: Any) -> None:
    assert computed(function, result, [values], [kind]) == expected


def test_statements() -> None:
    # None * 2 fails whatever is asked later.
    assert computed(graded, STRING, [[60, 30, 1]], [BIGINT]) == ["A", "B", "C-"]
    with pytest.raises(GivenUpError):
        computed(graded, STRING, [[60, None]], [BIGINT])


def test_several_arguments_and_constants_among_them() -> None:
    def share(part: int, whole: int) -> float:
        return part / whole

    form = column_form(share, DOUBLE)
    columns = [pa.array([1, 2]), pa.scalar(4)]
    assert GuardedColumn(form, DOUBLE).computed(share, columns, [BIGINT, BIGINT], 2).to_pylist() == [0.25, 0.5]


def test_equal_values() -> None:
    # The first of those that are equal, and NaN where it comes first.
    for function in (lambda x, y: min(x, y), lambda x, y: max(x, y)):
        values = [[0.0, -0.0, float("nan"), 1.0], [-0.0, 0.0, 1.0, float("nan")]]
        found = computed(function, DOUBLE, values, [DOUBLE, DOUBLE])
        assert list(map(repr, found)) == ["0.0", "-0.0", "nan", "1.0"]
    for function, expected in ((lambda s, t: s == t, [True, False, True]), (lambda s, t: s != t, [False, True, False])):
        assert computed(function, BOOLEAN, [["a", "a", None], ["a", None, None]], [STRING, STRING]) == expected


def test_two_functions_in_one_line() -> None:
    first, second = (lambda n: n + 1, lambda n: n + 2)
    assert computed(first, BIGINT, [[1]], [BIGINT]) == [2]
    assert computed(second, BIGINT, [[1]], [BIGINT]) == [3]


class Doubled(ScalarFunction):
    def eval(self, n: Any) -> Any:
        return n * 2


class Scaled(ScalarFunction):
    def __init__(self) -> None:
        self.by = 2

    def eval(self, n: Any) -> Any:
        return n * self.by


def test_methods_that_do_not_use_their_object() -> None:
    assert computed(Doubled().eval, BIGINT, [[4]], [BIGINT]) == [8]
    with pytest.raises(NotTranslatedError, match=r"it has 'self.by' in line \d+"):
        column_form(Scaled().eval, BIGINT)


def test_names_from_outside_are_read_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = 10

    def moved(n: int) -> int:
        return n * RATE + offset

    guarded = GuardedColumn(column_form(moved, BIGINT), BIGINT)
    batch = [pa.array([1, 2])]
    assert guarded.computed(moved, batch, [BIGINT], 2).to_pylist() == [13, 16]
    offset = 20
    monkeypatch.setitem(globals(), "RATE", 5)
    assert guarded.computed(moved, batch, [BIGINT], 2).to_pylist() == [25, 30]
    monkeypatch.setitem(globals(), "RATE", "x")
    with pytest.raises(GivenUpError):
        guarded.computed(moved, batch, [BIGINT], 2)


def test_collections_from_outside_are_read_for_each_batch() -> None:
    capitals = {"Rome", "Oslo"}
    user = user_function(written("lambda s: s in CAPITALS", CAPITALS=capitals), BOOLEAN)
    assert user.look_for_column_form() is None
    assert user.column_form is not None
    guarded = GuardedColumn(user.column_form, BOOLEAN)

    def found(*texts: str | None) -> Any:
        return guarded.computed(user.function, [pa.array(texts, pa.string())], [STRING], len(texts)).to_pylist()

    assert found("Rome", "Paris", None) == [True, False, False]
    capitals.update(("Paris", None))  # type: ignore[arg-type]
    assert found("Rome", "Paris", None) == [True, True, True]
    # More work than to look into it; and what a column cannot have.
    capitals.update(map(str, range(1_000)))
    with pytest.raises(GivenUpError, match="more members"):
        found("Rome")
    for wrong in (["Rome", float("nan")], ["Rome", b"x"], ["\ud800"], "Rome", None):
        user.function.__globals__["CAPITALS"] = wrong
        with pytest.raises(GivenUpError):
            found("Rome")


# What is given up: the function itself is called, and has its own results and errors.


@pytest.mark.parametrize(
    ("function", "result", "kind", "values", "reason"),
    [
        (lambda n: n + 1, BIGINT, BIGINT, [1, MOST], "overflow"),
        (lambda n: n * n, BIGINT, BIGINT, [1 << 40], "overflow"),
        (lambda n: -n, DOUBLE, BIGINT, [LEAST], "overflow"),
        (lambda n: abs(n), DOUBLE, BIGINT, [LEAST], "overflow"),
        (lambda n: n // -1, DOUBLE, BIGINT, [LEAST], "64 bits"),
        (lambda n: n**3, DOUBLE, BIGINT, [1 << 22], "overflow"),
        (lambda x: x**2, DOUBLE, DOUBLE, [1e200], "too large"),
        (lambda n: n + 1, BIGINT, BIGINT, [1, None], "None"),
        (lambda n: n > 1, BOOLEAN, BIGINT, [1, None], "None"),
        (lambda s: s.upper(), STRING, STRING, ["a", None], "None"),
        (lambda n: 1 // n, BIGINT, BIGINT, [1, 0], "zero"),
        (lambda n: 1 % n, BIGINT, BIGINT, [1, 0], "zero"),
        (lambda n: 1 / n, DOUBLE, BIGINT, [1, 0], "zero"),
        (lambda x: 1 / x, DOUBLE, DOUBLE, [1.0, -0.0], "zero"),
        (lambda n: n + 0.5, DOUBLE, BIGINT, [(1 << 53) + 1], "range"),
        (lambda n: n == 9007199254740992.0, BOOLEAN, BIGINT, [(1 << 53) + 1], "range"),
        (lambda x: x == 9007199254740993, BOOLEAN, DOUBLE, [2.0**53], "no float"),
        (lambda n: n / 3, DOUBLE, BIGINT, [(1 << 53) + 1], "range"),
        (lambda x: x // 1, DOUBLE, DOUBLE, [float("inf")], "finite"),
        (lambda x: int(x), DOUBLE, DOUBLE, [float("nan")], "64 bits"),
        (lambda x: int(x), DOUBLE, DOUBLE, [2.0**63], "64 bits"),
        (lambda s: s[0], STRING, STRING, ["a", ""], "too short"),
        (lambda s: int(s), BIGINT, STRING, ["1", "one"], "no number"),
        (lambda s: s + 1, STRING, STRING, ["a"], "text is expected"),
        (lambda s: s < 1, BOOLEAN, STRING, ["a"], "str and int"),
        (lambda n: n if n > 1 else "a", STRING, BIGINT, [1, 2], "int for STRING"),
        (lambda n: (n if n > 1 else "a") == 2, BOOLEAN, BIGINT, [1, 2], "several types"),
        # What does not fit the declared type.
        (lambda n: n, DataTypes.TINYINT(), BIGINT, [200], "range"),
        (lambda n: n, DOUBLE, BIGINT, [(1 << 53) + 1], "range"),
        (lambda n: n, DataTypes.FLOAT(), BIGINT, [(1 << 24) + 1], "no FLOAT"),
        (lambda x: x, BIGINT, DOUBLE, [float("nan")], "64 bits"),
        (lambda x: x, BOOLEAN, DOUBLE, [1.0], "float for BOOLEAN"),
        (lambda n: n, STRING, BIGINT, [1], "int for STRING"),
        (lambda n: n, DataTypes.BIGINT(False), BIGINT, [1, None], "None"),
        (lambda d: d, BIGINT, DataTypes.DECIMAL(5, 0), [1], "DECIMAL"),
    ],
)
def test_what_is_doubtful_is_given_up(
    function: Any, result: DataType, kind: DataType, values: list[Any], reason: str
) -> None:
    arrays = [pa.array(values)]
    form = column_form(function, result)
    with pytest.raises((GivenUpError, pa.ArrowException), match=reason):
        GuardedColumn(form, result).computed(function, arrays, [kind], len(values))
    by_rows, on_columns = user_function(function, result), user_function(function, result)
    assert on_columns.look_for_column_form() is None
    assert outcome(on_columns, arrays, [kind]) == outcome(by_rows, arrays, [kind])


def test_an_exception_of_the_function_is_its_own() -> None:
    def checked(n: int) -> int:
        if n < 0:
            raise ValueError(f"negative: {n}")
        return n + 1

    user = user_function(checked, BIGINT)
    assert user.look_for_column_form() is None
    assert user.column([pa.array([1, 2])], [BIGINT], 2, "UTC").to_pylist() == [2, 3]
    with pytest.raises(ValueError, match="negative: -5") as caught:
        user.column([pa.array([1, -5])], [BIGINT], 2, "UTC")
    assert caught.value.__notes__ == ["in the function f, called with (-5,)"]
    with pytest.raises(GivenUpError):
        computed(checked, BIGINT, [[1, -5]], [BIGINT])


def test_batches_that_are_given_up_again_and_again_are_tried_ever_less(monkeypatch: pytest.MonkeyPatch) -> None:
    function = written("lambda n: n * n")
    guarded = GuardedColumn(column_form(function, BIGINT), BIGINT)
    tried: list[int] = []
    own = guarded.computed
    monkeypatch.setattr(guarded, "computed", lambda *given: (tried.append(batch), own(*given))[1])
    too_large, fine = pa.array([1 << 40]), pa.array([2])
    for batch in range(2_000):  # noqa: B007
        assert guarded.column(function, [too_large], [BIGINT], 1) is None
    assert tried[:6] == [0, 2, 5, 10, 19, 36]
    assert len(tried) == 15
    # It is tried again some time, and then all is as it was.
    results = [guarded.column(function, [fine], [BIGINT], 1) for batch in range(2_000, 2_300)]
    assert sum(found is None for found in results) < 257
    assert results[-1].to_pylist() == [4]
    again = [guarded.column(function, [each], [BIGINT], 1) for each in (too_large, fine, fine)]
    assert [found is None for found in again] == [True, True, False]


def test_calls_with_constants_or_other_types_count_for_nothing() -> None:
    function = written("lambda n: n * 2")
    guarded = GuardedColumn(column_form(function, BIGINT), BIGINT)
    for other, kind in ((pa.scalar(3), BIGINT), (pa.array([b"a"]), DataTypes.BYTES())):
        assert guarded.column(function, [other], [kind], 1) is None
        found = guarded.column(function, [pa.array([2])], [BIGINT], 1)
        assert found is not None
        assert found.to_pylist() == [4]


# What is left alone.


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def around(*given: Any) -> Any:
        return function(*given) + 1

    return around


@decorated
def with_decorator(n):
    return n + 1


def with_attribute(n):
    return n + 1


with_attribute.unit = "m"  # type: ignore[attr-defined]


def with_default(n, m=1):
    return n + m


def with_print(n):
    print(n)
    return n


def with_rest(*several):
    return several


async def awaited(n):
    return n


def generator(n):
    yield n


def unbound(n):
    if n > 1:
        m = 1
    return m


class Called:
    def __call__(self, n: Any) -> Any:
        return n


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (with_decorator, "attributes"),
        (with_attribute, "attributes"),
        (with_default, "default"),
        (with_print, "print"),
        (with_rest, "parameters"),
        (awaited, "awaited"),
        (generator, "yield"),
        (unbound, "m may have no value"),
        (Called(), "no function"),
        (functools.partial(max, 1), "no function"),
        (abs, "no function"),
        (lambda: 1, "no arguments"),
        (lambda n: re.sub("a", "b", n), "re.sub"),
        (lambda n: "%d" % n, "'%d' % n"),  # noqa: UP031
        (lambda n: {1: 2}[n], "line"),
        (lambda n: [n for _ in (1,)], "line"),
        (lambda n: n.real, "n.real"),
        (lambda n: n @ n, "n @ n"),
        (lambda n: n**0.5, r"n \*\* 0.5"),
        (lambda n: f"{n:5d}", "line"),
        (lambda n: f"{n!r}", "line"),
        (lambda n: n is True, "True"),
        (lambda n: n[::2], "::2"),
        (lambda n: n + 18446744073709551616, "64 bits"),
        (lambda n: n + BIGINT, "BIGINT is no number"),
        (lambda n: n + nowhere, "nowhere is no number"),  # type: ignore[name-defined]  # noqa: F821
        (lambda n: n in RATE, "RATE is no tuple"),
        (lambda n: (m := n) + m, "m := n"),
        (lambda n: n.strip("é"), "strip"),
        (lambda n: n.replace("", "-"), "replace"),
        (lambda n: n + "\ud800", "UTF-8"),
        (lambda n: max(n), "max"),
        (lambda n: max(1, 2, key=n), "max"),
    ],
)
def test_other_functions_are_left_alone(function: Any, reason: str) -> None:
    with pytest.raises(NotTranslatedError, match=reason):
        column_form(function, BIGINT)
    user = user_function(function, BIGINT)
    assert re.search(reason, user.look_for_column_form() or "")
    assert user.column_form is None


def test_other_kinds_of_functions_are_left_alone() -> None:
    simple = written("lambda n: n + 1")
    assert UserFunction("f", simple, "table", DataTypes.ROW([])).look_for_column_form() is not None
    assert UserFunction("f", simple, "scalar", BIGINT, pandas=True).look_for_column_form() is not None
    assert UserFunction("f", simple, "scalar", BIGINT, deterministic=False).look_for_column_form() is not None
    assert user_function(simple, DataTypes.DATE()).look_for_column_form() == "its result is DATE"
    assert user_function(simple, BIGINT).look_for_column_form() is None


# In programs.


class Counted(ScalarFunction):
    """Is opened, which may be seen, and computed for columns all the same."""

    opened: ClassVar[int] = 0

    def open(self, function_context: Any) -> None:
        Counted.opened += 1

    def eval(self, n: Any) -> Any:
        return 0 if n is None else n * 2


def without_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*given: Any) -> Any:
        raise AssertionError("called row by row")

    monkeypatch.setattr(UserFunction, "_results", called)


def test_queries_use_them(env: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    without_calls(monkeypatch)
    env.create_temporary_function("doubled", udf(Counted(), result_type="INT"))
    shown = udf(lambda s, v: f"{s.upper()}{'?' if v is None else '.'}", result_type="STRING")
    before = Counted.opened
    with (
        env.sql_query("SELECT doubled(k) AS k, s, v FROM t WHERE doubled(k) < 4")
        .select(col("k"), shown(col("s"), col("v")))
        .execute()
        .collect() as found
    ):
        assert sorted(tuple(row) for row in found) == [(0, "D."), (2, "A."), (2, "C?")]
    assert Counted.opened > before


def test_the_setting_turns_it_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    without_calls(monkeypatch)
    for on in ("true", "false"):
        env = environment(**{"firesteel.table.column-functions": on})
        table = env.from_elements([(1,)], ["n"]).select(udf(lambda n: n + 1, result_type="BIGINT")(col("n")))
        if on == "true":
            with table.execute().collect() as found:
                assert [tuple(row) for row in found] == [(2,)]
        else:
            with pytest.raises(Exception, match="called row by row"), table.execute().collect() as found:
                list(found)


def test_the_log_says_which_ones(env: TableEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    simple = udf(lambda n: n + 1, result_type="INT", name="simple")
    other = udf(lambda n: re.sub("a", "b", n), result_type="STRING", name="other")
    first = udf(lambda row: row[0], result_type="INT", name="first")
    table = env.from_path("t").select(simple(col("k").if_null(0)), other(col("s")), first(row(col("k"), col("s"))))
    with caplog.at_level(logging.INFO, "firesteel"), table.execute().collect() as found:
        list(found)
    lines = [record.getMessage() for record in caplog.records if "function" in record.getMessage()]
    assert len(lines) == 3
    assert re.fullmatch(r"the function simple \(.*:\d+\) is computed for whole columns\.", lines[0])
    assert re.fullmatch(r"the function first \(.*\) is called for each row: it gets ROW<.*>.*\.", lines[2])
    assert re.fullmatch(r"the function other \(.*\) is called for each row: it has .re\.sub.* in line \d+\.", lines[1])
