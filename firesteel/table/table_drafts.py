"""Tables before they are checked: what CREATE TABLE, ALTER TABLE, LIKE and schemas of a program have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from firesteel.table.catalog.tables import ColumnDefinition, DeclaredTable
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.plan import Scan
from firesteel.table.logical.scope import Scope
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.source import Span
from firesteel.table.sql.statements import Column, CreateTable, PrimaryKey, Watermark
from firesteel.table.sql.syntax import FunctionCall, Node
from firesteel.table.types.data_types import DataType, RowType, TimestampType
from firesteel.table.types.data_types import LocalZonedTimestampType as Moment

__all__ = [
    "ColumnDraft",
    "TableDraft",
    "WatermarkDraft",
    "checked_key",
    "column_draft",
    "draft_of",
    "draft_of_statement",
    "drafted",
    "is_source_watermark",
    "watermark_draft",
]


@dataclass(frozen=True)
class ColumnDraft:
    """A column; that of a computed one has no type yet."""

    name: str
    type: DataType | None = None
    computed: Node | None = None
    computed_text: str | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None
    span: Span | None = None
    """Where it stands in the text that is read now."""


@dataclass(frozen=True)
class WatermarkDraft:
    """``WATERMARK FOR column AS expression``."""

    column: str
    expression: Node
    text: str
    span: Span | None = None


@dataclass(frozen=True)
class TableDraft:
    """A table that was not checked yet."""

    columns: tuple[ColumnDraft, ...] = ()
    watermarks: tuple[WatermarkDraft, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_name: str | None = None
    key_span: Span | None = None
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    partition_span: Span | None = None

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]


def column_draft(column: Column, text: str) -> ColumnDraft:
    """A column of a statement."""
    written = None if column.computed is None else text[column.computed.span.start : column.computed.span.end]
    return ColumnDraft(
        column.name,
        column.type,
        column.computed,
        written,
        column.metadata,
        column.virtual,
        column.comment,
        column.span,
    )


def watermark_draft(watermark: Watermark, text: str) -> WatermarkDraft:
    """A watermark of a statement."""
    span = watermark.expression.span
    return WatermarkDraft(str(watermark.column), watermark.expression, text[span.start : span.end], watermark.span)


def checked_key(key: PrimaryKey, text: str) -> PrimaryKey:
    """A key that nobody is asked to enforce."""
    if key.enforced:
        message = "A primary key is declared NOT ENFORCED: nobody checks the data."
        raise SqlValidationError(message, text, key.span)
    return key


def draft_of_statement(statement: CreateTable, text: str) -> TableDraft:
    """What CREATE TABLE says."""
    key = None if statement.primary_key is None else checked_key(statement.primary_key, text)
    return TableDraft(
        tuple(column_draft(column, text) for column in statement.columns),
        tuple(watermark_draft(each, text) for each in statement.watermarks),
        key.columns if key is not None else (),
        key.name if key is not None else None,
        key.span if key is not None else None,
        statement.comment,
        statement.partitioned_by,
        dict(statement.options),
        statement.partition_span,
    )


def draft_of(table: DeclaredTable) -> TableDraft:
    """A table of the catalog, to be changed."""
    return TableDraft(
        tuple(
            ColumnDraft(
                column.name,
                None if column.computed is not None else column.type,
                column.computed,
                column.computed_text,
                column.metadata,
                column.virtual,
                column.comment,
            )
            for column in table.columns
        ),
        tuple(WatermarkDraft(*each) for each in table.watermarks),
        table.primary_key,
        table.key_name,
        None,
        table.comment,
        table.partitioned_by,
        dict(table.options),
    )


def drafted(draft: TableDraft, text: str, name: str) -> DeclaredTable:
    """The table that a draft describes, checked. ``text`` is what its places are about."""
    names = draft.names
    for column in draft.columns:
        if names.count(column.name) > 1:
            raise SqlValidationError(f"Two columns are called {column.name}.", text, column.span)
    for key in draft.primary_key:
        if key not in names:
            raise SqlValidationError(f"There is no column {key}.{near_names(key, names)}", text, draft.key_span)
    for part in draft.partitioned_by:
        if part not in names:
            raise SqlValidationError(
                f"The table is partitioned by {part}, which is not a column of it.{near_names(part, names)}",
                text,
                draft.partition_span,
            )
    known = [(each.name, each.type) for each in draft.columns if each.type is not None]
    scope = Scope.of(_table([name for name, _ in known], [kind for _, kind in known]), name)
    columns = []
    for column in draft.columns:
        kind = column.type
        if column.computed is not None:
            if column.name in draft.primary_key:
                raise SqlValidationError(
                    f"{column.name} is computed: a primary key consists of columns that are stored.",
                    text,
                    draft.key_span or column.span,
                )
            kind = ExpressionResolver(scope, text if column.span else "").resolve(column.computed).type
        assert kind is not None
        if column.name in draft.primary_key:
            kind = kind.not_null()
        columns.append(
            ColumnDefinition(
                column.name,
                kind,
                column.computed,
                column.computed_text,
                column.metadata,
                column.virtual,
                column.comment,
            )
        )
    table = DeclaredTable(
        tuple(columns),
        dict(draft.options),
        draft.comment,
        draft.partitioned_by,
        draft.primary_key,
        draft.key_name,
        tuple((each.column, each.expression, each.text) for each in draft.watermarks),
    )
    _check_watermarks(draft.watermarks, table, text)
    return table


def is_source_watermark(expression: Node) -> bool:
    """``SOURCE_WATERMARK()``: the watermarks that the source has."""
    return isinstance(expression, FunctionCall) and str(expression.name).upper() == "SOURCE_WATERMARK"


def _table(names: Sequence[str], kinds: Sequence[DataType]) -> Scan:
    return Scan(("",), RowType.of(list(names), list(kinds)), None)


def _check_watermarks(watermarks: tuple[WatermarkDraft, ...], table: DeclaredTable, text: str) -> None:
    row = table.row_type
    if len(watermarks) > 1:
        raise SqlValidationError("A table has one watermark.", text, watermarks[1].span)
    for watermark in watermarks:
        if watermark.column not in row.field_names():
            near = near_names(watermark.column, row.field_names())
            raise SqlValidationError(f"There is no column {watermark.column}.{near}", text, watermark.span)
        kind = row.field_types()[row.field_names().index(watermark.column)]
        if not isinstance(kind, TimestampType | Moment) or kind.precision > 3:
            message = f"A watermark is for a TIMESTAMP(3) or TIMESTAMP_LTZ(3) column, {watermark.column} is {kind}."
            raise SqlValidationError(message, text, watermark.span)
        if is_source_watermark(watermark.expression):
            continue
        resolver = ExpressionResolver(
            Scope.of(_table(row.field_names(), row.field_types()), None), text if watermark.span else ""
        )
        resolver.resolve(watermark.expression)
