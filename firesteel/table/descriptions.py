"""DESCRIBE: the columns of a table, one in a row."""

from __future__ import annotations

from firesteel.common.types import Row
from firesteel.table.catalog.tables import CatalogObject, ColumnDefinition, DeclaredTable, View
from firesteel.table.declarations import table_plan
from firesteel.table.expression_layout import quoted_columns
from firesteel.table.logical.time_attributes import ROWTIME, time_attribute
from firesteel.table.table_result import TableResult
from firesteel.table.types.data_types import MAX_LENGTH, BooleanType, RowType, VarCharType

__all__ = ["described"]

_TEXT = VarCharType(MAX_LENGTH)
_NAMES = ["name", "type", "null", "key", "extras", "watermark"]


def described(found: CatalogObject, streaming: bool) -> TableResult:
    """Columns with type, nullability, key, what computes them, and the watermark."""
    kinds = [_TEXT, _TEXT, BooleanType(), _TEXT, _TEXT, _TEXT]
    times = _times(found, streaming)
    if not isinstance(found, DeclaredTable):
        rows = [
            Row(field.name, field.data_type.sql + time, field.data_type.is_nullable, None, None, None)
            for field, time in zip(found.row_type.fields, times, strict=True)
        ]
        return TableResult(RowType.of(_NAMES, kinds), rows=rows)
    names = [column.name for column in found.columns]
    watermarks = {column: quoted_columns(written, names) for column, _, written in found.watermarks}
    commented = any(column.comment for column in found.columns)
    rows = [
        _described_column(column, time, found, watermarks.get(column.name), commented)
        for column, time in zip(found.columns, times, strict=True)
    ]
    names = [*_NAMES, "comment"] if commented else _NAMES
    return TableResult(RowType.of(names, [*kinds, _TEXT][: len(names)]), rows=rows)


def _described_column(
    column: ColumnDefinition, time: str, table: DeclaredTable, watermark: str | None, commented: bool
) -> Row:
    key = f"PRI({', '.join(table.primary_key)})" if column.name in table.primary_key else None
    extras = None
    if column.computed is not None:
        extras = f"AS {quoted_columns(column.computed_text or '', [each.name for each in table.columns])}"
    elif column.metadata is not None:
        source = f" FROM '{column.metadata}'" if column.metadata != column.name else ""
        extras = f"METADATA{source}{' VIRTUAL' if column.virtual else ''}"
    cells = [column.name, column.type.sql + time, column.type.is_nullable, key, extras, watermark]
    return Row(*cells, *([column.comment] if commented else []))


def _times(found: CatalogObject, streaming: bool) -> list[str]:
    """What is said of each column that is a time by which rows proceed. In batch mode watermarks are for nothing."""
    if not isinstance(found, DeclaredTable | View):
        return [""] * len(found.row_type.fields)
    plan = table_plan(found, ("",)) if isinstance(found, DeclaredTable) else found.plan
    kinds = [time_attribute(plan, index) for index in range(len(plan.names))]
    return [f" *{kind.upper()}*" if kind is not None and (streaming or kind != ROWTIME) else "" for kind in kinds]
