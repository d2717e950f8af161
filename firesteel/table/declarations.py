"""CREATE TABLE: columns with their types; and back, for SHOW CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.catalog.tables import CatalogObject, ColumnDefinition, DeclaredTable, View
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, rewrite
from firesteel.table.logical.plan import Plan, Project, Scan
from firesteel.table.logical.scope import Scope
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.sql.statements import CreateTable
from firesteel.table.types.data_types import MAX_LENGTH, DataType, RowType, TimestampType, VarBinaryType, VarCharType
from firesteel.table.types.data_types import LocalZonedTimestampType as Moment

__all__ = ["declared_table", "show_create", "table_plan"]


def declared_table(statement: CreateTable, text: str) -> DeclaredTable:
    """The table that the statement describes, checked."""
    names = [column.name for column in statement.columns]
    for column in statement.columns:
        if names.count(column.name) > 1:
            raise SqlValidationError(f"Two columns are called {column.name}.", text, column.span)
    key = statement.primary_key
    if key is not None and key.enforced:
        message = "A primary key is declared NOT ENFORCED: nobody checks the data."
        raise SqlValidationError(message, text, key.span)
    for name in key.columns if key is not None else ():
        if name not in names:
            assert key is not None
            raise SqlValidationError(f"There is no column {name}.{near_names(name, names)}", text, key.span)
    known = [(each.name, each.type) for each in statement.columns if each.type is not None]
    scope = Scope.of(_table([name for name, _ in known], [kind for _, kind in known]), statement.name.parts[-1])
    columns = []
    for column in statement.columns:
        kind = column.type
        computed_text = None
        if column.computed is not None:
            kind = ExpressionResolver(scope, text).resolve(column.computed).type
            computed_text = text[column.computed.span.start : column.computed.span.end]
        assert kind is not None
        if key is not None and column.name in key.columns:
            kind = kind.not_null()
        columns.append(
            ColumnDefinition(
                column.name, kind, column.computed, computed_text, column.metadata, column.virtual, column.comment
            )
        )
    table = DeclaredTable(
        tuple(columns),
        dict(statement.options),
        statement.comment,
        statement.partitioned_by,
        key.columns if key is not None else (),
        key.name if key is not None else None,
        tuple(
            (str(each.column), each.expression, text[each.expression.span.start : each.expression.span.end])
            for each in statement.watermarks
        ),
    )
    _check_watermarks(statement, table, text)
    return table


def _table(names: list[str], kinds: list[DataType]) -> Scan:
    return Scan(("",), RowType.of(names, kinds), None)


def _check_watermarks(statement: CreateTable, table: DeclaredTable, text: str) -> None:
    scope = Scope.of(_table(table.row_type.field_names(), table.row_type.field_types()), None)
    resolver = ExpressionResolver(scope, text)
    for watermark in statement.watermarks:
        kind = resolver.resolve(watermark.column).type
        if not isinstance(kind, TimestampType | Moment) or kind.precision > 3:
            message = f"A watermark is for a TIMESTAMP(3) or TIMESTAMP_LTZ(3) column, {watermark.column} is {kind}."
            raise SqlValidationError(message, text, watermark.column.span)
        resolver.resolve(watermark.expression)


def table_plan(table: DeclaredTable, path: tuple[str, ...]) -> Plan:
    """Reads what the connector has, and computes the other columns."""
    metadata = [column.name for column in table.columns if column.metadata is not None]
    if metadata:
        raise NotSupportedError(f"Not supported yet: metadata columns ({', '.join(metadata)} of {'.'.join(path)}).")
    scan = Scan(path, table.physical, table)
    resolver = ExpressionResolver(Scope.of(scan, path[-1]))
    refs = dict(zip(scan.names, scan.refs(), strict=True))
    expressions: list[Expression] = [
        refs[column.name] if column.computed is None else resolver.resolve(column.computed) for column in table.columns
    ]
    whole = Project(scan, tuple(expressions), tuple(column.name for column in table.columns))
    if table.watermarks:
        column, written, _ = table.watermarks[0]
        over_all = ExpressionResolver(Scope.of(whole, path[-1])).resolve(written)
        scan = replace(scan, rowtimes=(column,), watermark=_over_scan(over_all, whole.expressions))
        whole = replace(whole, input=scan)
    return scan if all(column.is_physical for column in table.columns) else whole


def _over_scan(expression: Expression, computed: tuple[Expression, ...]) -> Expression:
    def replaced(part: Expression) -> Expression | None:
        return computed[part.index] if isinstance(part, InputRef) else None

    return rewrite(expression, replaced)


def _sql_type(kind: DataType) -> str:
    text = str(kind)
    if isinstance(kind, VarCharType) and kind.length == MAX_LENGTH:
        return text.replace("STRING", f"VARCHAR({MAX_LENGTH})")
    if isinstance(kind, VarBinaryType) and kind.length == MAX_LENGTH:
        return text.replace("BYTES", f"VARBINARY({MAX_LENGTH})")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def show_create(found: CatalogObject, path: tuple[str, ...], temporary: bool) -> str:
    """The statement that makes a table or view."""
    name = ".".join(f"`{part}`" for part in path)
    prefix = "CREATE TEMPORARY" if temporary else "CREATE"
    if isinstance(found, View):
        columns = ",\n".join(f"  `{field}`" for field in found.row_type.field_names())
        return f"{prefix} VIEW {name} (\n{columns}\n)\nAS {found.text or '...'}\n"
    assert isinstance(found, DeclaredTable)
    lines = [_column_line(column) for column in found.columns]
    lines += [f"  WATERMARK FOR `{column}` AS {written}" for column, _, written in found.watermarks]
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
    options = ",\n".join(f"  {_quoted(key)} = {_quoted(value)}" for key, value in sorted(found.options.items()))
    return f"{text}WITH (\n{options}\n)\n"


def _column_line(column: ColumnDefinition) -> str:
    line = f"  `{column.name}` "
    if column.computed is not None:
        line += f"AS {column.computed_text}"
    else:
        line += _sql_type(column.type)
        if column.metadata is not None:
            line += " METADATA" + (f" FROM {_quoted(column.metadata)}" if column.metadata != column.name else "")
            line += " VIRTUAL" if column.virtual else ""
    return line + (f" COMMENT {_quoted(column.comment)}" if column.comment else "")
