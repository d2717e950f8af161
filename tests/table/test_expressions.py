"""Typed expressions: their types, what they compute for a batch, and that they travel by value."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from firesteel.table.functions import Evaluator, evaluate
from firesteel.table.functions.arithmetic import DivisionByZeroError
from firesteel.table.logical.expressions import Call, InputRef, Literal, columns_of, shifted
from firesteel.table.types import DataTypes
from firesteel.table.types.arrow import arrow_type, logical_type
from firesteel.table.types.derivation import arithmetic_type, average_type, common_type, round_type, sum_type

INT = DataTypes.INT()
NUMBER = InputRef(0, INT)
PRICE = InputRef(1, DataTypes.DECIMAL(10, 2))
ONE = Literal(1, DataTypes.INT(False))
BATCH = pa.record_batch(
    {
        "number": pa.array([1, None, 3], pa.int32()),
        "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(10, 2)),
    }
)


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", DataTypes.INT(False), DataTypes.BIGINT(False), "BIGINT NOT NULL"),
        ("/", DataTypes.TINYINT(), DataTypes.INT(), "INT"),
        ("%", DataTypes.BIGINT(), DataTypes.INT(), "INT"),
        ("*", DataTypes.FLOAT(), DataTypes.DOUBLE(), "FLOAT"),
        ("*", DataTypes.DECIMAL(10, 2), DataTypes.DOUBLE(), "DOUBLE"),
        ("+", DataTypes.DECIMAL(10, 2), DataTypes.INT(), "DECIMAL(13, 2)"),
        ("*", DataTypes.DECIMAL(20, 10), DataTypes.DECIMAL(20, 10), "DECIMAL(38, 17)"),
        ("/", DataTypes.DECIMAL(10, 2), DataTypes.DECIMAL(10, 2), "DECIMAL(23, 13)"),
    ],
)
def test_types_of_arithmetic(operator: str, left: object, right: object, expected: str) -> None:
    assert str(arithmetic_type(operator, left, right)) == expected  # type: ignore[arg-type]


def test_types_of_aggregates_and_common_types() -> None:
    assert str(sum_type(DataTypes.DECIMAL(10, 2, False))) == "DECIMAL(38, 2)"
    assert str(average_type(DataTypes.DECIMAL(10, 2))) == "DECIMAL(38, 6)"
    assert str(sum_type(DataTypes.TINYINT(False))) == "TINYINT"
    assert str(round_type(DataTypes.DECIMAL(10, 4), 2)) == "DECIMAL(9, 2)"
    assert str(common_type([DataTypes.CHAR(2, False), DataTypes.CHAR(3, False)])) == "VARCHAR(3) NOT NULL"
    assert common_type([DataTypes.INT(), DataTypes.STRING()]) is None


@pytest.mark.parametrize(
    "kind",
    [
        DataTypes.BIGINT(),
        DataTypes.STRING(),
        DataTypes.DECIMAL(20, 3),
        DataTypes.TIMESTAMP(3),
        DataTypes.TIMESTAMP_LTZ(6),
        DataTypes.ARRAY(DataTypes.ROW([DataTypes.FIELD("a", DataTypes.DATE())])),
        DataTypes.MAP(DataTypes.STRING(False), DataTypes.DOUBLE()),
    ],
)
def test_types_survive_arrow(kind: object) -> None:
    assert logical_type(arrow_type(kind)) == kind  # type: ignore[arg-type]


def test_expressions_travel_by_value_and_name_their_columns() -> None:
    total = Call("*", (Call("+", (NUMBER, ONE), INT), PRICE), DataTypes.DECIMAL(21, 2))
    assert pickle.loads(pickle.dumps(total)) == total
    assert list(columns_of(total)) == [0, 1]
    assert str(shifted(total, 2)) == "*(+($2, 1), $3)"


def test_whole_numbers_wrap_and_truncate() -> None:
    largest = Literal(2**31 - 1, DataTypes.INT(False))
    assert evaluate(Call("+", (NUMBER, largest), INT), BATCH).to_pylist() == [-(2**31), None, -(2**31) + 2]
    minus_two = Literal(-2, DataTypes.INT(False))
    assert evaluate(Call("/", (NUMBER, minus_two), INT), BATCH).to_pylist() == [0, None, -1]
    assert evaluate(Call("%", (NUMBER, minus_two), INT), BATCH).to_pylist() == [1, None, 1]


def test_decimals_are_rounded_half_up_and_null_beyond_their_digits() -> None:
    third = Call("/", (PRICE, Literal(Decimal(9), DataTypes.DECIMAL(1, 0, False))), DataTypes.DECIMAL(14, 6))
    assert evaluate(third, BATCH).to_pylist() == [Decimal("0.166667"), Decimal("-0.250000"), None]
    huge = Literal(Decimal("9" * 36), DataTypes.DECIMAL(36, 0, False))
    product = Call("*", (PRICE, huge), DataTypes.DECIMAL(38, 2))
    assert evaluate(product, BATCH).to_pylist() == [None, None, None]


def test_division_by_zero_is_an_error_only_where_a_row_comes_to_it() -> None:
    below_one = Call("-", (NUMBER, ONE), INT)
    quotient = Call("/", (Literal(6, DataTypes.INT(False)), below_one), INT)
    with pytest.raises(DivisionByZeroError, match="by zero"):
        evaluate(quotient, BATCH)
    safe = Call("<>", (below_one, Literal(0, DataTypes.INT(False))), DataTypes.BOOLEAN())
    guarded = Call("AND", (safe, Call(">", (quotient, ONE), DataTypes.BOOLEAN())), DataTypes.BOOLEAN())
    assert evaluate(guarded, BATCH).to_pylist() == [False, None, True]
    chosen = Call("CASE", (safe, quotient, Literal(-1, DataTypes.INT(False))), INT)
    assert evaluate(chosen, BATCH).to_pylist() == [-1, -1, 3]


def test_what_expressions_share_is_computed_once() -> None:
    shared = Call("+", (NUMBER, ONE), INT)
    both = Evaluator([Call("*", (shared, shared), INT), Call("IS NULL", (shared,), DataTypes.BOOLEAN(False)), ONE])
    assert len(both._steps) == 5
    assert [column.to_pylist() for column in both.columns(BATCH)] == [[4, None, 16], [False, True, False], [1, 1, 1]]
