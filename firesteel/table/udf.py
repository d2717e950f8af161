"""Users' functions in tables and SQL, with PyFlink's names.

A function is declared with :func:`udf` (a value for a row), :func:`udtf` (rows for a row), :func:`udaf` (a value for a
group) or :func:`udtaf` (rows for a group), and used as an expression, or under a name in SQL.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.errors import short_repr
from firesteel.table.expression import NOWHERE, Expression, node_of
from firesteel.table.functions.contracts import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.sql.syntax import FunctionCall, Name
from firesteel.table.sql.type_parser import parse_type
from firesteel.table.types.data_types import DataType, MapType, RowField, RowType

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
    "UserDefinedFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

Types = DataType | str | Sequence[DataType | str]


class UserDefinedFunctionWrapper:
    """What :func:`udf` and its like give: called with columns it is an expression."""

    def __init__(
        self,
        func: Any,
        kind: str,
        result_type: DataType,
        input_types: Types | None,
        func_type: str,
        deterministic: bool | None,
        name: str | None,
        accumulator_type: DataType | None = None,
    ) -> None:
        if inspect.isclass(func) or not (isinstance(func, UserDefinedFunction) or callable(func)):
            raise TypeError(f"This takes a function or an instance, not a class; got {short_repr(func, 60)}.")
        own = func.is_deterministic() if isinstance(func, UserDefinedFunction) else None
        if deterministic is not None and own is not None and deterministic != own:
            raise ValueError(
                f"deterministic={deterministic} was given, but is_deterministic() of {type(func).__name__} says {own}."
            )
        self._func = func
        self._name = name or getattr(func, "__name__", None) or type(func).__name__
        self._alias_names: tuple[str, ...] = ()
        self._function = UserFunction(
            self._name,
            func,
            kind,
            result_type,
            None if input_types is None else [_type(each, "input_type") for each in _several(input_types)],
            func_type == "pandas",
            deterministic if deterministic is not None else own is not False,
            accumulator_type,
        )

    def __call__(self, *args: Any) -> Expression:
        nodes = tuple(node_of(argument) for argument in args)
        return Expression(FunctionCall(Name((self._name,), span=NOWHERE), nodes, user=self._function, span=NOWHERE))

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """Names for the columns of the result, where the function is called with whole rows."""
        self._alias_names = alias_names
        return self

    def _definition(self) -> UserFunction:
        return self._function

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"


def _type(given: Any, what: str) -> DataType:
    if isinstance(given, str):
        return parse_type(given)
    if isinstance(given, DataType):
        return given
    raise TypeError(f"{what} is a DataType or its text, such as 'INT'; got {short_repr(given, 60)}.")


def _several(types: Any) -> list[Any]:
    if isinstance(types, RowType):
        return types.field_types()
    return [types] if isinstance(types, DataType | str) else list(types)


def _checked_kind(func_type: str) -> None:
    if func_type not in ("general", "pandas"):
        raise ValueError(f"func_type is 'general' or 'pandas', got {func_type!r}.")


def udf(
    f: Callable[..., Any] | ScalarFunction | AsyncScalarFunction | None = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A function of a row's values that gives one value.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.table.expressions import col
    >>> @udf(result_type=DataTypes.BIGINT())
    ... def add(i, j):
    ...     return i + j
    >>> add(col("a"), 1)
    <Expression add(a, 1)>

    With ``func_type="pandas"`` it gets a Series for each argument, with the rows of a whole batch, and gives a Series.
    """
    _checked_kind(func_type)
    if f is None:
        return functools.partial(
            udf,
            input_types=input_types,
            result_type=result_type,
            deterministic=deterministic,
            name=name,
            func_type=func_type,
        )
    waits = isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(f)
    if waits and func_type == "pandas":
        raise ValueError(
            "A function that is awaited gets one row at a time: leave func_type='pandas' out, or take async away."
        )
    kind = _type(result_type, "returnType")
    return UserDefinedFunctionWrapper(f, "scalar", kind, input_types, func_type, deterministic, name)


def udtf(
    f: Callable[..., Any] | TableFunction | None = None,
    input_types: Types | None = None,
    result_types: Types | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A function of a row's values that gives any number of rows.

    >>> @udtf(result_types=["BIGINT", "STRING"])
    ... def numbered(text):
    ...     yield from enumerate(text.split())
    >>> numbered
    <UserDefinedFunctionWrapper numbered>
    """
    if f is None:
        return functools.partial(
            udtf, input_types=input_types, result_types=result_types, deterministic=deterministic, name=name
        )
    return UserDefinedFunctionWrapper(
        f, "table", _table_type(result_types), input_types, "general", deterministic, name
    )


def _table_type(types: Any) -> RowType:
    """A ROW: fields without names are f0, f1 and so on."""
    if isinstance(types, str):
        types = parse_type(types)
    if isinstance(types, RowType):
        return types
    if types is None:
        raise TypeError("Invalid result_type: result_type should be DataType or str but is None")
    kinds = [_type(each, "result_type") for each in _several(types)]
    return RowType(tuple(RowField(f"f{index}", kind) for index, kind in enumerate(kinds)))


def udaf(
    f: Callable[..., Any] | AggregateFunction[Any, Any] | None = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A function of a group's rows that gives one value: an :class:`AggregateFunction`, or with ``func_type="pandas"``
    a function of Series.

    >>> mean = udaf(lambda v: v.mean(), result_type="DOUBLE", func_type="pandas", name="mean")
    >>> mean
    <UserDefinedFunctionWrapper mean>
    """
    _checked_kind(func_type)
    if f is None:
        return functools.partial(
            udaf,
            input_types=input_types,
            result_type=result_type,
            accumulator_type=accumulator_type,
            deterministic=deterministic,
            name=name,
            func_type=func_type,
        )
    if func_type == "general" and not isinstance(f, AggregateFunction):
        raise TypeError(
            f"udaf() takes an instance of AggregateFunction, got {f!r}; func_type='pandas' takes functions."
        )
    result = _declared(f, result_type, "get_result_type", "returnType")
    if func_type == "pandas" and isinstance(result, MapType):
        raise TypeError(f"An aggregate of pandas cannot give {result}: a map has no place in a Series.")
    accumulator = _accumulator_type(f, accumulator_type) if func_type == "general" else None
    return UserDefinedFunctionWrapper(f, "aggregate", result, input_types, func_type, deterministic, name, accumulator)


def udtaf(
    f: TableAggregateFunction[Any, Any] | None = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A function of a group's rows that gives any number of rows: a :class:`TableAggregateFunction`."""
    if func_type != "general":
        raise ValueError(f"Rows for a group come from a class: func_type is 'general', got {func_type!r}.")
    if f is None:
        return functools.partial(
            udtaf,
            input_types=input_types,
            result_type=result_type,
            accumulator_type=accumulator_type,
            deterministic=deterministic,
            name=name,
        )
    if not isinstance(f, TableAggregateFunction):
        raise TypeError(f"udtaf() takes an instance of TableAggregateFunction, got {f!r}.")
    result = _table_type(_declared(f, result_type, "get_result_type", "returnType"))
    accumulator = _accumulator_type(f, accumulator_type)
    return UserDefinedFunctionWrapper(
        f, "table aggregate", result, input_types, func_type, deterministic, name, accumulator
    )


def _declared(function: Any, given: Any, method: str, what: str) -> DataType:
    if given is None and isinstance(function, ImperativeAggregateFunction):
        given = getattr(function, method)()
    return _type(given, what)


def _accumulator_type(function: Any, given: Any) -> DataType | None:
    """None if nobody says: then accumulators are pickled."""
    own = type(function).get_accumulator_type is not ImperativeAggregateFunction.get_accumulator_type
    if given is None and not own:
        return None
    return _type(given if given is not None else function.get_accumulator_type(), "accumulator_type")


def wrapped(function: Any) -> Any:
    """An aggregate function that comes without its wrapper, with one."""
    if isinstance(function, AggregateFunction):
        return udaf(function)
    return udtaf(function) if isinstance(function, TableAggregateFunction) else function
