"""CREATE, ALTER and SHOW of tables, views and databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from firesteel.common.types import Row
from firesteel.connectors.files.listing import listed as listed_files
from firesteel.errors import ConfigurationError
from firesteel.filesystems import file_system_of, resolved
from firesteel.table.altering import altered
from firesteel.table.catalog.manager import CatalogError, Database
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable, View
from firesteel.table.declarations import shown_options
from firesteel.table.like_clauses import merged_like
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Literal
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import statements
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.syntax import Node
from firesteel.table.table_drafts import ColumnDraft, TableDraft, draft_of, draft_of_statement, drafted
from firesteel.table.table_result import TableResult
from firesteel.table.types.data_types import MAX_LENGTH, RowType, VarCharType
from firesteel.table.view_plans import view_of

if TYPE_CHECKING:
    from firesteel.table.catalog.manager import CatalogManager
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["TableStatements", "matching", "partition_folders"]

_TEXT = VarCharType(MAX_LENGTH)


def matching(values: Sequence[str], pattern: str | None, negated: bool, ignore_case: bool = False) -> list[str]:
    """Values that a pattern of LIKE fits."""
    if pattern is None:
        return list(values)
    regex = "".join(".*" if letter == "%" else "." if letter == "_" else re.escape(letter) for letter in pattern)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return [value for value in values if (re.fullmatch(regex, value, flags) is not None) != negated]


class TableStatements:
    """Statements about tables, of one text."""

    def __init__(self, env: TableEnvironment, text: str) -> None:
        self._env, self._text = env, text
        self._catalogs: CatalogManager = env._catalogs

    # CREATE TABLE

    def create(self, statement: statements.CreateTable) -> Plan | None:
        """Makes the table. With a query, what is to be written into it."""
        draft = draft_of_statement(statement, self._text)
        name = statement.name.parts[-1]
        if statement.like is not None:
            base = self._table(statement.like.table.parts, statement.like)
            draft = merged_like(draft_of(base), draft, statement.like, self._text)
        plan = None
        if statement.query is not None:
            plan = self._in_order(self._env._resolve(statement.query, self._text), statement)
            draft = self._with_query(draft, plan, statement)
            if statement.temporary:
                raise SqlValidationError(
                    "A temporary table cannot be made of a query.", self._text, statement.name.span
                )
        table = drafted(draft, self._text, name)
        there = self._catalogs.find(statement.name.parts) is not None
        self._catalogs.create(statement.name.parts, table, statement.temporary, statement.if_not_exists)
        # IF NOT EXISTS: then nothing is written either.
        return None if there else plan

    def _with_query(self, draft: TableDraft, plan: Plan, statement: statements.CreateTable) -> TableDraft:
        """Those that the statement adds, computed or of its own, and then the columns of the query."""
        own = {column.name: column for column in draft.columns}
        columns = []
        for name, kind in zip(plan.names, plan.types, strict=True):
            declared = own.pop(name, None)
            columns.append(declared if declared is not None and declared.type is not None else ColumnDraft(name, kind))
        for each in own.values():
            # What the query lacks is NULL in every row.
            if each.type is not None and each.metadata is None and not each.type.is_nullable:
                near = near_names(each.name, plan.names)
                message = f"The query has no column {each.name}, which is NOT NULL, so it would have no value.{near}"
                raise SqlValidationError(message, self._text, each.span)
        return replace(draft, columns=(*own.values(), *columns))

    def _in_order(self, plan: Plan, statement: statements.CreateTable) -> Plan:
        """The columns of the query in the order in which the statement names them."""
        names = [column.parts[-1] for column in statement.column_names]
        for name, column in zip(names, statement.column_names, strict=True):
            if name not in plan.names:
                message = f"The query has no column {name}.{near_names(name, plan.names)}"
                raise SqlValidationError(message, self._text, column.span)
            if names.count(name) > 1:
                raise SqlValidationError(f"Two columns are called {name}.", self._text, column.span)
        if not names:
            return plan
        if len(names) != len(plan.names):
            missing = ", ".join(name for name in plan.names if name not in names)
            message = f"All columns of the query have to be named, {missing} is missing."
            raise SqlValidationError(message, self._text, statement.column_names[0].span)
        refs = dict(zip(plan.names, plan.refs(), strict=True))
        return Project(plan, tuple(refs[name] for name in names), tuple(names))

    # ALTER

    def _table(self, parts: tuple[str, ...], where: Node) -> DeclaredTable:
        found = self._catalogs.find(parts)
        if found is None:
            near = near_names(parts[-1], self._catalogs.names())
            raise SqlValidationError(f"There is no table {'.'.join(parts)}.{near}", self._text, where.span)
        if not isinstance(found, DeclaredTable):
            raise SqlValidationError(f"{'.'.join(parts)} is a view, not a table.", self._text, where.span)
        return found

    def alter_table(self, statement: statements.AlterTable) -> None:
        """Changes a table."""
        if statement.if_exists and self._catalogs.find(statement.name.parts) is None:
            return
        table = self._table(statement.name.parts, statement.name)
        if statement.action == "RENAME":
            assert statement.new_name is not None
            self._rename(statement.name.parts, statement.new_name.parts, "TABLE")
            return
        changed = altered(draft_of(table), statement, self._text)
        self._replace(statement.name.parts, drafted(changed, self._text, statement.name.parts[-1]))

    def alter_view(self, statement: statements.AlterView) -> None:
        """Another name, or another query."""
        found = self._catalogs.find(statement.name.parts)
        if not isinstance(found, View):
            raise CatalogError(f"There is no view {statement.name}.")
        if statement.new_name is not None:
            self._rename(statement.name.parts, statement.new_name.parts, "VIEW")
            return
        assert statement.query is not None
        self._replace(statement.name.parts, view_of(self._env, statement.query, self._text, found.comment))

    def alter_database(self, statement: statements.AlterDatabase) -> None:
        """Properties of a database."""
        self._database(statement.name.parts).options.update(dict(statement.options))

    def _database(self, parts: tuple[str, ...]) -> Database:
        catalog, name = parts if len(parts) == 2 else (self._catalogs.current_catalog, parts[-1])
        return self._catalogs.database(catalog, name)

    def _replace(self, parts: tuple[str, ...], changed: CatalogObject) -> None:
        temporary = self._catalogs.qualified(parts) in self._catalogs.temporary
        self._catalogs.create(parts, changed, temporary, replace=True)

    def _rename(self, old: tuple[str, ...], new: tuple[str, ...], what: str) -> None:
        """Within its database, as in Flink."""
        before, after = self._catalogs.qualified(old), self._catalogs.qualified(new)
        if len(new) == 1:
            after = (before[0], before[1], new[0])
        if after[:2] != before[:2]:
            raise CatalogError(f"{'.'.join(before)} cannot be moved to another database.")
        found = self._catalogs.find(old)
        assert found is not None
        temporary = before in self._catalogs.temporary
        self._catalogs.create(after, found, temporary)
        self._catalogs.drop(before, what == "VIEW", True if temporary else None, False)

    # SHOW, DESCRIBE

    def show_columns(self, statement: statements.Show) -> TableResult:
        """``SHOW COLUMNS FROM t LIKE 'a%'``."""
        assert statement.name is not None
        found = self._catalogs.find(statement.name.parts)
        if found is None:
            near = near_names(statement.name.parts[-1], self._catalogs.names())
            raise CatalogError(f"There is no table {statement.name}.{near}")
        from firesteel.table.descriptions import described

        whole = described(found, self._env._streaming)
        chosen = set(matching(found.row_type.field_names(), statement.like, statement.negated, statement.ignore_case))
        rows = [row for row in whole.collect() if row[0] in chosen]
        return TableResult(whole._row_type, rows=rows)

    def describe_database(self, statement: statements.Describe) -> TableResult:
        """``DESCRIBE DATABASE d``."""
        parts = statement.name.parts
        database = self._database(parts)
        rows = [Row("name", parts[-1]), Row("comment", database.comment or "")]
        if statement.extended and database.options:
            shown = ", ".join(f"({key},{value})" for key, value in sorted(shown_options(database.options).items()))
            rows.append(Row("properties", f"({shown})"))
        return TableResult(RowType.of(["info name", "info value"], [_TEXT, _TEXT]), rows=rows)

    def partitions(self, statement: statements.Show) -> list[str]:
        """``SHOW PARTITIONS t``: the folders that a table of files has."""
        assert statement.name is not None
        table = self._table(statement.name.parts, statement.name)
        if not table.partitioned_by:
            raise SqlValidationError(f"{statement.name} is not partitioned.", self._text, statement.name.span)
        if table.options.get("connector") != "filesystem":
            raise SqlValidationError(f"{statement.name} is not a table of files.", self._text, statement.name.span)
        found = partition_folders(table)
        for name, value in statement.partition:
            if name not in table.partitioned_by:
                message = f"{statement.name} is not partitioned by {name}.{near_names(name, table.partitioned_by)}"
                raise SqlValidationError(message, self._text, value.span)
            wanted = ExpressionResolver(Scope([]), self._text).resolve(value)
            if not isinstance(wanted, Literal):
                raise SqlValidationError("PARTITION takes constants.", self._text, value.span)
            found = [folder for folder in found if f"{name}={wanted.value}" in map(unquote, folder.split("/"))]
        return found


def partition_folders(table: DeclaredTable) -> list[str]:
    """The partitions of a table of files: ``city=Rome/day=2024-01-01``."""
    return sorted(set(_folders(table)))


def _folders(table: DeclaredTable) -> Iterator[str]:
    try:
        path = resolved(table.options.get("path", ""), "The path of a table")
    except ConfigurationError as error:
        raise SqlValidationError(str(error)) from None
    depth = len(table.partitioned_by)
    for file in listed_files(path, file_system_of(path)):
        folders = file.path[len(path) :].strip("/").split("/")[:-1]
        if len(folders) >= depth:
            yield "/".join(folders[:depth])
