"""Users' aggregate functions as operators want them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.errors import ProgramError, TypeMismatchError, short_repr
from firesteel.runtime.operators.table.accumulators import Values
from firesteel.runtime.operators.table.user_accumulators import objects
from firesteel.table.functions.contracts import AggregateFunction, ImperativeAggregateFunction
from firesteel.table.functions.decimals import WIDE
from firesteel.table.functions.user_functions import UserFunction, fields_of, series_of
from firesteel.table.functions.user_values import MisfitError, plain_list, stored_value, values_to_column
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import ArrayType, DataType, DecimalType, IntegralType, RowField, RowType

__all__ = ["GeneralAggregate", "PandasAggregate", "aggregate_of", "check_methods"]


def aggregate_of(
    user: UserFunction, kinds: Sequence[DataType], time_zone: str, each_row: bool = False
) -> GeneralAggregate | PandasAggregate:
    """The function, for arguments of these types. ``each_row``: results are wanted after each row."""
    made = (PandasAggregate if user.pandas else GeneralAggregate)(user, tuple(kinds), time_zone)
    made.each_row = each_row
    return made


def check_methods(user: UserFunction, retracts: bool = False, merges: bool = False) -> None:
    """Refuses a function that lacks what the query needs of it."""
    for needed, method, reason in (
        (retracts, "retract", "its input takes rows back when it changes"),
        (merges, "merge", "sessions grow together"),
    ):
        if needed and not user.pandas and _inherited(user.function, method):
            raise ProgramError(
                f"The function {user.name} ({user.place}) needs a method {method}(): {reason}, and "
                f"{type(user.function).__name__} has none."
            )


def _inherited(function: Any, method: str) -> bool:
    return getattr(type(function), method, None) is getattr(ImperativeAggregateFunction, method)


class _Aggregate:
    each_row = False

    def __init__(self, user: UserFunction, kinds: tuple[DataType, ...], time_zone: str) -> None:
        self.user = user
        self.functions = [user]
        self._kinds = kinds
        self._zone = time_zone

        self._convert: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_convert": None}

    def converted(self, result: Any) -> Any:
        """What a function gave as Arrow takes it. It may be a part of the accumulator: then this is a copy."""
        if result is None:
            return None
        kind = self.user.result_type
        if self._convert is None:
            self._convert = stored_value(kind)
        try:
            ready = self._convert(result)
        except MisfitError as error:
            raise self.user.misfit(error, [result]) from None
        # Of a decimal the whole number of its last digit.
        return int(Decimal(ready).scaleb(kind.scale, WIDE)) if isinstance(kind, DecimalType) else ready

    def results(self, values: Sequence[Any]) -> Values:
        """Results that were converted, in the form that those of aggregates have."""
        known = np.array([value is not None for value in values], bool)
        if isinstance(self.user.result_type, DecimalType):
            values = [0 if value is None else value for value in values]
        return Values(objects(values), known)


class GeneralAggregate(_Aggregate):
    """An instance of :class:`~firesteel.table.AggregateFunction`, or of a table aggregate function."""

    def __init__(self, user: UserFunction, kinds: tuple[DataType, ...], time_zone: str) -> None:
        super().__init__(user, kinds, time_zone)
        self._stored_as = user.stored_accumulator_type()
        self.state_type = pa.binary() if self._stored_as is None else arrow_type(self._stored_as)

    def arguments(self, columns: Sequence[pa.Array], rows: int) -> list[Any]:
        lists = [plain_list(column, kind, self._zone) for column, kind in zip(columns, self._kinds, strict=True)]
        return list(zip(*lists, strict=True)) if lists else [()] * rows

    def take(self, accumulator: Any, arguments: Sequence[Any], signs: Sequence[int] | None) -> Any:
        function = self.user.function
        if accumulator is None:
            accumulator = function.create_accumulator()
        row: Sequence[Any] | None = None
        try:
            if signs is None:
                accumulate = function.accumulate
                for row in arguments:
                    accumulate(accumulator, *row)
            else:
                for row, sign in zip(arguments, signs, strict=True):
                    if sign > 0:
                        function.accumulate(accumulator, *row)
                    elif sign < 0:
                        function.retract(accumulator, *row)
        except Exception as error:
            error.add_note(f"in the function {self.user.name}, called with {short_repr(row, 160)}")
            raise
        return accumulator

    def merge(self, accumulators: Sequence[Any]) -> Any:
        function = self.user.function
        merged = function.create_accumulator()
        function.merge(merged, [each for each in accumulators if each is not None])
        return merged

    def value(self, accumulator: Any) -> Any:
        function = self.user.function
        assert isinstance(function, AggregateFunction)
        return self.converted(function.get_value(accumulator))

    def emitted(self, accumulator: Any) -> list[Any]:
        """The rows that a table aggregate function gives."""
        return [tuple(fields_of(row)) for row in self.user.function.emit_value(accumulator)]

    def columns_of(self, rows: Sequence[Any]) -> list[pa.Array]:
        """Rows that were emitted as columns."""
        return self.user.columns_of(rows, self._zone)

    def store(self, accumulators: Sequence[Any]) -> pa.Array:
        kind = self._stored_as
        if kind is None:
            return pa.array([None if each is None else pickle.dumps(each, 5) for each in accumulators], pa.binary())
        try:
            return values_to_column(accumulators, kind.nullable())
        except MisfitError as error:
            raise TypeMismatchError(
                f"The accumulator of {self.user.name} ({self.user.place}) is declared as {kind}: expected "
                f"{error.kind}, got {type(error.value).__name__} {short_repr(error.value, 80)}. Without "
                "get_accumulator_type() and accumulator_type it may be anything that can be pickled."
            ) from None

    def load(self, column: pa.Array) -> list[Any]:
        kind = self._stored_as
        if kind is None:
            return [None if each is None else pickle.loads(each) for each in column.to_pylist()]
        return plain_list(column, kind, self._zone)


class PandasAggregate(_Aggregate):
    """A function of Series. The rows of a window are kept until it ends."""

    def __init__(self, user: UserFunction, kinds: tuple[DataType, ...], time_zone: str) -> None:
        super().__init__(user, kinds, time_zone)
        row = RowType(tuple(RowField(f"c{index}", kind.nullable()) for index, kind in enumerate(kinds)))
        self.state_type = arrow_type(ArrayType(row))

    def arguments(self, columns: Sequence[pa.Array], rows: int) -> list[Any]:
        names = [f"c{index}" for index in range(len(columns))]
        lists = [column.to_pylist() for column in columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)] if lists else [{}] * rows

    def take(self, accumulator: Any, arguments: Sequence[Any], signs: Sequence[int] | None) -> Any:
        rows: list[Any] = [] if accumulator is None else accumulator
        if signs is None:
            rows.extend(arguments)
            return rows
        for row, sign in zip(arguments, signs, strict=True):
            if sign > 0:
                rows.append(row)
            elif sign < 0 and row in rows:
                rows.remove(row)
        return rows

    def merge(self, accumulators: Sequence[Any]) -> Any:
        return [row for each in accumulators if each is not None for row in each]

    def value(self, rows: list[Any]) -> Any:
        if not rows:
            return None
        series = [
            series_of(pa.array([row[f"c{index}"] for row in rows], arrow_type(kind)), kind, self._zone)
            for index, kind in enumerate(self._kinds)
        ]
        function = self.user.function
        try:
            if isinstance(function, AggregateFunction):
                accumulator = function.create_accumulator()
                function.accumulate(accumulator, *series)
                result = function.get_value(accumulator)
            else:
                result = function(*series)
        except Exception as error:
            error.add_note(f"in the function {self.user.name}, for {len(rows)} rows")
            raise
        ready = tuple(map(_plain, result)) if isinstance(result, tuple) else _plain(result)
        if isinstance(self.user.result_type, IntegralType) and isinstance(ready, float) and ready % 1:
            # As of a Series, fractions are not taken for integers.
            fraction = float(ready)
            raise self.user.misfit(MisfitError(self.user.result_type, fraction), [fraction])
        return self.converted(ready)

    def store(self, accumulators: Sequence[Any]) -> pa.Array:
        return pa.array(accumulators, self.state_type)

    def load(self, column: pa.Array) -> list[Any]:
        rows: list[Any] = column.to_pylist()
        return rows


def _plain(value: Any) -> Any:
    """A NaN of pandas is NULL."""
    return None if isinstance(value, float | np.floating) and value != value else value
