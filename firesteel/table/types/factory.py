"""Types as programs write them."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.errors import ProgramError, short_repr
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    ListViewType,
    LocalZonedTimestampType,
    MapType,
    MapViewType,
    MultisetType,
    NullType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = ["DataTypes", "Resolution"]


class Resolution(str):
    """One end of an interval: ``DAY``, ``SECOND``."""


class DataTypes:
    """All types by name.

    >>> str(DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(False)), DataTypes.FIELD("on", DataTypes.DATE())]))
    'ROW<`id` BIGINT NOT NULL, `on` DATE>'
    """

    @staticmethod
    def NULL() -> NullType:
        """NULL alone."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Text of a fixed length."""
        return CharType(length, is_nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Text up to a length."""
        return VarCharType(length, is_nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Text of any length."""
        return VarCharType(MAX_LENGTH, is_nullable=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """TRUE and FALSE."""
        return BooleanType(is_nullable=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """A fixed number of bytes."""
        return BinaryType(length, is_nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Up to a number of bytes."""
        return VarBinaryType(length, is_nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Any number of bytes."""
        return VarBinaryType(MAX_LENGTH, is_nullable=nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Exact numbers."""
        return DecimalType(precision, scale, is_nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """One byte."""
        return TinyIntType(is_nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Two bytes."""
        return SmallIntType(is_nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Four bytes."""
        return IntType(is_nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Eight bytes."""
        return BigIntType(is_nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Four bytes, approximate."""
        return FloatType(is_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Eight bytes, approximate."""
        return DoubleType(is_nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Days."""
        return DateType(is_nullable=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """A time of day."""
        return TimeType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """A date and time without a zone."""
        return TimestampType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A moment."""
        return LocalZonedTimestampType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A moment."""
        return LocalZonedTimestampType(precision, is_nullable=nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """A list of values of one type."""
        return ArrayType(element_type, is_nullable=nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Values by key."""
        return MapType(key_type, value_type, is_nullable=nullable)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Values and how often each is there."""
        return MultisetType(element_type, is_nullable=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """A list in an accumulator: :class:`~firesteel.table.ListView`."""
        return ListViewType(element_type)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """A map in an accumulator: :class:`~firesteel.table.MapView`."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def ROW(row_fields: Sequence[RowField | DataType] = (), nullable: bool = True) -> RowType:
        """Fields; those without a name are called f0, f1 and so on."""
        named = tuple(_field(index, given) for index, given in enumerate(row_fields))
        return RowType(named, is_nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """A named field of a row."""
        if not isinstance(data_type, DataType):
            raise ProgramError(f"DataTypes.FIELD({name!r}) takes a type, got {short_repr(data_type, 60)}.")
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """An end of an interval."""
        return Resolution("SECOND")

    @staticmethod
    def MINUTE() -> Resolution:
        """An end of an interval."""
        return Resolution("MINUTE")

    @staticmethod
    def HOUR() -> Resolution:
        """An end of an interval."""
        return Resolution("HOUR")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """An end of an interval."""
        return Resolution("DAY")

    @staticmethod
    def MONTH() -> Resolution:
        """An end of an interval."""
        return Resolution("MONTH")

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """An end of an interval."""
        return Resolution("YEAR")

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> YearMonthIntervalType | DayTimeIntervalType:
        """A span of time.

        >>> str(DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND()))
        'INTERVAL DAY(2) TO SECOND(3)'
        """
        text = upper_resolution if lower_resolution is None else f"{upper_resolution} TO {lower_resolution}"
        if upper_resolution in ("YEAR", "MONTH"):
            return YearMonthIntervalType(str(text))
        return DayTimeIntervalType(str(text))


def _field(index: int, given: RowField | DataType) -> RowField:
    if isinstance(given, RowField):
        return given
    if isinstance(given, DataType):
        return RowField(f"f{index}", given)
    raise ProgramError(f"DataTypes.ROW() takes fields or types, got {short_repr(given, 60)}.")
