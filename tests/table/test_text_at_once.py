"""Functions of text that take whole columns, beside the Python functions that take one value."""

import datetime
import re
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

from firesteel.table.functions import evaluate
from firesteel.table.functions.arithmetic import DivisionByZeroError
from firesteel.table.functions.arrow_regex import arrow_regex, extracted
from firesteel.table.functions.evaluation import can_fail
from firesteel.table.functions.patterns import _group
from firesteel.table.functions.text import split_index, substring
from firesteel.table.functions.time_formats import format_time
from firesteel.table.functions.values import mapped
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal
from firesteel.table.types import DataTypes

STRING, INT, BIGINT = DataTypes.STRING(), DataTypes.INT(), DataTypes.BIGINT()
TEXTS = st.lists(st.one_of(st.none(), st.text("a/é😀", max_size=6)), min_size=1, max_size=12)


def constant(value: Any) -> Literal:
    return Literal(value, DataTypes.INT(False) if isinstance(value, int) else DataTypes.STRING(False))


def of_texts(function: str, texts: list[str | None], *constants: Any) -> list[Any]:
    # A slice: kernels must not look at what is before it.
    batch = pa.record_batch({"text": pa.array(["/a/", *texts], pa.string())}).slice(1)
    call = Call(function, (InputRef(0, STRING), *map(constant, constants)), STRING)
    found: list[Any] = evaluate(call, batch).to_pylist()
    return found


@given(TEXTS, st.sampled_from(["/", "a/", "é", "", 47]), st.integers(-1, 4))
@settings(max_examples=200)
def test_split_index(texts: list[str | None], mark: str | int, index: int) -> None:
    expected = [None if text is None else split_index(text, mark, index) for text in texts]
    assert of_texts("SPLIT_INDEX", texts, mark, index) == expected


@given(TEXTS, st.integers(-4, 5), st.one_of(st.none(), st.integers(-1, 5)))
@settings(max_examples=200)
def test_substring(texts: list[str | None], start: int, length: int | None) -> None:
    bounds = (start,) if length is None else (start, length)
    expected = [None if text is None else substring(text, *bounds) for text in texts]
    assert of_texts("SUBSTRING", texts, *bounds) == expected


@pytest.mark.parametrize("index", [None, 0, 1, 2, 3, -1])
def test_regexp_extract(index: int | None) -> None:
    texts = ["x=1", "none", None, "x=22;x=3"]
    groups = {None: ["x=1", "x=22"], 0: ["x=1", "x=22"], 1: ["x", "x"], 2: ["1", "22"]}.get(index, [None, None])
    found = of_texts("REGEXP_EXTRACT", texts, r"(\w)=(\d+)", *([] if index is None else [index]))
    assert found == [groups[0], None, None, groups[1]]


@pytest.mark.parametrize("index", [None, 0, 1, 2, 3, -1])
@pytest.mark.parametrize("pattern", ["(/item/)([0-9a-f]+)", r"(/item/)(\d+)"])
def test_regexp_extract_of_many_different_texts(pattern: str, index: int | None) -> None:
    """Then Arrow looks for the pattern, if it finds what Python finds."""
    texts = [None if n % 7 == 0 else f"here/{n}" if n % 3 else f"here/item/{n}é\n/item/1" for n in range(2000)]
    expected = [None if text is None else _group(re.compile(pattern), text, index or 0) for text in texts]
    assert of_texts("REGEXP_EXTRACT", texts, pattern, *([] if index is None else [index])) == expected


PIECES = [
    "a",
    "b",
    "[ab]",
    "[^a]",
    ".",
    r"\.",
    "é",
    "/",
    "[a-c]",
    "(",
    ")",
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "^",
    " ",
    "-",
]


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=9), st.lists(st.text("ab/.-\né0 "), min_size=1, max_size=9)
)
@settings(max_examples=300)
def test_patterns_that_arrow_takes_mean_the_same_to_python(pieces: list[str], texts: list[str]) -> None:
    pattern = "".join(pieces)
    regex = arrow_regex(pattern)
    assume(regex is not None)
    assert regex is not None
    known = re.compile(pattern)
    assert regex.groups == known.groups
    for group in range(known.groups + 1):
        assert extracted(pa.array(texts), regex, group).to_pylist() == [_group(known, text, group) for text in texts]


MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
PATTERNS = ["yyyy-MM-dd", "HH:mm", "h a", "ss", "mm:ss.SSS", "EEE d MMM", "D", "kk 'S s m'", "yy'年'"]


@given(st.lists(st.one_of(st.none(), MOMENTS), min_size=1, max_size=100), st.sampled_from(PATTERNS))
@settings(max_examples=200)
def test_date_format(moments: list[datetime.datetime | None], pattern: str) -> None:
    """Moments are cut to what the pattern writes, and that is all it may write."""
    batch = pa.record_batch({"at": pa.array(moments, pa.timestamp("us"))})
    call = Call("DATE_FORMAT", (InputRef(0, DataTypes.TIMESTAMP(6)), constant(pattern)), STRING)
    expected = [None if moment is None else format_time(moment, pattern) for moment in moments]
    assert evaluate(call, batch).to_pylist() == expected


@pytest.mark.parametrize("different", [3, 5000])
def test_a_function_of_few_and_of_many_different_values(different: int) -> None:
    calls: list[int] = []

    def double(value: int) -> int:
        calls.append(value)
        return 2 * value

    column = pa.array([None if n % 7 == 0 else n % different for n in range(5000)], pa.int64())
    found = mapped(column, double, pa.int64())
    assert found.to_pylist() == [None if n is None else 2 * n for n in column.to_pylist()]
    assert len(calls) == (3 if different == 3 else 5000 - 715), "each of few values is computed once"


def divided(by: Expression) -> Call:
    return Call("/", (InputRef(0, BIGINT), by), BIGINT)


def test_what_cannot_fail_is_computed_for_all_rows_and_what_can_only_where_it_matters() -> None:
    assert not can_fail(divided(constant(7)))
    assert not can_fail(Call("CAST", (InputRef(0, BIGINT),), STRING))
    assert can_fail(divided(constant(0)))
    assert can_fail(divided(InputRef(1, BIGINT)))
    assert can_fail(Call("CAST", (InputRef(0, STRING),), BIGINT))
    assert can_fail(divided(Literal(None, INT)))
    batch = pa.record_batch({"a": pa.array([6, 8]), "b": pa.array([2, 0])})
    quotient = divided(InputRef(1, BIGINT))
    there = Call("<>", (InputRef(1, BIGINT), constant(0)), DataTypes.BOOLEAN())
    case = Call("CASE", (there, quotient, Literal(None, BIGINT)), BIGINT)
    assert evaluate(case, batch).to_pylist() == [3, None]
    with pytest.raises(DivisionByZeroError):
        evaluate(quotient, batch)
