"""Functions for whole columns: the source has to be that of the function, and the names have to mean what they say."""

from __future__ import annotations

import builtins
import linecache
import pickle
import re
import sys
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from written_functions import user_function, written

from firesteel.table import DataTypes, ScalarFunction
from firesteel.table.functions.column_functions import GuardedColumn, NotTranslatedError, column_form

BIGINT, STRING, BOOLEAN = DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.BOOLEAN()


class Doubled(ScalarFunction):
    def eval(self, n: Any) -> Any:
        return n * 2


def test_a_file_that_was_edited_is_another_source() -> None:
    function = written("lambda n: n + 1")
    file = function.__code__.co_filename
    assert column_form(function, BIGINT) is not None
    # 1 is True and 1.0, but not here.
    for edited in ("written = lambda n: n + 2", "written = lambda n: n + True", "written = lambda m: m + 1", ""):
        linecache.cache[file] = (len(edited), None, edited.splitlines(keepends=True), file)
        with pytest.raises(NotTranslatedError, match="source"):
            column_form(function, BIGINT)


def test_a_method_that_was_replaced_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    user = user_function(Doubled(), BIGINT)
    assert user.look_for_column_form() is None
    batch = [pa.array([4])]
    assert user.column(batch, [BIGINT], 1, "UTC").to_pylist() == [8]
    monkeypatch.setattr(Doubled, "eval", lambda self, n: n * 100)
    assert user.column(batch, [BIGINT], 1, "UTC").to_pylist() == [400]
    monkeypatch.setattr(Doubled, "eval", max)
    with pytest.raises(TypeError):
        user.column(batch, [BIGINT], 1, "UTC")


def test_code_that_was_replaced_is_called() -> None:
    function, other = written("lambda n: n + 1"), written("lambda n: n + 100")
    user = user_function(function, BIGINT)
    assert user.look_for_column_form() is None
    function.__code__ = other.__code__
    assert user.column([pa.array([1])], [BIGINT], 1, "UTC").to_pylist() == [101]


def test_names_of_builtins_may_mean_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    own = written("def f(n):\n    return abs(n)\n", "f", abs=lambda n: 7)
    with pytest.raises(NotTranslatedError, match="not Python's own"):
        column_form(own, BIGINT)
    function = written("lambda n: abs(n)")
    user = user_function(function, BIGINT)
    assert user.look_for_column_form() is None
    batch = [pa.array([-1])]
    assert user.column(batch, [BIGINT], 1, "UTC").to_pylist() == [1]
    function.__globals__["abs"] = lambda n: 8
    assert user.column(batch, [BIGINT], 1, "UTC").to_pylist() == [8]
    del function.__globals__["abs"]
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "abs", lambda n: 9)
        found = user.column(batch, [BIGINT], 1, "UTC")
    assert found.to_pylist() == [9]


def test_names_of_builtins_may_mean_something_of_the_function_around() -> None:
    def measured(len: Any) -> Any:
        return lambda s: len(s)

    function = measured(lambda s: 5)
    with pytest.raises(NotTranslatedError, match="one of len is not Python's own"):
        column_form(function, BIGINT)


def test_a_debugger_sees_each_call() -> None:
    function = written("lambda n: n + 1")
    user = user_function(function, BIGINT)
    assert user.look_for_column_form() is None
    calls: list[str] = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, given: calls.append(frame.f_code.co_filename))
    try:
        user.column([pa.array([1, 2, 3])], [BIGINT], 3, "UTC")
    finally:
        sys.settrace(before)
    assert calls.count(function.__code__.co_filename) == 3


@pytest.mark.parametrize(
    "source", ["lambda n: n in ('a', 'b')", "lambda n: n in {'a', 'b', 'c'}", "lambda n: n == RATE"]
)
def test_workers_have_no_source(source: str) -> None:
    function = written(source, RATE="a")
    user = user_function(function, BOOLEAN)
    assert user.look_for_column_form() is None
    sent = cloudpickle.dumps(user)
    linecache.cache.pop(function.__code__.co_filename)
    there = pickle.loads(sent)
    assert there.function is not function
    assert there.column_form == user.column_form
    guarded = GuardedColumn(there.column_form, BOOLEAN)
    found = guarded.computed(there.called("eval"), [pa.array(["a", "z"])], [STRING], 2)
    assert found.to_pylist() == [True, False]


@pytest.mark.parametrize("source", ["lambda s: shown(f\"{s + '\u00a0'}\")", "lambda s: f\"{s:{'\u00a0'}}\""])
def test_a_function_that_cannot_be_shown_is_left_alone(source: str) -> None:
    reason = user_function(written(source), STRING).look_for_column_form()
    assert reason is not None
    assert re.fullmatch(r"it has (an f-string|'.*') in line 1", reason)


def test_a_source_that_cannot_be_looked_at_stops_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> Any:
        raise KeyError("no such archive")

    user = user_function(written("lambda n: n + 1"), BIGINT)
    monkeypatch.setattr(linecache, "getlines", broken)
    assert user.look_for_column_form() == """looking at it failed (KeyError: "'no such archive'")"""
    assert user.column([pa.array([1])], [BIGINT], 1, "UTC").to_pylist() == [2]
