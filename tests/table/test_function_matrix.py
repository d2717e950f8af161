"""Functions and edge values: type and value, as PyFlink 2.3 gives them (``function_matrix.json``)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

from firesteel.table.functions import Evaluator
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Call
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import parse_expression
from firesteel.table.types import DataTypes

RECORDED: dict[str, dict[str, list[str | None]]] = json.loads(
    (Path(__file__).parent / "function_matrix.json").read_text()
)
ONE_ROW = pa.record_batch({"$kind": pa.array([0], pa.int8())})


def computed(text: str) -> tuple[str, str | None]:
    expression = ExpressionResolver(Scope([]), text).resolve(parse_expression(text))
    shown = Evaluator([Call("CAST", (expression,), DataTypes.STRING())]).columns(ONE_ROW)[0]
    return str(expression.type), shown[0].as_py()


def same(expected: str | None, found: str | None, kind: str) -> bool:
    if expected == found or expected is None or found is None or not kind.startswith("DOUBLE"):
        return expected == found
    # The last digit of sines and logarithms is up to the library.
    return math.isclose(float(expected), float(found), rel_tol=1e-15)


@pytest.mark.parametrize("group", sorted(RECORDED))
def test_as_in_pyflink(group: str) -> None:
    wrong = []
    for text, (kind, value) in RECORDED[group].items():
        found_kind, found = computed(text)
        if found_kind != kind or not same(value, found, kind or ""):
            wrong.append(f"{text}: expected {kind} {value}, got {found_kind} {found}")
    assert not wrong, "\n".join(wrong)


def test_the_matrix_is_large() -> None:
    assert sum(map(len, RECORDED.values())) > 1000
