"""ALTER TABLE: a table as it is after the statement."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.source import Span
from firesteel.table.sql.statements import AlterTable
from firesteel.table.sql.syntax import Node
from firesteel.table.table_drafts import ColumnDraft, TableDraft, checked_key, column_draft, watermark_draft

__all__ = ["altered"]


def altered(table: TableDraft, statement: AlterTable, text: str) -> TableDraft:
    """The table with what the statement changes in it."""
    if statement.action == "SET":
        return replace(table, options={**table.options, **dict(statement.options)})
    if statement.action == "RESET":
        return _reset(table, statement, text)
    if statement.action == "RENAME COLUMN":
        assert statement.new_name is not None
        return _renamed(table, statement.keys[0], statement.new_name.parts[-1], text, statement.span)
    if statement.action == "DROP":
        return _dropped(table, statement, text)
    return _changed(table, statement, text)


def _reset(table: TableDraft, statement: AlterTable, text: str) -> TableDraft:
    if not statement.keys:
        raise SqlValidationError("RESET names the options that it takes away.", text, statement.span)
    if "connector" in statement.keys:
        raise SqlValidationError("A table cannot be without its connector.", text, statement.span)
    return replace(table, options={key: each for key, each in table.options.items() if key not in statement.keys})


def _place(table: TableDraft, name: str, text: str, span: Span) -> int:
    if name not in table.names:
        raise SqlValidationError(f"There is no column {name}.{near_names(name, table.names)}", text, span)
    return table.names.index(name)


def _users(table: TableDraft, name: str) -> list[str]:
    """What of a table depends on a column."""
    users = [f"the computed column {each.name}" for each in table.columns if _mentions(each.computed_text, name)]
    users += [f"the watermark of {each.column}" for each in table.watermarks if _in_watermark(each, name)]
    users += ["the primary key"] if name in table.primary_key else []
    return users + (["the partitions"] if name in table.partitioned_by else [])


def _in_watermark(watermark: object, name: str) -> bool:
    return getattr(watermark, "column", None) == name or _mentions(getattr(watermark, "text", None), name)


def _mentions(written: str | None, name: str) -> bool:
    """Whether an expression has a column's name in it."""
    if written is None:
        return False
    from firesteel.table.sql.tokens import TokenKind, tokenize

    return any(
        token.text == name and token.kind in (TokenKind.WORD, TokenKind.QUOTED_NAME) for token in tokenize(written)
    )


def _renamed(table: TableDraft, old: str, new: str, text: str, span: Span) -> TableDraft:
    place = _place(table, old, text, span)
    if new in table.names:
        raise SqlValidationError(f"There is a column {new} already.", text, span)
    computing = [user for user in _users(table, old) if user.startswith(("the computed", "the watermark"))]
    if computing:
        raise SqlValidationError(f"{old} is used by {computing[0]}: it keeps its name.", text, span)
    columns = list(table.columns)
    columns[place] = replace(columns[place], name=new)

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    return replace(
        table,
        columns=tuple(columns),
        primary_key=renamed(table.primary_key),
        partitioned_by=renamed(table.partitioned_by),
    )


def _dropped(table: TableDraft, statement: AlterTable, text: str) -> TableDraft:
    what = statement.keys[0]
    if what == " WATERMARK":
        if not table.watermarks:
            raise SqlValidationError("The table has no watermark.", text, statement.span)
        return replace(table, watermarks=())
    if what in (" PRIMARY KEY", " CONSTRAINT"):
        if not table.primary_key:
            raise SqlValidationError("The table has no primary key.", text, statement.span)
        return replace(table, primary_key=(), key_name=None)
    for name in statement.keys:
        _place(table, name, text, statement.span)
    left = replace(table, columns=tuple(each for each in table.columns if each.name not in statement.keys))
    for name in statement.keys:
        users = _users(left, name)
        if users:
            raise SqlValidationError(f"{name} is used by {users[0]}: it cannot be dropped.", text, statement.span)
    return left


def _changed(table: TableDraft, statement: AlterTable, text: str) -> TableDraft:
    adds = statement.action == "ADD"
    for column, position in zip(statement.columns, statement.positions, strict=True):
        draft = column_draft(column, text)
        known = draft.name in table.names
        if adds and known:
            raise SqlValidationError(f"There is a column {draft.name} already.", text, column.span)
        if not adds:
            _place(table, draft.name, text, column.span)
        table = _with_column(table, draft, position, text, column)
    if statement.watermark is not None:
        if adds and table.watermarks:
            raise SqlValidationError("The table has a watermark already: MODIFY it.", text, statement.watermark.span)
        if not adds and not table.watermarks:
            raise SqlValidationError("The table has no watermark: ADD one.", text, statement.watermark.span)
        table = replace(table, watermarks=(watermark_draft(statement.watermark, text),))
    if statement.primary_key is not None:
        key = checked_key(statement.primary_key, text)
        if adds and table.primary_key:
            raise SqlValidationError("The table has a primary key already: MODIFY it.", text, key.span)
        if not adds and not table.primary_key:
            raise SqlValidationError("The table has no primary key: ADD one.", text, key.span)
        table = replace(table, primary_key=key.columns, key_name=key.name, key_span=key.span)
    return table


def _with_column(table: TableDraft, draft: ColumnDraft, position: str | None, text: str, where: Node) -> TableDraft:
    """``position`` is FIRST as an empty text, the column that it comes behind, or None: at the end, or where it was."""
    others = [each for each in table.columns if each.name != draft.name]
    if position is None:
        at = table.names.index(draft.name) if draft.name in table.names else len(others)
    elif position == "":
        at = 0
    else:
        at = _place(replace(table, columns=tuple(others)), position, text, where.span) + 1
    return replace(table, columns=(*others[:at], draft, *others[at:]))
