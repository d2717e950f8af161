"""Flink's logical types. A type is plain data: two types are equal if they say the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from firesteel.errors import ProgramError

__all__ = [
    "MAX_LENGTH",
    "MAX_PRECISION",
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "MultisetType",
    "NullType",
    "NumericType",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]

MAX_LENGTH = 2**31 - 1
"""The length of STRING and BYTES."""
MAX_PRECISION = 38
"""Digits of the longest decimal."""


@dataclass(frozen=True, repr=False)
class DataType:
    """A logical type and whether its values may be NULL.

    ``str`` gives it as SQL has it, ``repr`` as PyFlink prints it.

    >>> str(IntType().not_null()), str(VarCharType(MAX_LENGTH)), repr(DecimalType(10, 2))
    ('INT NOT NULL', 'STRING', 'DecimalType(10, 2, true)')
    """

    is_nullable: bool = field(default=True, kw_only=True)

    @classmethod
    def type_name(cls) -> str:
        """The name of the class without its ending, in capitals."""
        return cls.__name__[:-4].upper()

    def nullable(self) -> Self:
        """The same type with NULL."""
        return self if self.is_nullable else replace(self, is_nullable=True)

    def not_null(self) -> Self:
        """The same type without NULL."""
        return replace(self, is_nullable=False) if self.is_nullable else self

    def with_nullability(self, is_nullable: bool) -> Self:
        """The same type, with NULL or without."""
        return self.nullable() if is_nullable else self.not_null()

    @property
    def sql(self) -> str:
        """The type in SQL, without its nullability."""
        return self.type_name()

    def __str__(self) -> str:
        return self.sql if self.is_nullable else f"{self.sql} NOT NULL"

    def __repr__(self) -> str:
        values = [getattr(self, known.name) for known in fields(self) if known.name != "is_nullable"]
        shown = [repr(value) if isinstance(value, DataType) else str(value) for value in values]
        return f"{type(self).__name__}({', '.join([*shown, str(self.is_nullable).lower()])})"


class AtomicType(DataType):
    """A type of single values."""


class NullType(AtomicType):
    """The type of NULL alone."""


class NumericType(AtomicType):
    """Numbers."""


class IntegralType(NumericType):
    """Whole numbers."""

    bits: ClassVar[int]
    digits: ClassVar[int]
    """Of the decimal that holds every value."""


class FractionalType(NumericType):
    """Numbers with a fraction."""


class TinyIntType(IntegralType):
    """-128 to 127."""

    bits = 8
    digits = 3


class SmallIntType(IntegralType):
    """Two bytes."""

    bits = 16
    digits = 5


class IntType(IntegralType):
    """Four bytes."""

    bits = 32
    digits = 10


class BigIntType(IntegralType):
    """Eight bytes."""

    bits = 64
    digits = 19


class FloatType(FractionalType):
    """Four bytes, approximate."""


class DoubleType(FractionalType):
    """Eight bytes, approximate."""


class BooleanType(AtomicType):
    """TRUE and FALSE."""


class DateType(AtomicType):
    """Days."""


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """Exact numbers of ``precision`` digits, ``scale`` of them behind the point."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise ProgramError(
                f"DECIMAL({self.precision}, {self.scale}): the precision is 1 to {MAX_PRECISION}, "
                "the scale 0 to the precision."
            )

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, repr=False)
class _Sized(AtomicType):
    length: int = 1

    long_name: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if not 0 <= self.length <= MAX_LENGTH:
            raise ProgramError(f"{self.type_name()}({self.length}): the length is 1 to {MAX_LENGTH}.")

    @property
    def sql(self) -> str:
        if self.length == MAX_LENGTH and self.long_name is not None:
            return self.long_name
        return f"{self.type_name()}({self.length})"


class CharType(_Sized):
    """Text of a fixed length."""


class VarCharType(_Sized):
    """Text up to a length; STRING is the longest."""

    long_name = "STRING"


class BinaryType(_Sized):
    """Bytes of a fixed number."""


class VarBinaryType(_Sized):
    """Bytes up to a number; BYTES is the longest."""

    long_name = "BYTES"


@dataclass(frozen=True, repr=False)
class _Precise(AtomicType):
    precision: int = 6

    pattern: ClassVar[str]

    def __post_init__(self) -> None:
        if not 0 <= self.precision <= 9:
            raise ProgramError(f"{self.pattern.format(self.precision)}: the precision is 0 to 9.")

    @property
    def sql(self) -> str:
        return self.pattern.format(self.precision)


@dataclass(frozen=True, repr=False)
class TimeType(_Precise):
    """A time of day."""

    precision: int = 0
    pattern = "TIME({})"


class TimestampType(_Precise):
    """A date and time without a zone."""

    pattern = "TIMESTAMP({})"


class LocalZonedTimestampType(_Precise):
    """A moment, shown in the session's time zone."""

    pattern = "TIMESTAMP_LTZ({})"


@dataclass(frozen=True, repr=False)
class YearMonthIntervalType(AtomicType):
    """A number of months."""

    resolution: str = "YEAR TO MONTH"
    precision: int = 2

    @property
    def sql(self) -> str:
        if self.resolution == "MONTH":
            return "INTERVAL MONTH"
        return f"INTERVAL {self.resolution.replace('YEAR', f'YEAR({self.precision})')}"


@dataclass(frozen=True, repr=False)
class DayTimeIntervalType(AtomicType):
    """A number of milliseconds."""

    resolution: str = "DAY TO SECOND"
    day_precision: int = 2
    fractional_precision: int = 3

    @property
    def sql(self) -> str:
        text = self.resolution.replace("DAY", f"DAY({self.day_precision})")
        return f"INTERVAL {text.replace('SECOND', f'SECOND({self.fractional_precision})')}"


@dataclass(frozen=True, repr=False)
class ArrayType(DataType):
    """A list of values of one type."""

    element_type: DataType = field(default_factory=NullType)

    @property
    def sql(self) -> str:
        return f"ARRAY<{self.element_type}>"


@dataclass(frozen=True, repr=False)
class ListViewType(ArrayType):
    """A list in an accumulator."""


@dataclass(frozen=True, repr=False)
class MultisetType(DataType):
    """Values and how often each is there."""

    element_type: DataType = field(default_factory=NullType)

    @property
    def sql(self) -> str:
        return f"MULTISET<{self.element_type}>"


@dataclass(frozen=True, repr=False)
class MapType(DataType):
    """Values by key."""

    key_type: DataType = field(default_factory=NullType)
    value_type: DataType = field(default_factory=NullType)

    @property
    def sql(self) -> str:
        return f"MAP<{self.key_type}, {self.value_type}>"


@dataclass(frozen=True, repr=False)
class MapViewType(MapType):
    """A map in an accumulator."""


@dataclass(frozen=True)
class RowField:
    """A named field of a row."""

    name: str
    data_type: DataType
    description: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"`{self.name.replace('`', '``')}` {self.data_type}"


@dataclass(frozen=True, repr=False)
class RowType(DataType):
    """Fields, each with a name and a type.

    >>> str(RowType((RowField("a", IntType()), RowField("b", DateType()))))
    'ROW<`a` INT, `b` DATE>'
    """

    fields: tuple[RowField, ...] = ()

    @staticmethod
    def of(names: list[str] | tuple[str, ...], types: Any) -> RowType:
        """A row of these names and types."""
        return RowType(tuple(RowField(name, kind) for name, kind in zip(names, types, strict=True)))

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """A row type with one more field behind the others. Other than PyFlink's, this one stays as it is.

        >>> RowType().add("a", IntType()).add(RowField("b", DateType())).names
        ['a', 'b']
        """
        if isinstance(field, RowField):
            return replace(self, fields=(*self.fields, field))
        if data_type is None:
            raise ValueError(f"RowType.add() takes a RowField, or a name and its DataType; got {field!r} alone.")
        return replace(self, fields=(*self.fields, RowField(field, data_type)))

    def __getitem__(self, key: str | int | slice) -> Any:
        """A field, by its name or place; of a slice a row type."""
        if isinstance(key, slice):
            return replace(self, fields=self.fields[key])
        if isinstance(key, int):
            return self.fields[key]
        if not isinstance(key, str):
            raise TypeError(f"The fields of a RowType have names and places, got {key!r}.")
        for known in self.fields:
            if known.name == key:
                return known
        raise KeyError(f"No RowField named {key}")

    @property
    def names(self) -> list[str]:
        """The names in their order."""
        return self.field_names()

    def field_names(self) -> list[str]:
        """The names in their order."""
        return [known.name for known in self.fields]

    def field_types(self) -> list[DataType]:
        """The types in the order of fields."""
        return [known.data_type for known in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def sql(self) -> str:
        return f"ROW<{', '.join(map(str, self.fields))}>"
