"""Functions and edge values: type and value, as PyFlink 2.3 gives them (``function_matrix.json``), and where we give
others on purpose (``function_differences.json``, by the reason)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firesteel.errors import ProgramError
from firesteel.table.functions import Evaluator, find, names
from firesteel.table.functions.aggregates import KNOWN_AGGREGATES
from firesteel.table.logical.expression_resolver import _ALIASES as ALIASES
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Call, Expression, InputRef
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import parse_expression
from firesteel.table.types import DataTypes

HERE = Path(__file__).parent
RECORDED: dict[str, dict[str, list[str | None]]] = json.loads((HERE / "function_matrix.json").read_text())
DIFFERENT: dict[str, dict[str, dict[str, list[str | None]]]] = json.loads(
    (HERE / "function_differences.json").read_text()
)
NO_VALUE = ("refused", "fails")
"""Of calls that Flink takes for wrong, before or while they run."""
TWO_ROWS = pa.record_batch({"$kind": pa.array([0, 0], pa.int8())})
ONE_ROW = pa.record_batch({"$kind": pa.array([0], pa.int8())})


def resolved(text: str) -> Expression:
    return ExpressionResolver(Scope([]), text).resolve(parse_expression(text))


def values(expressions: list[Expression]) -> list[str | None]:
    shown = [Call("CAST", (expression,), DataTypes.STRING()) for expression in expressions]
    return [column[0].as_py() for column in Evaluator(shown).columns(ONE_ROW)]


def computed(text: str) -> tuple[str, str | None]:
    expression = resolved(text)
    return str(expression.type), values([expression])[0]


def same(expected: str | None, found: str | None, kind: str) -> bool:
    if expected == found or expected is None or found is None or not kind.startswith("DOUBLE"):
        return expected == found
    # The last digit of sines and logarithms is up to the library.
    return math.isclose(float(expected), float(found), rel_tol=1e-15)


@pytest.mark.parametrize("group", sorted(RECORDED))
def test_as_in_pyflink(group: str) -> None:
    calls = {text: result for text, result in RECORDED[group].items() if result[0] not in NO_VALUE}
    expressions = [resolved(text) for text in calls]
    wrong = []
    for (text, (kind, value)), expression, found in zip(calls.items(), expressions, values(expressions), strict=True):
        if str(expression.type) != kind or not same(value, found, kind or ""):
            wrong.append(f"{text}: expected {kind} {value}, got {expression.type} {found}")
    assert not wrong, "\n".join(wrong)


def over_columns(expressions: list[Expression]) -> tuple[list[Expression], pa.RecordBatch]:
    """The same calls, whose first arguments are columns of two rows."""
    calls = liftable(expressions)
    columns = Evaluator([call.args[0] for call in calls]).columns(TWO_ROWS)
    lifted = [
        Call(call.function, (InputRef(place, call.args[0].type), *call.args[1:]), call.type)
        for place, call in enumerate(calls)
    ]
    return lifted, pa.RecordBatch.from_arrays(columns, [f"c{place}" for place in range(len(columns))])


def liftable(expressions: list[Expression]) -> list[Call]:
    """Not those whose first argument is a word, or counts as JSON because a function of JSON made it."""
    calls = [each for each in expressions if isinstance(each, Call) and each.args]
    return [call for call in calls if not takes_word(call) and not makes_json(call.args[0])]


def takes_word(call: Call) -> bool:
    function = find(call.function)
    return function is not None and function.signature.family(0) == "symbol"


def makes_json(argument: Expression) -> bool:
    return isinstance(argument, Call) and argument.function.startswith("JSON_")


@pytest.mark.parametrize("group", sorted(RECORDED))
def test_columns_give_what_constants_give(group: str) -> None:
    expressions = [resolved(text) for text, result in RECORDED[group].items() if result[0] not in NO_VALUE]
    lifted, batch = over_columns(expressions)
    shown = [Call("CAST", (each,), DataTypes.STRING()) for each in lifted]
    found = [column.to_pylist() for column in Evaluator(shown).columns(batch)]
    assert found == [[value, value] for value in values(list(liftable(expressions)))]


@pytest.mark.parametrize(
    "text", [text for group in RECORDED.values() for text, result in group.items() if result[0] in NO_VALUE]
)
def test_no_value_where_pyflink_has_none(text: str) -> None:
    with pytest.raises((ProgramError, pa.ArrowInvalid)):
        computed(text)


@pytest.mark.parametrize("reason", sorted(DIFFERENT))
def test_other_than_pyflink_on_purpose(reason: str) -> None:
    wrong: list[Any] = []
    for text, both in DIFFERENT[reason].items():
        assert both["flink"] != both["ours"], f"{text} is no difference any more: move it to the matrix."
        found = list(computed(text))
        if found != both["ours"]:
            wrong.append(f"{text}: expected {both['ours']}, got {found}")
    assert not wrong, "\n".join(wrong)


def test_the_matrix_is_large() -> None:
    assert sum(map(len, RECORDED.values())) > 3000


def test_documented_functions_are_there() -> None:
    page = (HERE.parent.parent / "docs" / "table.md").read_text()
    table = page.split("### Functions")[1].split("\n#")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ") and "kind" not in line]
    named = {name for row in rows for name in re.findall(r"\b[A-Z][A-Z0-9_]+\b", row)}
    known = {*names(), *KNOWN_AGGREGATES, *ALIASES, "GROUPING", "GROUP_ID", "TYPEOF", "CURRENT_DATABASE"}
    # Words in between.
    assert named - known == {"IS", "OVER", "SIMILAR", "TO"}
    assert len(named & known) > 170
