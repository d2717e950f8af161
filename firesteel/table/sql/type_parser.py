"""Types in SQL: ``DECIMAL(10, 2) NOT NULL``, ``ROW<a INT, b ARRAY<STRING>>``."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.errors import ProgramError
from firesteel.table.sql.cursor import Cursor
from firesteel.table.sql.errors import SqlParseError, near_names
from firesteel.table.sql.tokens import TokenKind
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
    LocalZonedTimestampType,
    MapType,
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

__all__ = ["TypeParser", "parse_type"]

_PLAIN: dict[str, DataType] = {
    "BOOLEAN": BooleanType(),
    "TINYINT": TinyIntType(),
    "SMALLINT": SmallIntType(),
    "INT": IntType(),
    "INTEGER": IntType(),
    "BIGINT": BigIntType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "DATE": DateType(),
    "STRING": VarCharType(MAX_LENGTH),
    "BYTES": VarBinaryType(MAX_LENGTH),
    "NULL": NullType(),
}
_SIZED: dict[str, Callable[[int], DataType]] = {
    "CHAR": CharType,
    "CHARACTER": CharType,
    "VARCHAR": VarCharType,
    "BINARY": BinaryType,
    "VARBINARY": VarBinaryType,
}
_ENDLESS = ("VARCHAR", "VARBINARY")
_NAMES = [
    *_PLAIN,
    *_SIZED,
    *["DECIMAL", "NUMERIC", "DEC", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "ARRAY", "MULTISET", "MAP", "ROW", "INTERVAL"],
]
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")

_OTHER_TYPES = {
    "BLOB": "BYTES",
    "BOOL": "BOOLEAN",
    "BYTEA": "BYTES",
    "DATETIME": "TIMESTAMP",
    "FLOAT64": "DOUBLE",
    "INT64": "BIGINT",
    "INT8": "TINYINT",
    "JSON": "STRING",
    "LONG": "BIGINT",
    "NUMBER": "DECIMAL",
    "NVARCHAR": "STRING",
    "REAL": "FLOAT",
    "SHORT": "SMALLINT",
    "TEXT": "STRING",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "UUID": "STRING",
}
"""Types of other databases, and what has their place in Flink."""


class TypeParser(Cursor):
    """Reads types."""

    endless = False
    """Whether VARCHAR and VARBINARY without a length have no bound, as in SQL; else it is 1, as where a program
    hands over the text of a type."""

    def data_type(self) -> DataType:
        """A type with its nullability, and the postfix forms ``INT ARRAY`` and ``INT MULTISET``."""
        with self.nested():
            kind = self._nullability(self._simple_type())
            while True:
                if self.word("ARRAY"):
                    kind = self._nullability(ArrayType(kind))
                elif self.word("MULTISET"):
                    kind = self._nullability(MultisetType(kind))
                else:
                    return kind

    def _nullability(self, kind: DataType) -> DataType:
        if self.word("NOT", "NULL"):
            return kind.not_null()
        # NULL ON EMPTY belongs to a JSON function that returns the type.
        if self.peek().upper != "ON":
            self.word("NULL")
        return kind

    def _simple_type(self) -> DataType:
        start = self.here
        if not self.is_kind(TokenKind.WORD) or self.token.upper not in _NAMES:
            raise self.type_failure()
        name = self.advance().upper
        try:
            return self._named_type(name)
        except ProgramError as error:
            if hasattr(error, "span"):
                raise
            raise self.error(str(error), self.since(start)) from None

    def type_failure(self) -> SqlParseError:
        """An error that offers types."""
        near = near_names(self.token.text, _NAMES) if self.is_kind(TokenKind.WORD) else ""
        if self.token.upper in _OTHER_TYPES:
            near = f" Flink's type for it is {_OTHER_TYPES[self.token.upper]}."
        return SqlParseError(f"Expected a type, got {self.token}.{near}", self.text, self.here)

    def _named_type(self, name: str) -> DataType:
        if name == "DOUBLE":
            self.word("PRECISION")
        if name in _PLAIN:
            return _PLAIN[name]
        if name in ("CHAR", "CHARACTER") and self.word("VARYING"):
            name = "VARCHAR"
        if name in _SIZED:
            return _SIZED[name](self._size(MAX_LENGTH if self.endless and name in _ENDLESS else 1))
        if name in ("DECIMAL", "NUMERIC", "DEC"):
            return self._decimal()
        if name == "TIME":
            precision = self._size(0)
            if self.word("WITHOUT"):
                self.expect_word("TIME", "ZONE")
            return TimeType(precision)
        if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self._timestamp(name)
        if name == "INTERVAL":
            return self._interval_type()
        if name == "ROW":
            return self._row()
        return self._collection(name)

    def _size(self, default: int) -> int:
        if not self.sign("("):
            return default
        size = self.integer("the length")
        self.expect_sign(")")
        return size

    def _decimal(self) -> DataType:
        if not self.sign("("):
            return DecimalType(10, 0)
        precision = self.integer("the precision")
        scale = self.integer("the scale") if self.sign(",") else 0
        self.expect_sign(")")
        return DecimalType(precision, scale)

    def _timestamp(self, name: str) -> DataType:
        precision = self._size(6)
        if name == "TIMESTAMP_LTZ":
            return LocalZonedTimestampType(precision)
        if self.word("WITHOUT"):
            self.expect_word("TIME", "ZONE")
        elif self.word("WITH"):
            if not self.word("LOCAL"):
                raise self.error("TIMESTAMP WITH TIME ZONE is not supported; TIMESTAMP_LTZ is.", self.here)
            self.expect_word("TIME", "ZONE")
            return LocalZonedTimestampType(precision)
        return TimestampType(precision)

    def _interval_type(self) -> DataType:
        unit = self.unit()
        precision = self._digits_of_unit()
        text = unit
        if self.word("TO"):
            text = f"{unit} TO {self.unit()}"
            self._size(6)
        return YearMonthIntervalType(text, precision) if unit in ("YEAR", "MONTH") else DayTimeIntervalType(text)

    def _digits_of_unit(self) -> int:
        """``DAY(3)``, and ``SECOND(2, 3)`` with digits behind the point."""
        if not self.sign("("):
            return 2
        digits = self.integer("the number of digits")
        if self.sign(","):
            self.integer("the number of digits behind the point")
        self.expect_sign(")")
        return digits

    def unit(self) -> str:
        """A unit of time, in the singular."""
        word = self.token.upper
        singular = word[:-1] if word.endswith("S") and word[:-1] in _UNITS else word
        if singular not in _UNITS:
            raise self.failure(*_UNITS)
        self.advance()
        return singular

    def _row(self) -> DataType:
        opening = self.sign("<", "(")
        if opening is None:
            # The tokenizer takes <> for a sign of its own: a row without fields.
            if self.sign("<>"):
                return RowType(())
            raise self.failure("<", "(")
        fields = [] if self.is_sign(">", ")") else self.listed(self._field)
        self.expect_sign(">" if opening == "<" else ")")
        return RowType(tuple(fields))

    def _field(self) -> RowField:
        if not self.is_kind(TokenKind.WORD, TokenKind.QUOTED_NAME):
            raise self.failure("the name of a field")
        name = self.advance().text
        kind = self.data_type()
        comment = self.string() if self.is_kind(TokenKind.STRING) else None
        return RowField(name, kind, comment)

    def _collection(self, name: str) -> DataType:
        self.expect_sign("<")
        first = self.data_type()
        if name == "MAP":
            self.expect_sign(",")
            second = self.data_type()
            self.expect_sign(">")
            return MapType(first, second)
        self.expect_sign(">")
        return ArrayType(first) if name == "ARRAY" else MultisetType(first)


def parse_type(text: str) -> DataType:
    """A type from its text.

    >>> parse_type("ROW<a INT NOT NULL, b ARRAY<DECIMAL(10, 2)>>").field_names()
    ['a', 'b']
    """
    parser = TypeParser(text)
    kind = parser.data_type()
    if not parser.is_kind(TokenKind.END):
        raise parser.failure("the end of the type")
    return kind
