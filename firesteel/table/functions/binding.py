"""Puts a function and its arguments together: checks them, casts them where it must, and derives the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from firesteel.errors import FailureKind, ProgramError
from firesteel.table.functions.other_names import OTHER_FUNCTIONS
from firesteel.table.functions.registry import Function, find, near
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from firesteel.table.types.derivation import common_type, is_binary, is_text

__all__ = ["FunctionError", "bind", "cast_to", "unknown_function", "with_text_read"]

Interval = DayTimeIntervalType | YearMonthIntervalType
Temporal = DateType | TimeType | TimestampType | LocalZonedTimestampType


class FunctionError(ProgramError):
    """There is no such function, or it does not take these arguments."""

    kind = FailureKind.PERMANENT


_FAMILIES: dict[str, Callable[[DataType], bool]] = {
    "any": lambda kind: True,
    "comparable": lambda kind: True,
    "numeric": lambda kind: isinstance(kind, NumericType),
    "integer": lambda kind: isinstance(kind, IntegralType),
    "double": lambda kind: isinstance(kind, DoubleType),
    "text": is_text,
    "string": is_text,
    "string or number": is_text,
    "string or binary": is_text,
    "text or bytes": lambda kind: is_text(kind) or is_binary(kind),
    "binary": is_binary,
    "boolean": lambda kind: isinstance(kind, BooleanType),
    "date": lambda kind: isinstance(kind, DateType | TimestampType | LocalZonedTimestampType),
    "date or text": lambda kind: is_text(kind) or isinstance(kind, DateType | TimestampType | LocalZonedTimestampType),
    "number or text": lambda kind: is_text(kind) or isinstance(kind, NumericType),
    "timestamp": lambda kind: isinstance(kind, TimestampType | LocalZonedTimestampType),
    "time": lambda kind: isinstance(kind, DateType | TimeType | TimestampType | LocalZonedTimestampType),
    "interval": lambda kind: isinstance(kind, DayTimeIntervalType | YearMonthIntervalType),
    "array": lambda kind: isinstance(kind, ArrayType),
    "map": lambda kind: isinstance(kind, MapType),
    "collection": lambda kind: isinstance(kind, ArrayType | MapType | MultisetType),
    "row": lambda kind: isinstance(kind, RowType),
    "symbol": lambda kind: is_text(kind),
}
# What an argument is brought to that is not of the family.
_DEFAULTS: dict[str, DataType] = {
    "numeric": IntType(),
    "integer": IntType(),
    "double": DoubleType(),
    "text": VarCharType(MAX_LENGTH),
    "string": VarCharType(MAX_LENGTH),
    "string or number": VarCharType(MAX_LENGTH),
    "string or binary": VarCharType(MAX_LENGTH),
    "text or bytes": VarCharType(MAX_LENGTH),
    "binary": VarBinaryType(MAX_LENGTH),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestampType(3),
    "time": TimestampType(3),
    "interval": DayTimeIntervalType(),
}


def cast_to(expression: Expression, kind: DataType) -> Expression:
    """The expression as a value of the type; itself if it is one. NULL stays possible where it was."""
    wanted = kind.with_nullability(expression.type.is_nullable)
    if expression.type == wanted:
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(None, kind.nullable())
    return Call("CAST", (expression,), wanted)


def bind(name: str, args: Sequence[Expression]) -> Call:
    """A call of the function with these arguments.

    >>> from firesteel.table.types import DataTypes
    >>> print(bind("+", [Literal(1, DataTypes.INT(False)), Literal(2, DataTypes.BIGINT())]).type)
    BIGINT
    """
    name = _overloaded(name, args)
    function = find(name)
    if function is None:
        raise unknown_function(name)
    if not function.signature.accepts(len(args)):
        raise _misfit(function, args)
    fitted = _compared(function, args) if "comparable" in function.signature.parameters else _fitted(function, args)
    return Call(function.name, tuple(fitted), function.result(fitted))


def unknown_function(name: str, others: Collection[str] = ()) -> FunctionError:
    """The error about a name that no function has, with names that are written much like it."""
    if name.upper() in OTHER_FUNCTIONS:
        return FunctionError(f"There is no function {name}. In Flink's SQL it is {OTHER_FUNCTIONS[name.upper()]}.")
    found = near(name, others)
    return FunctionError(f"There is no function {name}." + (f" Did you mean {' or '.join(found)}?" if found else ""))


def _overloaded(name: str, args: Sequence[Expression]) -> str:
    """Arithmetic of times is another function."""
    kinds = [argument.type for argument in args]
    if name in ("+", "-", "*", "/") and any(isinstance(kind, Temporal | Interval) for kind in kinds):
        return f"TIME {name}"
    if name in ("FLOOR", "CEIL") and len(args) == 2:
        return f"{name} TO"
    if name == "NEGATE" and isinstance(kinds[0], Interval):
        return "TIME NEGATE"
    return name


def _fitted(function: Function, args: Sequence[Expression]) -> list[Expression]:
    fitted = []
    for index, argument in enumerate(args):
        family = function.signature.family(index)
        if isinstance(argument.type, NullType):
            default = _DEFAULTS.get(family)
            fitted.append(cast_to(argument, default) if default is not None else argument)
        elif _FAMILIES[family](argument.type):
            fitted.append(argument)
        elif family == "double" and isinstance(argument.type, NumericType):
            fitted.append(cast_to(argument, DoubleType()))
        elif (family == "string or number" and isinstance(argument.type, NumericType)) or (
            family == "string or binary" and is_binary(argument.type)
        ):
            # Few functions take other types, as text. The others refuse them, as in Flink.
            fitted.append(cast_to(argument, VarCharType(MAX_LENGTH)))
        elif family == "integer" and isinstance(argument.type, NumericType):
            fitted.append(cast_to(argument, IntType()))
        elif family == "date" and is_text(argument.type):
            fitted.append(cast_to(argument, TimestampType(3)))
        else:
            raise _misfit(function, args)
    return fitted


def _compared(function: Function, args: Sequence[Expression]) -> list[Expression]:
    left, right = args[0], args[1]
    if isinstance(left.type, NullType) or isinstance(right.type, NullType):
        known = right.type if isinstance(left.type, NullType) else left.type
        return [cast_to(left, known), cast_to(right, known)]
    if is_text(left.type) and is_text(right.type):
        return [left, right]
    common = common_type([left.type, right.type]) or _converted(left.type, right.type)
    if common is None or _refused(function.name, left.type, right.type):
        raise FunctionError(
            f"{left.type} and {right.type} cannot be compared: {function.syntax or function.name}. Cast one of them."
        )
    if function.name == "NULLIF":
        return [left, cast_to(right, left.type) if is_text(right.type) else right]
    return [cast_to(left, common), cast_to(right, common)]


def with_text_read(left: Expression, right: Expression) -> list[Expression]:
    """The two, a text as the number that it is compared with: IN does so, ``=`` does not."""
    kind = None if common_type([left.type, right.type]) is not None else _converted(left.type, right.type)
    return [left, right] if kind is None else [cast_to(left, kind), cast_to(right, kind)]


def _refused(name: str, left: DataType, right: DataType) -> bool:
    """What Flink does not compare, though the types have one in common."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, DateType) and isinstance(other, TimestampType | LocalZonedTimestampType):
            return True
        if name in _EQUALITY and is_text(one) and isinstance(other, NumericType):
            return True
    return False


_EQUALITY = {"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}


def _converted(left: DataType, right: DataType) -> DataType | None:
    """Text is read as what it is compared with."""
    for text, other in ((left, right), (right, left)):
        if is_text(text) and isinstance(other, NumericType | Temporal | BooleanType):
            if isinstance(other, IntegralType | DecimalType):
                return DoubleType() if isinstance(other, DecimalType) else other
            return other
    return None


def _misfit(function: Function, args: Sequence[Expression]) -> FunctionError:
    given = ", ".join(str(argument.type) for argument in args)
    shown = function.syntax or function.signature.show(function.name)
    if function.syntax is not None:
        wanted = " and ".join(dict.fromkeys(each.upper() for each in function.signature.parameters))
        return FunctionError(f"{shown} takes {wanted} values, got {given}.")
    return FunctionError(f"{function.name}({given}): the function is {shown}.")
