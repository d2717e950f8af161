"""The schema of a table, as a program writes it."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import Expression
from firesteel.table.resolved_schema import ComputedColumn, MetadataColumn, ResolvedSchema
from firesteel.table.sql.parser import parse_expression
from firesteel.table.sql.syntax import Node
from firesteel.table.sql.type_parser import parse_type
from firesteel.table.table_drafts import ColumnDraft, TableDraft, WatermarkDraft
from firesteel.table.types.data_types import DataType, RowType

__all__ = ["Schema", "data_type_of"]


def data_type_of(kind: DataType | str) -> DataType:
    """A type, which may be written as SQL has it."""
    if isinstance(kind, DataType):
        return kind
    if not isinstance(kind, str):
        raise ProgramError(f"A column's type is a DataType or its text, got {short_repr(kind, 60)}.")
    return parse_type(kind)


def _node(expression: str | Expression, what: str) -> tuple[Node, str]:
    if isinstance(expression, str):
        return parse_expression(expression), expression
    if isinstance(expression, Expression):
        return expression._node, str(expression)
    raise ProgramError(f"{what} takes an expression or SQL, got {short_repr(expression, 60)}.")


class Schema:
    """Columns, watermark and primary key.

    >>> from firesteel.table import DataTypes
    >>> schema = (
    ...     Schema.new_builder()
    ...     .column("id", DataTypes.INT().not_null())
    ...     .column("at", "TIMESTAMP(3)")
    ...     .column_by_expression("day", "CAST(at AS DATE)")
    ...     .watermark("at", "at - INTERVAL '5' SECOND")
    ...     .primary_key("id")
    ...     .build()
    ... )
    >>> print(schema)
    (
      `id` INT NOT NULL,
      `at` TIMESTAMP(3),
      `day` AS [CAST(at AS DATE)],
      WATERMARK FOR `at` AS [at - INTERVAL '5' SECOND],
      CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
    )
    """

    def __init__(self, draft: TableDraft) -> None:
        self._draft = draft

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder."""
        return Schema.Builder()

    def __str__(self) -> str:
        draft = self._draft
        lines = [_line(column) for column in draft.columns]
        lines += [f"WATERMARK FOR `{each.column}` AS [{each.text}]" for each in draft.watermarks]
        if draft.primary_key:
            key = ", ".join(f"`{name}`" for name in draft.primary_key)
            lines.append(f"CONSTRAINT `{draft.key_name}` PRIMARY KEY ({key}) NOT ENFORCED")
        body = ",\n".join(f"  {line}" for line in lines)
        return f"(\n{body}\n)"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    class Builder:
        """Collects columns."""

        def __init__(self) -> None:
            self._columns: list[ColumnDraft] = []
            self._watermarks: list[WatermarkDraft] = []
            self._key: tuple[str, ...] = ()
            self._key_name: str | None = None

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """All of another schema."""
            draft = unresolved_schema._draft
            self._columns += draft.columns
            self._watermarks += draft.watermarks
            if draft.primary_key:
                self.primary_key_named(draft.key_name or "", *draft.primary_key)
            return self

        def from_resolved_schema(self, resolved_schema: ResolvedSchema) -> Schema.Builder:
            """All of a schema whose types are known."""
            for column in resolved_schema.get_columns():
                if isinstance(column, ComputedColumn):
                    self.column_by_expression(column.name, column.expression)
                elif isinstance(column, MetadataColumn):
                    self.column_by_metadata(column.name, column.data_type, column.key, column.virtual)
                else:
                    self.column(column.name, column.data_type)
            for watermark in resolved_schema.get_watermark_specs():
                self.watermark(watermark.rowtime_attribute, watermark.expression)
            key = resolved_schema.get_primary_key()
            return self if key is None else self.primary_key_named(key.name, *key.columns)

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """A column for each field of a row type."""
            if not isinstance(data_type, RowType):
                raise ProgramError(f"from_row_data_type() takes DataTypes.ROW(...), got {data_type}.")
            return self.from_fields(data_type.field_names(), data_type.field_types())

        def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType]) -> Schema.Builder:
            """Columns by their names and types."""
            if len(field_names) != len(field_data_types):
                raise ProgramError(f"{len(field_names)} names for {len(field_data_types)} types.")
            for name, kind in zip(field_names, field_data_types, strict=True):
                self.column(name, kind)
            return self

        def column(self, column_name: str, data_type: DataType | str) -> Schema.Builder:
            """A column that is stored."""
            return self._add(ColumnDraft(column_name, data_type_of(data_type)))

        def _add(self, column: ColumnDraft) -> Schema.Builder:
            if not isinstance(column.name, str) or not column.name:
                raise ProgramError(f"A column's name is a text, got {short_repr(column.name, 60)}.")
            self._columns.append(column)
            return self

        def column_by_expression(self, column_name: str, expr: str | Expression) -> Schema.Builder:
            """A column that is computed when the table is read."""
            node, text = _node(expr, "column_by_expression()")
            return self._add(ColumnDraft(column_name, computed=node, computed_text=text))

        def column_by_metadata(
            self,
            column_name: str,
            data_type: DataType | str,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """A column of what the connector knows besides the rows: ``timestamp`` of Kafka, for example."""
            key = metadata_key or column_name
            return self._add(ColumnDraft(column_name, data_type_of(data_type), metadata=key, virtual=is_virtual))

        def watermark(self, column_name: str, watermark_expr: str | Expression) -> Schema.Builder:
            """Which column has the event time, and the watermark behind each row. ``SOURCE_WATERMARK()`` takes those
            that the source has."""
            node, text = _node(watermark_expr, "watermark()")
            self._watermarks.append(WatermarkDraft(column_name, node, text))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Columns that no two rows have the same values of. Nobody checks that."""
            return self.primary_key_named("PK_" + "_".join(column_names), *column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """The same with a name."""
            if self._key:
                raise ProgramError("A schema has one primary key.")
            if not column_names:
                raise ProgramError("A primary key has at least one column.")
            self._key, self._key_name = column_names, constraint_name
            return self

        def build(self) -> Schema:
            """The schema."""
            return Schema(TableDraft(tuple(self._columns), tuple(self._watermarks), tuple(self._key), self._key_name))


def _line(column: ColumnDraft) -> str:
    if column.computed is not None:
        return f"`{column.name}` AS [{column.computed_text}]"
    line = f"`{column.name}` {column.type}"
    if column.metadata is not None:
        line += " METADATA" + (f" FROM '{column.metadata}'" if column.metadata != column.name else "")
        line += " VIRTUAL" if column.virtual else ""
    return line
