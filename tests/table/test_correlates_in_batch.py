"""Table functions in Spark's workers: opened and closed once for all batches of a partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firesteel.runtime.operators.table import Correlate
from firesteel.table import DataTypes, FunctionContext, TableFunction
from firesteel.table.batch.correlates import _Make
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.expressions import InputRef, UserCall
from firesteel.table.physical.made_rows import made_rows

BIGINT, STRING = DataTypes.BIGINT(), DataTypes.STRING()
MADE = DataTypes.ROW([DataTypes.FIELD("x", STRING)])


class Upto(TableFunction):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, function_context: FunctionContext) -> None:
        self.city = function_context.get_job_parameter("city", "nowhere")
        self.calls.append("opened")

    def eval(self, number: int) -> Any:
        if number > 5:
            raise ValueError("too large")
        self.calls.append("called")
        return [f"{self.city} {each}" for each in range(number)]

    def close(self) -> None:
        self.calls.append("closed")


def made(function: Upto, outer: bool, *batches: list[int]) -> list[tuple[Any, ...]]:
    call = UserCall(UserFunction("upto", function, "table", MADE), (InputRef(0, BIGINT),), MADE)
    schema = pa.schema([("k", pa.int64()), ("x", pa.string())])
    make = _Make(
        Correlate(made_rows(call, "UTC"), (0,), schema, outer),
        (BIGINT,),
        (BIGINT, STRING),
        KernelContext("UTC", 0.0, job_parameters="city:Rome"),
    )
    found = make(iter([pa.record_batch({"c0": pa.array(each, pa.int64())}) for each in batches]))
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def test_functions_are_opened_once() -> None:
    function = Upto()
    assert made(function, False, [2, 0], [], [1]) == [(2, "Rome 0"), (2, "Rome 1"), (1, "Rome 0")]
    assert function.calls == ["opened", "called", "called", "called", "closed"]


def test_rows_of_which_nothing_is_made() -> None:
    assert made(Upto(), True, [0], [1, 0]) == [(0, None), (1, "Rome 0"), (0, None)]


def test_functions_are_closed_after_a_failure() -> None:
    function = Upto()
    with pytest.raises(ValueError, match="too large"):
        made(function, False, [1], [6])
    assert function.calls == ["opened", "called", "closed"]
