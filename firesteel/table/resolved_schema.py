"""Columns of a table with all types known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from firesteel.errors import ProgramError
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable
from firesteel.table.types.data_types import DataType, RowField, RowType

__all__ = [
    "Column",
    "ComputedColumn",
    "Constraint",
    "MetadataColumn",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
    "resolved_schema",
]


@dataclass(frozen=True)
class Column:
    """A column of a table. Made by :meth:`physical`, :meth:`computed` or :meth:`metadata`.

    >>> from firesteel.table import DataTypes
    >>> print(Column.physical("id", DataTypes.INT().not_null()).with_comment("the key"))
    `id` INT NOT NULL COMMENT 'the key'
    """

    name: str
    data_type: DataType
    comment: str | None = None
    time: str | None = field(default=None, kw_only=True)
    """``ROWTIME`` or ``PROCTIME``, if it is a time attribute."""

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """A column that is stored."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, expression: str, data_type: DataType) -> ComputedColumn:
        """A column that an expression gives."""
        return ComputedColumn(name, data_type, None, expression)

    @staticmethod
    def metadata(name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """A column that the connector gives."""
        return MetadataColumn(name, data_type, None, metadata_key, is_virtual)

    def with_comment(self, comment: str | None) -> Column:
        """The same with something said about it."""
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Whether the connector's format has it."""
        return False

    def is_persisted(self) -> bool:
        """Whether it is written into a sink."""
        return False

    def get_data_type(self) -> DataType:
        """Its type."""
        return self.data_type

    def get_name(self) -> str:
        """Its name."""
        return self.name

    def get_comment(self) -> str | None:
        """What is said about it."""
        return self.comment

    def explain_extras(self) -> str | None:
        """Where it comes from, if it is not stored."""
        return None

    def as_summary_string(self) -> str:
        """As it stands in a schema."""
        extras = self.explain_extras()
        shown = f"`{self.name}` {self.data_type}" + (f" *{self.time}*" if self.time else "")
        shown += f" {extras}" if extras else ""
        return shown + (f" COMMENT '{self.comment}'" if self.comment else "")

    def __str__(self) -> str:
        return self.as_summary_string()

    def copy(self, new_type: DataType) -> Column:
        """The same with another type."""
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Column:
        """The same with another name."""
        return replace(self, name=new_name)


class PhysicalColumn(Column):
    """A column that is stored."""

    def is_physical(self) -> bool:
        return True

    def is_persisted(self) -> bool:
        return True

    def copy(self, new_data_type: DataType) -> Column:
        return replace(self, data_type=new_data_type)


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that an expression gives."""

    expression: str = ""

    def copy(self, new_data_type: DataType) -> Column:
        return replace(self, data_type=new_data_type)

    def get_expression(self) -> str:
        """The expression as SQL."""
        return self.expression

    def explain_extras(self) -> str | None:
        return f"AS {self.expression}"


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column that the connector gives besides those of its format."""

    key: str | None = None
    virtual: bool = False

    def copy(self, new_data_type: DataType) -> Column:
        return replace(self, data_type=new_data_type)

    def is_virtual(self) -> bool:
        """Whether it is read only."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """What the connector calls it; None: as the column."""
        return self.key

    def is_persisted(self) -> bool:
        return not self.virtual

    def explain_extras(self) -> str | None:
        return "METADATA" + (f" FROM '{self.key}'" if self.key else "") + (" VIRTUAL" if self.virtual else "")


@dataclass(frozen=True)
class WatermarkSpec:
    """Which column has the event time, and the watermark behind each row."""

    rowtime_attribute: str
    expression: str
    data_type: DataType | None = None
    """Of the watermark; None where it is not known yet."""

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: str) -> WatermarkSpec:
        """A column and an expression as SQL."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """The column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> str:
        """The expression as SQL."""
        return self.expression

    def as_summary_string(self) -> str:
        """As it stands in a schema."""
        kind = f": {self.data_type}" if self.data_type is not None else ""
        return f"WATERMARK FOR `{self.rowtime_attribute}`{kind} AS {self.expression}"

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class Constraint:
    """Something that holds for all rows."""

    name: str

    class ConstraintType(Enum):
        """Kinds of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    def get_name(self) -> str:
        """Its name."""
        return self.name

    def is_enforced(self) -> bool:
        """Whether it is checked: never."""
        return False

    def get_type(self) -> Constraint.ConstraintType:
        """Its kind."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def as_summary_string(self) -> str:
        """As it stands in a schema."""
        return f"CONSTRAINT `{self.name}`"


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """Columns that no two rows have the same values of."""

    columns: tuple[str, ...] = ()

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """The primary key."""
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """Its columns."""
        return list(self.columns)

    def get_type_string(self) -> str:
        """PRIMARY KEY."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        """As it stands in a schema."""
        columns = ", ".join(f"`{name}`" for name in self.columns)
        return f"CONSTRAINT `{self.name}` PRIMARY KEY ({columns}) NOT ENFORCED"

    def __str__(self) -> str:
        return self.as_summary_string()


class ResolvedSchema:
    """Columns, watermarks and key of a table.

    >>> from firesteel.table import DataTypes
    >>> ResolvedSchema.physical(["id"], [DataTypes.INT()]).get_column("id").get_data_type()
    IntType(true)
    """

    def __init__(
        self,
        columns: Sequence[Column],
        watermark_specs: Sequence[WatermarkSpec] = (),
        primary_key: UniqueConstraint | None = None,
    ) -> None:
        self._columns, self._watermarks, self._key = tuple(columns), tuple(watermark_specs), primary_key

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Columns alone."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Columns that are stored."""
        if len(column_names) != len(column_data_types):
            raise ProgramError(f"{len(column_names)} names for {len(column_data_types)} types.")
        pairs = zip(column_names, column_data_types, strict=True)
        return ResolvedSchema([Column.physical(name, kind) for name, kind in pairs])

    def with_times(self, times: Sequence[str | None]) -> ResolvedSchema:
        """The same with what each column is as a time attribute."""
        columns = [replace(column, time=time) for column, time in zip(self._columns, times, strict=True)]
        return ResolvedSchema(columns, self._watermarks, self._key)

    def get_column_count(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def get_columns(self) -> list[Column]:
        """All columns."""
        return list(self._columns)

    def get_column_names(self) -> list[str]:
        """Their names."""
        return [column.name for column in self._columns]

    def get_column_data_types(self) -> list[DataType]:
        """Their types."""
        return [column.data_type for column in self._columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """One column; None if there is none."""
        if isinstance(column_index_or_name, int):
            inside = 0 <= column_index_or_name < len(self._columns)
            return self._columns[column_index_or_name] if inside else None
        return next((column for column in self._columns if column.name == column_index_or_name), None)

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """The watermarks."""
        return list(self._watermarks)

    def get_primary_key(self) -> UniqueConstraint | None:
        """The key."""
        return self._key

    def get_primary_key_indexes(self) -> list[int]:
        """Where its columns are."""
        return [] if self._key is None else [self.get_column_names().index(name) for name in self._key.columns]

    def to_source_row_data_type(self) -> DataType:
        """All columns as a row."""
        return self._row(self._columns)

    def to_physical_row_data_type(self) -> DataType:
        """The columns that are stored, as a row."""
        return self._row([column for column in self._columns if column.is_physical()])

    def to_sink_row_data_type(self) -> DataType:
        """The columns that are written, as a row."""
        return self._row([column for column in self._columns if column.is_persisted()])

    @staticmethod
    def _row(columns: Sequence[Column]) -> RowType:
        return RowType(tuple(RowField(each.name, each.data_type) for each in columns), is_nullable=False)

    def __str__(self) -> str:
        lines = [*self._columns, *self._watermarks, *([self._key] if self._key is not None else [])]
        body = ",\n".join(f"  {line}" for line in lines)
        return f"(\n{body}\n)"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, ResolvedSchema) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


def resolved_schema(table: CatalogObject) -> ResolvedSchema:
    """The columns of something in a catalog."""
    if not isinstance(table, DeclaredTable):
        return ResolvedSchema.physical(table.row_type.field_names(), table.row_type.field_types())
    columns: list[Column] = []
    for each in table.columns:
        if each.computed is not None:
            columns.append(ComputedColumn(each.name, each.type, each.comment, each.computed_text or ""))
        elif each.metadata is not None:
            known_as = each.metadata if each.metadata != each.name else None
            columns.append(MetadataColumn(each.name, each.type, each.comment, known_as, each.virtual))
        else:
            columns.append(PhysicalColumn(each.name, each.type, each.comment))
    key = None
    if table.primary_key:
        key = UniqueConstraint(table.key_name or "PK_" + "_".join(table.primary_key), table.primary_key)
    kinds = {each.name: each.type.nullable() for each in table.columns}
    watermarks = [WatermarkSpec(column, text, kinds[column]) for column, _, text in table.watermarks]
    return ResolvedSchema(columns, watermarks, key)
