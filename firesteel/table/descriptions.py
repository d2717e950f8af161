"""DESCRIBE: the columns of a table, one in a row."""

from __future__ import annotations

from firesteel.common.types import Row
from firesteel.table.catalog.tables import CatalogObject, ColumnDefinition, DeclaredTable
from firesteel.table.table_result import TableResult
from firesteel.table.types.data_types import MAX_LENGTH, BooleanType, RowType, VarCharType

__all__ = ["described"]

_TEXT = VarCharType(MAX_LENGTH)
_NAMES = ["name", "type", "null", "key", "extras", "watermark"]


def described(found: CatalogObject) -> TableResult:
    """Columns with type, nullability, key, what computes them, and the watermark."""
    kinds = [_TEXT, _TEXT, BooleanType(), _TEXT, _TEXT, _TEXT]
    if not isinstance(found, DeclaredTable):
        rows = [
            Row(field.name, field.data_type.sql, field.data_type.is_nullable, None, None, None)
            for field in found.row_type.fields
        ]
        return TableResult(RowType.of(_NAMES, kinds), rows=[_blank(row) for row in rows])
    watermarks = {column: written for column, _, written in found.watermarks}
    commented = any(column.comment for column in found.columns)
    rows = [_described_column(column, found, watermarks.get(column.name), commented) for column in found.columns]
    names = [*_NAMES, "comment"] if commented else _NAMES
    return TableResult(RowType.of(names, [*kinds, _TEXT][: len(names)]), rows=[_blank(row) for row in rows])


def _described_column(column: ColumnDefinition, table: DeclaredTable, watermark: str | None, commented: bool) -> Row:
    key = f"PRI({', '.join(table.primary_key)})" if column.name in table.primary_key else None
    extras = None
    if column.computed is not None:
        extras = f"AS {column.computed_text}"
    elif column.metadata is not None:
        source = f" FROM '{column.metadata}'" if column.metadata != column.name else ""
        extras = f"METADATA{source}{' VIRTUAL' if column.virtual else ''}"
    kind = f"{column.type.sql} *ROWTIME*" if watermark is not None else column.type.sql
    cells = [column.name, kind, column.type.is_nullable, key, extras, watermark]
    return Row(*cells, *([column.comment] if commented else []))


def _blank(row: Row) -> Row:
    """What is not there is shown as nothing, not as NULL."""
    return Row(*["" if value is None else value for value in row])
