"""Numbers, text, truth values and points in time."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

from firesteel.common.type_system.base import TypeInformation, expected
from firesteel.common.type_system.codegen import Scope
from firesteel.common.type_system.javatext import (
    java_boolean,
    java_double,
    java_float,
    java_int,
    java_string,
    to_float32,
)

__all__ = ["BasicType", "BasicTypeInfo"]


class BasicType(Enum):
    """The basic types, with their names in Java."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}


class BasicTypeInfo(TypeInformation):
    """The types of single values. Each kind is a subclass; :meth:`of` picks it.

    >>> BasicTypeInfo.of(BasicType.INT)
    INT
    """

    kind: BasicType

    def __init__(self, kind: BasicType) -> None:
        self.kind = kind

    @staticmethod
    def of(kind: BasicType) -> BasicTypeInfo:
        """The type of that kind. INSTANT is not made here: it lives with the other points in time."""
        return _CLASSES[kind](kind)

    def _accepts(self, value: Any) -> bool:
        """Whether a value that is not None fits: the whole truth, of which the source is the fast part."""
        raise NotImplementedError

    def explain(self, value: Any) -> str | None:
        return None if value is None or self._accepts(value) else expected(self, value)

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        fast = self.fast_source(first, name, scope)
        return f"({fast} or {name} is None or {scope.bind(self._accepts)}({name}))"

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        raise NotImplementedError

    def _key(self) -> Hashable:
        return self.kind

    def __repr__(self) -> str:
        return self.kind.name


class _StringTypeInfo(BasicTypeInfo):
    def _accepts(self, value: Any) -> bool:
        return isinstance(value, str)

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is str"

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_string


class _CharTypeInfo(_StringTypeInfo):
    def _accepts(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) == 1

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is str and len({name}) == 1"


class _BooleanTypeInfo(BasicTypeInfo):
    def _accepts(self, value: Any) -> bool:
        # numpy's bool is no subclass of bool, but it is what a comparison of numpy values gives.
        cls = type(value)
        return cls is bool or (cls.__module__ == "numpy" and cls.__name__ in ("bool", "bool_"))

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is bool"

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_boolean


class _IntegerTypeInfo(BasicTypeInfo):
    """BYTE, SHORT, INT and LONG with their ranges, BIG_INT without one."""

    def __init__(self, kind: BasicType) -> None:
        super().__init__(kind)
        bits = _BITS.get(kind)
        self._bounds = None if bits is None else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def _accepts(self, value: Any) -> bool:
        if not _is_integer(value):
            return False
        return self._bounds is None or self._bounds[0] <= operator.index(value) <= self._bounds[1]

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        if self._bounds is None:
            return f"type({first}) is int"
        return f"type({first}) is int and {self._bounds[0]} <= {name} <= {self._bounds[1]}"

    def explain(self, value: Any) -> str | None:
        text = super().explain(value)
        if text is not None and self._bounds is not None and _is_integer(value):
            text += f", which is outside {self._bounds[0]} to {self._bounds[1]}"
        return text

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_int


class _FloatingTypeInfo(BasicTypeInfo):
    """DOUBLE and FLOAT. Integers are welcome, as in PyFlink, and become floating-point numbers."""

    def _accepts(self, value: Any) -> bool:
        if isinstance(value, bool):
            return False
        return isinstance(value, float) or _is_scalar(value, "__float__", "__index__")

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is float"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        # A FLOAT loses digits, so nothing tells short of converting.
        return f"type({first}) is float" if self.kind is BasicType.DOUBLE else None

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_double if self.kind is BasicType.DOUBLE else _to_float

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_double if self.kind is BasicType.DOUBLE else java_float


class _DecimalTypeInfo(BasicTypeInfo):
    """BIG_DEC. Java's decimals know neither infinity nor a negative zero."""

    def _accepts(self, value: Any) -> bool:
        if isinstance(value, decimal.Decimal):
            return value.is_finite()
        if isinstance(value, float):
            return value - value == 0  # neither infinite nor NaN
        return _is_integer(value)

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is {scope.bind(decimal.Decimal)} and {name}.is_finite()"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        return f"type({first}) is {scope.bind(decimal.Decimal)} and ({name} or not {name}.is_signed())"

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_decimal


_CLASSES: dict[BasicType, type[BasicTypeInfo]] = {
    BasicType.STRING: _StringTypeInfo,
    BasicType.CHAR: _CharTypeInfo,
    BasicType.BOOLEAN: _BooleanTypeInfo,
    BasicType.BYTE: _IntegerTypeInfo,
    BasicType.SHORT: _IntegerTypeInfo,
    BasicType.INT: _IntegerTypeInfo,
    BasicType.LONG: _IntegerTypeInfo,
    BasicType.BIG_INT: _IntegerTypeInfo,
    BasicType.FLOAT: _FloatingTypeInfo,
    BasicType.DOUBLE: _FloatingTypeInfo,
    BasicType.BIG_DEC: _DecimalTypeInfo,
}


def _is_integer(value: Any) -> bool:
    """Whether a value is a whole number by type: int, its subclasses and numpy's, but no truth value."""
    return _is_scalar(value, "__index__") and not isinstance(value, bool)


def _is_scalar(value: Any, *methods: str) -> bool:
    """Whether a value's type has one of the methods. Arrays have them too, hence the look at ``ndim``."""
    return any(hasattr(type(value), method) for method in methods) and getattr(value, "ndim", 0) == 0


def _to_double(value: Any) -> float | None:
    return None if value is None else float(value)


def _to_float(value: Any) -> float | None:
    return None if value is None else to_float32(value)


def _to_decimal(value: Any) -> decimal.Decimal | None:
    if value is None:
        return None
    number = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))
    return number if number else number.copy_abs()
