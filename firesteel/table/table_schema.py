"""Names and types of a table's columns, as PyFlink's older programs ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.errors import ProgramError, short_repr
from firesteel.table.types.data_types import DataType, RowType

__all__ = ["TableSchema"]


class TableSchema:
    """The columns of a table. New programs use :class:`~firesteel.table.Schema` and ``ResolvedSchema`` instead.

    >>> from firesteel.table import DataTypes
    >>> schema = TableSchema.builder().field("id", DataTypes.BIGINT()).field("name", DataTypes.STRING()).build()
    >>> schema.get_field_names(), schema.get_field_data_type("id")
    (['id', 'name'], BigIntType(true))
    """

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[DataType] = ()) -> None:
        if len(field_names) != len(data_types):
            raise ProgramError(f"{len(field_names)} names for {len(data_types)} types of columns.")
        self._row_type = RowType.of(list(field_names), list(data_types))

    def copy(self) -> TableSchema:
        """Another schema with the same columns."""
        return TableSchema(self.get_field_names(), self.get_field_data_types())

    def get_field_count(self) -> int:
        """How many columns there are."""
        return len(self._row_type.fields)

    def get_field_names(self) -> list[str]:
        """The names, in their order."""
        return self._row_type.field_names()

    def get_field_data_types(self) -> list[DataType]:
        """The types, in the order of the columns."""
        return self._row_type.field_types()

    def get_field_name(self, field_index: int) -> str | None:
        """The name of a column; None if there is no such column."""
        return self.get_field_names()[field_index] if 0 <= field_index < self.get_field_count() else None

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """The type of a column by its place or name; None if there is no such column."""
        if not isinstance(field, int | str):
            raise TypeError(f"Expected the place of a column or its name, got {short_repr(field, 60)}.")
        names = self.get_field_names()
        place = field if isinstance(field, int) else names.index(field) if field in names else -1
        return self.get_field_data_types()[place] if 0 <= place < len(names) else None

    def to_row_data_type(self) -> RowType:
        """The columns as a ROW, which is NOT NULL."""
        kind = self._row_type.not_null()
        assert isinstance(kind, RowType)
        return kind

    def __repr__(self) -> str:
        lines = "\n".join(f" |-- {field.name}: {field.data_type}" for field in self._row_type.fields)
        return f"root\n{lines}\n"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and self._row_type == other._row_type

    def __hash__(self) -> int:
        return hash(self._row_type)

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """Makes a schema column by column."""
        return cls.Builder()

    class Builder:
        """Collects columns."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[DataType] = []

        def field(self, name: str, data_type: DataType) -> TableSchema.Builder:
            """One more column."""
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """The schema."""
            return TableSchema(self._names, self._types)
