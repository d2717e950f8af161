"""The schema of a CSV file, and its builder."""

from __future__ import annotations

import dataclasses
from typing import Any

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.containers import ListTypeInfo, MapTypeInfo
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.connectors.files.csv_files import CsvColumn, CsvFileSchema
from firesteel.connectors.formats.csv_lines import single_character
from firesteel.errors import ProgramError, short_repr

__all__ = ["CsvSchema", "CsvSchemaBuilder"]

_NUMBERS = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC")


class CsvSchema:
    """What the columns of a file are, and what stands between them.

    >>> schema = CsvSchema.builder().add_number_column("id").add_string_column("name").set_column_separator("|").build()
    >>> len(schema), schema
    (2, CsvSchema(id LONG, name STRING))
    """

    def __init__(self, parts: CsvFileSchema) -> None:
        self._parts = parts

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """A builder."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """The number of columns."""
        return len(self._parts.columns)

    def __len__(self) -> int:
        return self.size()

    def __repr__(self) -> str:
        return f"CsvSchema({', '.join(f'{column.name} {column.produced}' for column in self._parts.columns)})"


class CsvSchemaBuilder:
    """Says what the columns of a file are. Types are those of :class:`~firesteel.common.typeinfo.Types`."""

    def __init__(self) -> None:
        self._parts = CsvFileSchema()

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._parts = dataclasses.replace(self._parts, **changes)
        return self

    def _in_dialect(self, **changes: Any) -> CsvSchemaBuilder:
        return self._with(dialect=dataclasses.replace(self._parts.dialect, **changes))

    def _add(self, column: CsvColumn) -> CsvSchemaBuilder:
        if not isinstance(column.name, str) or not column.name:
            raise ProgramError(f"A column of CSV has a name, got {short_repr(column.name, 60)}.")
        if column.name in [known.name for known in self._parts.columns]:
            raise ProgramError(f"There are two columns with the name {column.name!r}.")
        return self._with(columns=(*self._parts.columns, column))

    def build(self) -> CsvSchema:
        """The schema."""
        if not self._parts.columns:
            raise ProgramError("A CSV schema needs a column: add_string_column('name'), for example.")
        return CsvSchema(self._parts)

    # -- columns ----------------------------------------------------------------------------------------------------

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Text."""
        return self._add(CsvColumn(name, Types.STRING()))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """``true`` or ``false``."""
        return self._add(CsvColumn(name, Types.BOOLEAN()))

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> CsvSchemaBuilder:
        """Numbers, ``Types.LONG()`` if nothing is said."""
        kind = Types.LONG() if number_type is None else number_type
        if not isinstance(kind, BasicTypeInfo) or kind.kind.name not in _NUMBERS:
            raise ProgramError(
                f"A column of numbers has a type such as Types.INT(), got {short_repr(number_type, 60)}."
            )
        return self._add(CsvColumn(name, kind))

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        """Lists, of strings if nothing is said, with something between their elements."""
        kind = _simple(Types.STRING() if element_type is None else element_type)
        return self._add(CsvColumn(name, kind, separator))

    def add_column(self, name: str, type_info: TypeInformation) -> CsvSchemaBuilder:
        """Values of another simple type, such as ``Types.SQL_DATE()``. PyFlink has no such method."""
        return self._add(CsvColumn(name, _simple(type_info)))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """The columns of another schema."""
        for column in schema._parts.columns:
            self._add(column)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """No columns."""
        return self._with(columns=())

    def size(self) -> int:
        """The number of columns."""
        return len(self._parts.columns)

    def __len__(self) -> int:
        return self.size()

    # -- arrays -----------------------------------------------------------------------------------------------------

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """What stands between the elements of all arrays."""
        changed = [
            column if column.separator is None else dataclasses.replace(column, separator=separator)
            for column in self._parts.columns
        ]
        return self._with(columns=tuple(changed))._in_dialect(array_delimiter=separator)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """An array is its text as one element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """The array in that column is its text as one element."""
        columns = list(self._parts.columns)
        columns[index] = dataclasses.replace(columns[index], separator="")
        return self._with(columns=tuple(columns))

    # -- lines ------------------------------------------------------------------------------------------------------

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """What stands between values; a comma by default."""
        return self._in_dialect(delimiter=single_character("column separator", char))

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """What encloses values; ``"`` by default."""
        return self._in_dialect(quote=single_character("quote character", char))

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Quotes have no meaning."""
        return self._in_dialect(quote=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """What takes the meaning off the following character; there is none by default."""
        return self._in_dialect(escape=single_character("escape character", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """There is no escape character."""
        return self._in_dialect(escape=None)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The value that means None."""
        return self._in_dialect(null_literal=null_value)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """What a line ends with when it is written; ``\\n`` by default."""
        return self._in_dialect(line_delimiter=separator)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Whether lines that begin with ``#``, and empty ones, are left out."""
        return self._in_dialect(comments=allow)

    # -- files ------------------------------------------------------------------------------------------------------

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Whether files begin with a line of names."""
        return self._with(header=use)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Whether these names have to be those of the columns, in their order."""
        return self._with(strict_header=strict)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Whether the first line of data is left out."""
        return self._with(skips_first=skip)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Lines may have more values than there are columns. They are left out, as rows have no place for them."""
        return self._with(takes_more=True)


def _simple(kind: Any) -> TypeInformation:
    composite = isinstance(kind, ListTypeInfo | MapTypeInfo) or hasattr(kind, "get_field_types")
    pickled = isinstance(kind, BasicTypeInfo) and kind.kind is BasicType.CHAR
    if not isinstance(kind, TypeInformation) or composite or pickled:
        raise ProgramError(f"A value of CSV has a simple type such as Types.STRING(), got {short_repr(kind, 60)}.")
    return kind
