"""Types: what a program declares about its elements and its state."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.common.type_system.base import PickledBytesTypeInfo, TypeInformation
from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.composite import RowTypeInfo, TupleTypeInfo
from firesteel.common.type_system.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from firesteel.common.type_system.temporal import (
    DateTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]


class Types:
    """Where types come from.

    >>> Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())])
    TUPLE<STRING, LIST<INT>>
    >>> Types.INT() == Types.INT(), Types.INT() == Types.LONG()
    (True, False)
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Text."""
        return BasicTypeInfo.of(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """Whole numbers of 8 bits, with a sign."""
        return BasicTypeInfo.of(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """True or False."""
        return BasicTypeInfo.of(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """Whole numbers of 16 bits."""
        return BasicTypeInfo.of(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """Whole numbers of 32 bits. A larger one is an error, not a wrapped number."""
        return BasicTypeInfo.of(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """Whole numbers of 64 bits."""
        return BasicTypeInfo.of(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Floating-point numbers of single precision: digits beyond the seventh or so get lost."""
        return BasicTypeInfo.of(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Floating-point numbers as Python has them."""
        return BasicTypeInfo.of(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """Strings of one character."""
        return BasicTypeInfo.of(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Whole numbers of any size."""
        return BasicTypeInfo.of(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Decimals of any size and precision."""
        return BasicTypeInfo.of(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Points in time, as :class:`~firesteel.common.time.Instant`."""
        return InstantTypeInfo()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Dates, as :class:`datetime.date`."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Times of day to the millisecond, as :class:`datetime.time`."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Dates with a time to the millisecond, as :class:`datetime.datetime`."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Anything that can be pickled. This is the type of all that has no declared one."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Rows with fields f0, f1, … of the given types."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Rows with fields of the given names and types."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Tuples with fields of the given types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Lists of numbers or truth values; ``bytes`` if the elements are of type BYTE."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Lists of numbers, truth values or strings."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Lists of elements of any one type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Dicts with keys of one type and values of another."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Lists of elements of one type."""
        return ListTypeInfo(element_type_info)
