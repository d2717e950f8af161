"""Users' functions: what was said about them, and how they are called for the rows of a batch."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError, short_repr
from firesteel.table.functions.async_calls import AsyncOptions
from firesteel.table.functions.column_functions import ColumnForm, GuardedColumn, NotTranslatedError, column_form
from firesteel.table.functions.contracts import FunctionContext, UserDefinedFunction
from firesteel.table.functions.registry import Datum
from firesteel.table.functions.user_values import MisfitError, plain_list, values_to_column
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType, IntegralType, LocalZonedTimestampType, RowType

logger = logging.getLogger("firesteel")

__all__ = ["UserFunction", "fields_of", "given_lists", "series_of"]


class UserFunction:
    """A user's function. It equals no other, even one that was declared with the same words.

    ``kind`` is scalar, table, aggregate or table aggregate. The result of a table function is a ROW.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        kind: str,
        result_type: DataType,
        input_types: Sequence[DataType] | None = None,
        pandas: bool = False,
        deterministic: bool = True,
        accumulator_type: DataType | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.kind = kind
        self.result_type = result_type
        self.input_types = None if input_types is None else tuple(input_types)
        self.pandas = pandas
        self.deterministic = deterministic
        self.accumulator_type = accumulator_type
        self._new_accumulator_looked_at = False
        self.async_options = AsyncOptions()
        self._opened = False
        self.column_form: ColumnForm | None = None
        """What is computed for whole columns instead of calling the function, where that gives the same."""
        self._guarded: GuardedColumn | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": False, "_guarded": None}

    def __repr__(self) -> str:
        # Part of the plan's digest, which names state: the same after a restart, and after an edit of the function.
        return f"{self.name}:{self.kind}"

    def open(self, runtime_context: Any) -> None:
        """Before the first call in a subtask."""
        self._opened = True
        if isinstance(self.function, UserDefinedFunction):
            self.function.open(FunctionContext(runtime_context))

    def close(self) -> None:
        """After the last one."""
        if isinstance(self.function, UserDefinedFunction):
            self.function.close()

    def stored_accumulator_type(self) -> DataType | None:
        """The type of stored accumulators; None if they are pickled: where none is declared, or one that not even a new
        accumulator has. PyFlink's programs declare such types, because nothing looks at them there."""
        if self.accumulator_type is None or self._new_accumulator_looked_at:
            return self.accumulator_type
        self._new_accumulator_looked_at = True
        try:
            new = self.function.create_accumulator()
        except Exception:
            # It may need what open() makes.
            return self.accumulator_type
        try:
            values_to_column([new], self.accumulator_type.nullable())
        except MisfitError as error:
            logger.warning(
                "the accumulator of %s (%s) is pickled: it is declared as %s, and a new one has %s where %s should be.",
                self.name,
                self.place,
                self.accumulator_type,
                short_repr(error.value, 60),
                error.kind,
            )
            self.accumulator_type = None
        return self.accumulator_type

    def look_for_column_form(self) -> str | None:
        """Looks whether it can be computed for whole columns; None if so, or the reason why not. Where the program
        runs, for a worker may have no source.

        >>> from firesteel.table.types import DataTypes
        >>> UserFunction("f", print, "scalar", DataTypes.BIGINT()).look_for_column_form()
        'it is no function written in Python'
        """
        found, reason = None, None
        if self.kind != "scalar" or self.pandas:
            reason = "it is no general scalar function"
        elif not self.deterministic:
            reason = "it is not deterministic"
        else:
            try:
                found = column_form(self.called("eval"), self.result_type)
            except NotTranslatedError as error:
                reason = str(error)
            except RecursionError:
                reason = "it is too deep"
            except Exception as error:
                # Whatever there is about its source: it can be called.
                reason = f"looking at it failed ({type(error).__name__}: {short_repr(str(error), 80)})"
        self.column_form = found
        return reason

    @property
    def place(self) -> str:
        """Where it is defined."""
        code = self._code()
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "an unknown place"

    def _code(self) -> Any:
        for method in ("eval", "get_value", "emit_value", "__call__"):
            found = getattr(self.function, method, None) if isinstance(self.function, UserDefinedFunction) else None
            if found is not None:
                return getattr(found, "__code__", None)
        return getattr(self.function, "__code__", None)

    def called(self, method: str) -> Callable[..., Any]:
        """One of its methods; the function itself, if it is no class."""
        found: Callable[..., Any] = getattr(self.function, method, self.function)
        return found

    # Rows to values.

    def column(self, args: Sequence[Datum], kinds: Sequence[DataType], rows: int, zone: str) -> pa.Array:
        """The results for all rows of a batch."""
        if not rows:
            return pa.array([], arrow_type(self.result_type))
        if not self._opened:
            # Inside Spark SQL there is no operator that would.
            self.open(None)
        if self.pandas:
            return self._of_series(args, kinds, rows, zone)
        evaluate = self.called("eval")
        computed = self._computed(evaluate, args, kinds, rows)
        if computed is not None:
            return computed
        lists = given_lists(args, kinds, rows, zone)
        if inspect.iscoroutinefunction(evaluate):
            tuples: Iterable[tuple[Any, ...]] = zip(*lists, strict=False) if lists else itertools.repeat(())
            results = self.async_options.awaited(
                evaluate, itertools.islice(tuples, rows), lambda index: self.row_note(lists, index)
            )
        else:
            results = self._results(evaluate, lists, rows)
        try:
            return values_to_column(results, self.result_type)
        except MisfitError as error:
            raise self.misfit(error, results, lists) from None

    def _computed(
        self, evaluate: Callable[..., Any], args: Sequence[Datum], kinds: Sequence[DataType], rows: int
    ) -> pa.Array | None:
        """The results without a call of the function; None where that is not possible."""
        form, guarded = self.column_form, self._guarded
        if form is None:
            return None
        if guarded is None or guarded.form is not form:
            self._guarded = guarded = GuardedColumn(form, self.result_type)
        return guarded.column(evaluate, args, kinds, rows)

    def _results(self, evaluate: Callable[..., Any], lists: list[Iterable[Any]], rows: int) -> list[Any]:
        results: list[Any] = []
        try:
            if lists:
                # What was computed before an exception stays in the list: so its length is the row that failed.
                results.extend(itertools.islice(map(evaluate, *lists), rows))
            else:
                for _ in range(rows):
                    results.append(evaluate())
        except Exception as error:
            error.add_note(self.row_note(lists, len(results)))
            raise
        return results

    def _of_series(self, args: Sequence[Datum], kinds: Sequence[DataType], rows: int, zone: str) -> pa.Array:
        import pandas as pd

        # As in PyFlink, constants come as they are: as the digits of round(), a pattern, the length of a window.
        constants = any(isinstance(arg, pa.Array) for arg in args)
        series = [
            plain_list(_array(arg, 1), kind, zone)[0]
            if constants and isinstance(arg, pa.Scalar)
            else series_of(_array(arg, rows), kind, zone)
            for arg, kind in zip(args, kinds, strict=True)
        ]
        try:
            result = self.called("eval")(*series)
        except Exception as error:
            error.add_note(f"in the function {self.name}, for a batch of {rows} rows")
            raise
        if not isinstance(result, pd.Series | pd.DataFrame):
            raise TypeMismatchError(
                f"The pandas function {self.name} ({self.place}) gives a Series or a DataFrame with a value for each "
                f"row, got {type(result).__name__} {short_repr(result, 60)}."
            )
        if len(result) != rows:
            raise TypeMismatchError(
                f"The pandas function {self.name} ({self.place}) got {rows} rows and gave {len(result)} values."
            )
        return self.array_of_series(result)

    def array_of_series(self, result: Any) -> pa.Array:
        """The column that a Series, or a DataFrame of a row's fields, stands for."""
        import pandas as pd

        kind = self.result_type
        if isinstance(result, pd.DataFrame):
            if not isinstance(kind, RowType) or len(result.columns) != len(kind):
                raise TypeMismatchError(
                    f"The pandas function {self.name} ({self.place}) gave a DataFrame with columns "
                    f"{short_repr(list(result.columns), 80)}, its type is {kind}."
                )
            fields = [
                self._series_array(result[name], each.data_type)
                for name, each in zip(result.columns, kind.fields, strict=True)
            ]
            return pa.StructArray.from_arrays(fields, fields=list(arrow_type(kind)))
        return self._series_array(result, kind)

    def _series_array(self, series: Any, kind: DataType) -> pa.Array:
        wanted = arrow_type(kind)
        if isinstance(kind, LocalZonedTimestampType) and getattr(series.dt, "tz", None) is None:
            # As in PyFlink, and as elements of a program: without a zone it is a time of UTC.
            series = series.dt.tz_localize("UTC")
        try:
            found = pa.Array.from_pandas(series, type=wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if isinstance(kind, IntegralType) and series.dtype.kind == "f":
                raise self._misfit_series(series, kind, error) from None
            try:
                # Lists of rows, dicts and the like: one by one.
                return values_to_column([None if _missing(each) else each for each in series], kind)
            except (MisfitError, pa.ArrowException, TypeError, ValueError):
                raise self._misfit_series(series, kind, error) from None
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _misfit_series(self, series: Any, kind: DataType, error: Exception) -> TypeMismatchError:
        return TypeMismatchError(
            f"The pandas function {self.name} ({self.place}) gave a Series of {series.dtype}, its type is {kind}: "
            f"{str(error).splitlines()[0]}"
        )

    # Rows to rows.

    def rows(
        self, args: Sequence[Datum], kinds: Sequence[DataType], rows: int, zone: str
    ) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """Of a table function: for each row of the result the place of its row in the batch, and the columns."""
        lists = given_lists(args, kinds, rows, zone)
        evaluate = self.called("eval")
        counts: list[int] = []
        results: list[Any] = []
        tuples: Iterator[tuple[Any, ...]] = zip(*lists, strict=False) if lists else itertools.repeat(())
        try:
            for row in itertools.islice(tuples, rows):
                before = len(results)
                results.extend(_rows_given(evaluate(*row)))
                counts.append(len(results) - before)
        except Exception as error:
            error.add_note(self.row_note(lists, len(counts)))
            raise
        places = np.repeat(np.arange(rows), counts)
        return places, self.columns_of(results, zone, lists, places)

    def columns_of(
        self,
        results: Sequence[Any],
        zone: str,
        lists: Sequence[Iterable[Any]] = (),
        places: npt.NDArray[np.int64] | None = None,
    ) -> list[pa.Array]:
        """Rows that a table function gave as columns. ``lists`` are its arguments, ``places`` say whose row it is."""
        row_type = self.result_type
        assert isinstance(row_type, RowType)
        fields = [fields_of(result) for result in results]
        for at, each in enumerate(fields):
            if len(each) != len(row_type):
                where = f" {self.row_note(lists, int(places[at]))}" if places is not None else ""
                raise TypeMismatchError(
                    f"The function {self.name} ({self.place}) is declared to give rows of {len(row_type)} values "
                    f"({row_type}), got {len(each)}: {short_repr(results[at], 80)}{where}."
                )
        columns: list[pa.Array] = []
        for index, field in enumerate(row_type.fields):
            values = [each[index] for each in fields]
            try:
                columns.append(values_to_column(values, field.data_type))
            except MisfitError as error:
                raise self.misfit(error, values, lists, places) from None
        return columns

    # Errors.

    def row_note(self, lists: Sequence[Iterable[Any]], index: int) -> str:
        """Which row it was."""
        values = tuple(
            next(itertools.islice(values, index if isinstance(values, list) else 0, None)) for values in lists
        )
        return f"in the function {self.name}, called with {short_repr(values, 160)}"

    def misfit(
        self,
        error: MisfitError,
        results: Sequence[Any],
        lists: Sequence[Iterable[Any]] = (),
        places: npt.NDArray[np.int64] | None = None,
    ) -> TypeMismatchError:
        """A result of another type than the function's."""
        at = next((at for at, result in enumerate(results) if _holds(result, error.value)), None)
        inside = "" if at is None or results[at] is error.value else f" in {short_repr(results[at], 80)}"
        row = ""
        if at is not None and (lists or places is not None):
            row = f", {self.row_note(lists, at if places is None else int(places[at]))}"
        came = "None" if error.value is None else f"{type(error.value).__name__} {short_repr(error.value, 80)}"
        return TypeMismatchError(
            f"The function {self.name} ({self.place}) is declared to give {self.result_type}: expected {error.kind}, "
            f"got {came}{inside}{row}."
        )


def _holds(result: Any, value: Any) -> bool:
    if result is value:
        return True
    if isinstance(result, dict):
        return any(_holds(each, value) for pair in result.items() for each in pair)
    return isinstance(result, list | tuple | Row) and any(_holds(each, value) for each in result)


def _array(value: Datum, rows: int) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)
    return value


def given_lists(args: Sequence[Datum], kinds: Sequence[DataType], rows: int, zone: str) -> list[Iterable[Any]]:
    """The arguments as functions get them, one list for each; a constant comes again and again."""
    lists: list[Iterable[Any]] = []
    for arg, kind in zip(args, kinds, strict=True):
        if isinstance(arg, pa.Scalar):
            (value,) = plain_list(_array(arg, 1), kind, zone)
            lists.append(itertools.repeat(value))
        else:
            lists.append(plain_list(arg, kind, zone))
    return lists


def series_of(column: pa.Array, kind: DataType, zone: str) -> Any:
    """A column as pandas functions get it: a Series, of a row a DataFrame of its fields. Of a row inside a row the
    fields stand beside the others, as in PyFlink."""
    import pandas as pd

    if isinstance(kind, RowType):
        parts = zip(column.flatten(), kind.fields, strict=True)
        columns = [(series_of(part, each.data_type, zone), each) for part, each in parts]
        named = [found if isinstance(found, pd.DataFrame) else found.rename(each.name) for found, each in columns]
        return pd.concat(named, axis=1)
    series = column.to_pandas(date_as_object=True)
    return series.dt.tz_convert(zone) if isinstance(kind, LocalZonedTimestampType) else series


def _rows_given(result: Any) -> Iterable[Any]:
    """The rows that one call of a table function gave: many, one, or none."""
    if result is None:
        return ()
    if isinstance(result, list | range | Iterator):
        return result
    return (result,)


def fields_of(row: Any) -> Sequence[Any]:
    """The fields of a row that a table function gave: of a single value the value."""
    if isinstance(row, tuple):
        return row
    return list(row) if isinstance(row, Row) else (row,)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
