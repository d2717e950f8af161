"""CREATE TABLE: columns with their types; and back, for SHOW CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from firesteel.common.secret import is_secret_key, without_url_secrets
from firesteel.connectors.jdbc.address import has_password, shown
from firesteel.table.catalog.tables import CatalogObject, ColumnDefinition, DeclaredTable, View
from firesteel.table.expression_layout import quoted_columns
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, rewrite
from firesteel.table.logical.plan import Plan, Project, Scan
from firesteel.table.logical.scope import Scope
from firesteel.table.sql.statement_secrets import masked_statement
from firesteel.table.sql.statements import CreateTable
from firesteel.table.table_drafts import draft_of_statement, drafted, is_source_watermark
from firesteel.table.types.data_types import (
    ArrayType,
    DataType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowField,
    RowType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["declared_table", "show_create", "shown_options", "table_plan"]


def declared_table(statement: CreateTable, text: str) -> DeclaredTable:
    """The table that the statement describes, checked."""
    return drafted(draft_of_statement(statement, text), text, statement.name.parts[-1])


def table_plan(table: DeclaredTable, path: tuple[str, ...], source: CatalogObject | None = None) -> Plan:
    """Reads what the connector has, or another source with the same columns, and computes the other columns."""
    scan = Scan(path, table.readable, table if source is None else source)
    resolver = ExpressionResolver(Scope.of(scan, path[-1]))
    refs = dict(zip(scan.names, scan.refs(), strict=True))
    expressions: list[Expression] = [
        refs[column.name] if column.computed is None else resolver.resolve(column.computed) for column in table.columns
    ]
    whole = Project(scan, tuple(expressions), tuple(column.name for column in table.columns))
    if table.watermarks:
        column, written, _ = table.watermarks[0]
        scan = replace(scan, rowtimes=(column,))
        if not is_source_watermark(written):
            over_all = ExpressionResolver(Scope.of(whole, path[-1])).resolve(written)
            scan = replace(scan, watermark=_over_scan(over_all, whole.expressions))
        whole = replace(whole, input=scan)
    return scan if all(column.computed is None for column in table.columns) else whole


def _over_scan(expression: Expression, computed: tuple[Expression, ...]) -> Expression:
    def replaced(part: Expression) -> Expression | None:
        return computed[part.index] if isinstance(part, InputRef) else None

    return rewrite(expression, replaced)


def _sql_type(kind: DataType) -> str:
    """A type without the short names, as Flink prints it in statements.

    >>> from firesteel.table.types import DataTypes
    >>> _sql_type(DataTypes.ARRAY(DataTypes.STRING()))
    'ARRAY<VARCHAR(2147483647)>'
    """
    text = _long_name(kind)
    return text if kind.is_nullable else f"{text} NOT NULL"


def _long_name(kind: DataType) -> str:
    if isinstance(kind, VarCharType | VarBinaryType):
        return f"{kind.type_name()}({kind.length})"
    if isinstance(kind, LocalZonedTimestampType):
        return f"TIMESTAMP({kind.precision}) WITH LOCAL TIME ZONE"
    if isinstance(kind, ArrayType | MultisetType):
        return f"{kind.type_name()}<{_sql_type(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_sql_type(kind.key_type)}, {_sql_type(kind.value_type)}>"
    if isinstance(kind, RowType):
        return f"ROW<{', '.join(map(_field, kind.fields))}>"
    return kind.sql


def _field(field: RowField) -> str:
    name = field.name.replace("`", "``")
    return f"`{name}` {_sql_type(field.data_type)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


MASK = "******"


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a table as they may be shown: without passwords.

    >>> shown_options({"password": "hunter2", "url": "jdbc:mysql://ada:hunter2@db/shop", "table-name": "t"})
    {'password': '******', 'url': 'jdbc:mysql://db/shop', 'table-name': 't'}
    """
    return {
        key: MASK
        if is_secret_key(key)
        else shown(value)
        if value.startswith("jdbc:") and has_password(value)
        else without_url_secrets(value, MASK)
        for key, value in options.items()
    }


def show_create(found: CatalogObject, path: tuple[str, ...], temporary: bool, secrets: bool = False) -> str:
    """The statement that makes a table or view; with ``secrets`` it is not for anybody's eyes."""
    name = ".".join(f"`{part}`" for part in path)
    prefix = "CREATE TEMPORARY" if temporary else "CREATE"
    if isinstance(found, View):
        columns = ",\n".join(f"  `{field}`" for field in found.row_type.field_names())
        text = found.text or "..."
        comment = f"COMMENT {_quoted(found.comment)}\n" if found.comment else ""
        return f"{prefix} VIEW {name} (\n{columns}\n)\n{comment}AS {text if secrets else masked_statement(text)}\n"
    assert isinstance(found, DeclaredTable)
    names = [column.name for column in found.columns]
    lines = [_column_line(column, names) for column in found.columns]
    lines += [f"  WATERMARK FOR `{name}` AS {quoted_columns(written, names)}" for name, _, written in found.watermarks]
    if found.primary_key:
        key = ", ".join(f"`{column}`" for column in found.primary_key)
        constraint = found.key_name or "PK_" + "_".join(found.primary_key)
        lines.append(f"  CONSTRAINT `{constraint}` PRIMARY KEY ({key}) NOT ENFORCED")
    body = ",\n".join(lines)
    text = f"{prefix} TABLE {name} (\n{body}\n)\n"
    if found.comment:
        text += f"COMMENT {_quoted(found.comment)}\n"
    if found.partitioned_by:
        text += f"PARTITIONED BY ({', '.join(f'`{column}`' for column in found.partitioned_by)})\n"
    listed = sorted((found.options if secrets else shown_options(found.options)).items())
    options = ",\n".join(f"  {_quoted(key)} = {_quoted(value)}" for key, value in listed)
    return f"{text}WITH (\n{options}\n)\n"


def _column_line(column: ColumnDefinition, names: Sequence[str]) -> str:
    line = f"  `{column.name}` "
    if column.computed is not None:
        line += f"AS {quoted_columns(column.computed_text or '', names)}"
    else:
        line += _sql_type(column.type)
        if column.metadata is not None:
            line += " METADATA" + (f" FROM {_quoted(column.metadata)}" if column.metadata != column.name else "")
            line += " VIRTUAL" if column.virtual else ""
    return line + (f" COMMENT {_quoted(column.comment)}" if column.comment else "")
