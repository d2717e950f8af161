"""Runs statements: each kind has a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.types import Row
from firesteel.connectors.table.partition_folders import DEFAULT_NAME, FolderSplitter
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.table.catalog.manager import CatalogDefinition, CatalogError, Database
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable, View
from firesteel.table.catalog_statements import alter_catalog, create_catalog, described_catalog, shown_catalog
from firesteel.table.declarations import show_create, shown_options
from firesteel.table.definition_statements import (
    MODULES,
    alter_function,
    check_modules,
    described_function,
    python_function,
)
from firesteel.table.descriptions import described
from firesteel.table.environment_settings import MODE
from firesteel.table.error_places import placed
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.functions.binding import cast_to
from firesteel.table.functions.evaluation import Evaluator
from firesteel.table.insertions import Insertion
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, Literal
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.logical.relation_resolver import renamed
from firesteel.table.logical.scope import Scope
from firesteel.table.overwriting import Overwrite
from firesteel.table.physical.sinks import MisfitError, fitted_for
from firesteel.table.result_kind import ResultKind
from firesteel.table.sql import statements
from firesteel.table.sql.errors import NotSupportedError, SqlError, SqlValidationError, near_names
from firesteel.table.sql.syntax import Node
from firesteel.table.table_result import TableResult
from firesteel.table.table_statements import TableStatements, matching
from firesteel.table.types.data_types import MAX_LENGTH, BooleanType, RowType, VarCharType
from firesteel.table.view_plans import view_of

if TYPE_CHECKING:
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["StatementExecutor", "listed", "ok", "table_of"]

_TEXT = VarCharType(MAX_LENGTH)


def ok() -> TableResult:
    """The result of what has no rows."""
    return TableResult(RowType.of(["result"], [_TEXT]), ResultKind.SUCCESS, [Row("OK")], plain="OK")


def listed(name: str, values: Sequence[str]) -> TableResult:
    """One column of text."""
    return table_of([name], [(value,) for value in values])


def table_of(names: Sequence[str], rows: Sequence[Sequence[str]]) -> TableResult:
    """Columns of text."""
    return TableResult(RowType.of(list(names), [_TEXT] * len(names)), rows=[Row(*row) for row in rows])


class StatementExecutor:
    """Runs one statement of a text."""

    def __init__(self, env: TableEnvironment, text: str) -> None:
        self._env = env
        self._catalogs = env._catalogs
        self._text = text
        self._table_statements = TableStatements(env, text)

    def execute(self, statement: statements.Statement) -> TableResult:
        """Does what the statement says."""
        try:
            return _HANDLERS[type(statement)](self, statement)
        except CatalogError as error:
            raise SqlValidationError(str(error), self._text, _name_span(statement)) from None
        except SqlError as error:
            raise self._placed(error, statement) from error.__cause__

    def explain(self, statement: statements.Statement, details: Sequence[Any] = ()) -> str:
        """The plan of a query or INSERT."""
        try:
            return self._plan_text(statement, details)
        except SqlError as error:
            raise self._placed(error, statement) from error.__cause__

    def _placed(self, error: SqlError, statement: statements.Statement) -> SqlError:
        return placed(error, statement, self._text, self._catalogs.qualified)

    def _plan_text(self, statement: statements.Statement, details: Sequence[Any]) -> str:
        if isinstance(statement, statements.Explain):
            return self._plan_text(
                statement.statement, [*details, *(ExplainDetail[name] for name in statement.details)]
            )
        if isinstance(statement, statements.QueryStatement):
            return self._env._explain([self._env._resolve(statement.query, self._text)], details)
        if isinstance(statement, statements.Insert | statements.StatementSetStatement):
            inserts = (statement,) if isinstance(statement, statements.Insert) else statement.inserts
            insertions = [self._insertion(insert) for insert in inserts]
            return self._env._explain([each.plan for each in insertions], details, insertions)
        raise ProgramError("Only queries and INSERT have a plan.")

    def _unsupported(self, node: Node, what: str) -> NotSupportedError:
        return NotSupportedError(f"Not supported yet: {what}.", self._text, node.span)

    # Queries and INSERT.

    def _query(self, statement: statements.QueryStatement) -> TableResult:
        return self._env._run_query(self._env._resolve(statement.query, self._text))

    def _insert(self, statement: statements.Insert) -> TableResult:
        return self._env._insert([self._insertion(statement)])

    def _statement_set(self, statement: statements.StatementSetStatement) -> TableResult:
        return self._env._insert([self._insertion(insert) for insert in statement.inserts])

    def insertion(self, statement: statements.Statement) -> Insertion:
        """Where the rows of an INSERT go, and its plan."""
        if not isinstance(statement, statements.Insert):
            raise ProgramError("add_insert_sql() takes an INSERT statement.")
        return self._insertion(statement)

    def _insertion(self, statement: statements.Insert) -> Insertion:
        target = self._catalogs.find(statement.target.parts)
        if target is None:
            near = near_names(statement.target.parts[-1], self._catalogs.names())
            raise SqlValidationError(f"There is no table {statement.target}.{near}", self._text, statement.target.span)
        plan = self._env._resolve(statement.query, self._text)
        columns = _writable(target)
        if statement.partition:
            plan = self._partitioned(statement, plan, columns, target)
        if statement.columns:
            plan = self._arranged(statement, plan, columns)
        try:
            fitted_for(target, ".".join(self._catalogs.qualified(statement.target.parts)), plan)
        except MisfitError as error:
            if error.place is not None:
                error.place = self._written_place(statement, columns.field_names()[error.place], columns)
            raise self._placed(error, statement) from None
        overwrite = Overwrite(self._static_folder(statement, target)) if statement.overwrite else False
        return Insertion(_quoted(statement.target.parts), plan, overwrite, statement.on_conflict)

    def _written_place(self, statement: statements.Insert, column: str, columns: RowType) -> int | None:
        """Which column of the query goes into a column of the table."""
        partition = {name for name, _ in statement.partition}
        names = [each.parts[-1] for each in statement.columns]
        written = names or [name for name in columns.field_names() if name not in partition]
        return written.index(column) if column in written else None

    def _static_folder(self, statement: statements.Insert, target: CatalogObject) -> str | None:
        """The folder of the partition that PARTITION (...) names, if it names one as a whole."""
        given = dict(statement.partition)
        if not isinstance(target, DeclaredTable) or not given or set(given) != set(target.partitioned_by):
            return None
        kinds = dict(zip(_writable(target).field_names(), _writable(target).field_types(), strict=True))
        resolver = ExpressionResolver(Scope([]), self._text)
        values = [cast_to(resolver.resolve(given[name]), kinds[name]) for name in target.partitioned_by]
        columns = Evaluator(values).columns(pa.record_batch({"one": [0]}))
        batch = pa.record_batch(columns, list(target.partitioned_by))
        default = target.options.get("partition.default-name", DEFAULT_NAME)
        (found,) = FolderSplitter(batch.schema, target.partitioned_by, default)(batch)
        return found.folder

    def _partitioned(self, statement: statements.Insert, plan: Plan, columns: RowType, target: CatalogObject) -> Plan:
        """The query's columns with those that PARTITION (...) gives one value."""
        parts = target.partitioned_by if isinstance(target, DeclaredTable) else ()
        resolver = ExpressionResolver(Scope.of(plan, None), self._text)
        given = {}
        for name, value in statement.partition:
            if name not in parts:
                message = f"{statement.target} is not partitioned by {name}.{near_names(name, parts)}"
                raise SqlValidationError(message, self._text, value.span)
            given[name] = resolver.resolve(value)
        names = [column.parts[-1] for column in statement.columns]
        rest = names or [name for name in columns.field_names() if name not in given]
        if len(rest) != len(plan.names):
            message = f"{len(rest)} columns are left for the query, which has {len(plan.names)}."
            raise SqlValidationError(message, self._text, statement.query.span)
        found: dict[str, Expression] = {**given, **dict(zip(rest, plan.refs(), strict=True))}
        kinds = dict(zip(columns.field_names(), columns.field_types(), strict=True))
        order = [*names, *given] if names else columns.field_names()
        arranged = [cast_to(found[name], kinds[name]) if name in given else found[name] for name in order]
        return Project(plan, tuple(arranged), tuple(order))

    def _arranged(self, statement: statements.Insert, plan: Plan, row_type: RowType) -> Plan:
        """The columns that were named, in the table's order; NULL for the others."""
        given = [column.parts[-1] for column in statement.columns] + [name for name, _ in statement.partition]
        if len(given) != len(plan.names):
            message = f"{len(given)} columns are named, the query has {len(plan.names)}."
            raise SqlValidationError(message, self._text, statement.query.span)
        refs = dict(zip(given, plan.refs(), strict=True))
        for column in statement.columns:
            if given.count(column.parts[-1]) > 1:
                raise SqlValidationError(f"Column {column} gets two values.", self._text, column.span)
            if column.parts[-1] not in row_type.field_names():
                near = near_names(column.parts[-1], row_type.field_names())
                raise SqlValidationError(f"The table has no column {column}.{near}", self._text, column.span)
        expressions: list[Expression] = []
        for field in row_type.fields:
            ref = refs.get(field.name)
            if ref is None and not field.data_type.is_nullable:
                message = f"Column {field.name} of {statement.target} is NOT NULL and gets no value: name it, too."
                raise SqlValidationError(message, self._text, statement.target.span)
            expressions.append(ref if ref is not None else Literal(None, field.data_type))
        return Project(plan, tuple(expressions), tuple(row_type.field_names()))

    def _explained(self, statement: statements.Explain) -> TableResult:
        text = self.explain(statement)
        return TableResult(RowType.of(["result"], [_TEXT]), rows=[Row(text)], plain=text)

    # CREATE, DROP, ALTER.

    def declare(self, statement: statements.CreateTable) -> str:
        """Makes the table of a CREATE TABLE AS, without the job that writes its rows. Returns the statement that makes
        the same table, secrets and all."""
        self._table_statements.create(statement)
        path = self._catalogs.qualified(statement.name.parts)
        found = self._catalogs.find(statement.name.parts)
        assert found is not None
        return show_create(found, path, path in self._catalogs.temporary, secrets=True)

    def _create_table(self, statement: statements.CreateTable) -> TableResult:
        plan = self._table_statements.create(statement)
        if plan is None:
            return ok()
        table = self._catalogs.find(statement.name.parts)
        assert isinstance(table, DeclaredTable)
        return self._env._insert([Insertion(_quoted(statement.name.parts), filled(plan, _writable(table)))])

    def _alter_table(self, statement: statements.AlterTable) -> TableResult:
        self._table_statements.alter_table(statement)
        return ok()

    def _alter_view(self, statement: statements.AlterView) -> TableResult:
        self._table_statements.alter_view(statement)
        return ok()

    def _alter_database(self, statement: statements.AlterDatabase) -> TableResult:
        self._table_statements.alter_database(statement)
        return ok()

    def _create_view(self, statement: statements.CreateView) -> TableResult:
        view = view_of(self._env, statement.query, self._text, statement.comment)
        columns = statement.columns
        if columns:
            if len(columns) != len(view.plan.names):
                message = f"{len(columns)} names for {len(view.plan.names)} columns."
                raise SqlValidationError(message, self._text, statement.name.span)
            twice = next((name for name in columns if columns.count(name) > 1), None)
            if twice is not None:
                raise SqlValidationError(f"Two columns are called {twice}.", self._text, statement.name.span)
            view = replace(view, plan=renamed(view.plan, columns))
        self._catalogs.create(
            statement.name.parts, view, statement.temporary, statement.if_not_exists, statement.or_replace
        )
        return ok()

    def _create_function(self, statement: statements.CreateFunction) -> TableResult:
        functions, function = self._env._functions, python_function(statement, self._text)
        if statement.system:
            functions.create_system(statement.name.parts[-1], function, statement.if_not_exists)
        else:
            functions.create(statement.name.parts, function, statement.temporary, statement.if_not_exists)
        return ok()

    def _create_database(self, statement: statements.CreateDatabase) -> TableResult:
        parts = statement.name.parts
        catalog = parts[0] if len(parts) == 2 else self._catalogs.current_catalog
        if catalog not in self._catalogs.catalogs:
            raise CatalogError(f"There is no catalog {catalog}.{near_names(catalog, self._catalogs.catalogs)}")
        databases = self._catalogs.catalogs[catalog]
        if parts[-1] in databases:
            if statement.if_not_exists:
                return ok()
            raise CatalogError(f"There is a database {parts[-1]} already.")
        databases[parts[-1]] = Database({}, statement.comment, dict(statement.options))
        return ok()

    def _create_catalog(self, statement: statements.CreateCatalog) -> TableResult:
        made = CatalogDefinition(dict(statement.options), statement.comment)
        create_catalog(self._catalogs, statement.name.parts[-1], made, statement.if_not_exists)
        return ok()

    def _alter_catalog(self, statement: statements.AlterCatalog) -> TableResult:
        alter_catalog(self._catalogs, statement)
        return ok()

    def _drop(self, statement: statements.Drop) -> TableResult:
        parts, kind = statement.name.parts, statement.kind
        if kind in ("TABLE", "VIEW"):
            temporary = True if statement.temporary else None
            self._catalogs.drop(parts, kind == "VIEW", temporary, statement.if_exists)
        elif kind == "DATABASE":
            self._drop_database(statement)
        elif kind == "CATALOG":
            if parts[-1] not in self._catalogs.catalogs and not statement.if_exists:
                raise CatalogError(f"There is no catalog {parts[-1]}.")
            if parts[-1] == self._catalogs.current_catalog:
                raise CatalogError(f"{parts[-1]} is the current catalog.")
            self._catalogs.catalogs.pop(parts[-1], None)
            self._catalogs.definitions.pop(parts[-1], None)
        elif kind == "FUNCTION":
            functions = self._env._functions
            if statement.system:
                functions.drop_system(parts[-1], statement.if_exists)
            else:
                functions.drop(parts, statement.temporary, statement.if_exists)
        return ok()

    def _drop_database(self, statement: statements.Drop) -> None:
        parts = statement.name.parts
        catalog = parts[0] if len(parts) == 2 else self._catalogs.current_catalog
        databases = self._catalogs.catalogs.get(catalog, {})
        if parts[-1] not in databases:
            if statement.if_exists:
                return
            raise CatalogError(f"There is no database {parts[-1]}.{near_names(parts[-1], databases)}")
        if (catalog, parts[-1]) == (self._catalogs.current_catalog, self._catalogs.current_database):
            raise CatalogError(f"{parts[-1]} is the current database.")
        if databases[parts[-1]].tables and not statement.cascade:
            raise CatalogError(
                f"The database {parts[-1]} has tables: DROP DATABASE {parts[-1]} CASCADE drops them, too."
            )
        del databases[parts[-1]]

    # DESCRIBE, SHOW, USE, SET.

    def _describe(self, statement: statements.Describe) -> TableResult:
        if statement.kind == "DATABASE":
            return self._table_statements.describe_database(statement)
        if statement.kind == "CATALOG":
            return table_of(["info name", "info value"], described_catalog(self._catalogs, statement))
        if statement.kind == "FUNCTION":
            return table_of(["info name", "info value"], described_function(statement, self._env._functions))
        found = self._catalogs.find(statement.name.parts)
        if found is None:
            near = near_names(statement.name.parts[-1], self._catalogs.names())
            raise CatalogError(f"There is no table {statement.name}.{near}")
        return described(found, self._env._streaming)

    def _show(self, statement: statements.Show) -> TableResult:
        kind = statement.kind
        if kind in ("CREATE TABLE", "CREATE VIEW"):
            return self._show_create(statement)
        if kind == "CREATE CATALOG":
            return listed("result", [shown_catalog(self._catalogs, statement)])
        if kind == "FULL MODULES":
            rows = [Row(name, True) for name in MODULES]
            return TableResult(RowType.of(["module name", "used"], [_TEXT, BooleanType()]), rows=rows)
        single = {
            "CURRENT CATALOG": ("current catalog name", self._catalogs.current_catalog),
            "CURRENT DATABASE": ("current database name", self._catalogs.current_database),
        }.get(kind)
        if single is not None:
            return listed(single[0], [single[1]])
        parts = statement.name.parts if statement.name is not None else ()
        lists: dict[str, tuple[str, Callable[[], Sequence[str]]]] = {
            "CATALOGS": ("catalog name", lambda: sorted(self._catalogs.catalogs)),
            "DATABASES": ("database name", lambda: self._databases(parts)),
            "TABLES": ("table name", lambda: self._tables(parts, views=None)),
            "VIEWS": ("view name", lambda: self._tables(parts, views=True)),
            "FUNCTIONS": ("function name", self._env.list_functions),
            "USER FUNCTIONS": ("function name", self._env.list_user_defined_functions),
            "MODULES": ("module name", lambda: ["core"]),
            "PARTITIONS": ("partition name", lambda: self._table_statements.partitions(statement)),
            "JARS": ("jars", list),
            "MODELS": ("model name", list),
            "MATERIALIZED TABLES": ("materialized table name", list),
        }
        if kind == "COLUMNS":
            if statement.name is None:
                raise SqlValidationError("SHOW COLUMNS FROM which table?", self._text, statement.span)
            return self._table_statements.show_columns(statement)
        name, values = lists[kind]
        return listed(name, matching(values(), statement.like, statement.negated, statement.ignore_case))

    def _databases(self, parts: tuple[str, ...]) -> list[str]:
        catalog = parts[0] if parts else self._catalogs.current_catalog
        if catalog not in self._catalogs.catalogs:
            raise CatalogError(f"There is no catalog {catalog}.{near_names(catalog, self._catalogs.catalogs)}")
        return sorted(self._catalogs.catalogs[catalog])

    def _tables(self, parts: tuple[str, ...], views: bool | None) -> list[str]:
        catalog = parts[0] if len(parts) == 2 else self._catalogs.current_catalog
        database = parts[-1] if parts else self._catalogs.current_database
        self._catalogs.database(catalog, database)
        entries = self._catalogs.entries(catalog, database)
        return sorted(name for name, each in entries if views is None or isinstance(each, View) == views)

    def _show_create(self, statement: statements.Show) -> TableResult:
        assert statement.name is not None
        found = self._catalogs.find(statement.name.parts)
        if found is None:
            raise CatalogError(f"There is no {statement.kind.split()[1].lower()} {statement.name}.")
        if isinstance(found, View) != (statement.kind == "CREATE VIEW"):
            kind = "VIEW" if isinstance(found, View) else "TABLE"
            message = f"{statement.name} is a {kind.lower()}: SHOW CREATE {kind} shows it."
            raise SqlValidationError(message, self._text, statement.name.span)
        path = self._catalogs.qualified(statement.name.parts)
        temporary = path in self._catalogs.temporary
        return listed("result", [show_create(found, path, temporary)])

    def _use_modules(self, statement: statements.UseModules) -> TableResult:
        check_modules(statement, self._text)
        return ok()

    def _alter_function(self, statement: statements.AlterFunction) -> TableResult:
        alter_function(statement, self._env._functions, self._text)
        return ok()

    def _use(self, statement: statements.Use) -> TableResult:
        if statement.kind == "CATALOG":
            self._catalogs.use_catalog(statement.name.parts[-1])
        else:
            self._catalogs.use_database(statement.name.parts)
        return ok()

    def _set(self, statement: statements.SetOption) -> TableResult:
        configuration = self._env.get_config().get_configuration()
        if statement.key is None:
            rows = [Row(key, value) for key, value in sorted(shown_options(configuration.to_dict()).items())]
            return TableResult(RowType.of(["key", "value"], [_TEXT, _TEXT]), rows=rows)
        before = configuration.get_string(MODE, "")
        configuration.set_string(statement.key, statement.value or "")
        if self._env._in_session:
            try:
                self._env._check_settings()
            except ConfigurationError:
                configuration.set_string(MODE, before) if before else configuration.remove_config(MODE)
                raise
        return ok()

    def _reset(self, statement: statements.Reset) -> TableResult:
        configuration = self._env.get_config().get_configuration()
        for key in [statement.key] if statement.key is not None else sorted(configuration.key_set()):
            configuration.remove_config(key)
        if self._env._in_session:
            self._env._check_settings()
        return ok()

    def _refused(self, statement: statements.Unsupported) -> TableResult:
        raise NotSupportedError(f"Not supported: {statement.what}: {statement.why}", self._text, statement.span)


def _name_span(statement: statements.Statement) -> Any:
    name = getattr(statement, "name", None) or getattr(statement, "target", None)
    return name.span if isinstance(name, Node) else statement.span


def _quoted(parts: tuple[str, ...]) -> str:
    return ".".join(f"`{part}`" for part in parts)


def _writable(target: CatalogObject) -> RowType:
    """The columns that rows for a table have."""
    if not isinstance(target, DeclaredTable):
        return target.row_type
    return RowType.of([each.name for each in target.writable], [each.type for each in target.writable])


def filled(plan: Plan, row_type: RowType) -> Plan:
    """The columns of a table out of a plan; NULL for those that it does not have."""
    refs = dict(zip(plan.names, plan.refs(), strict=True))
    columns = tuple(refs.get(each.name) or Literal(None, each.data_type) for each in row_type.fields)
    return Project(plan, columns, tuple(row_type.field_names()))


_HANDLERS: dict[type, Callable[[StatementExecutor, Any], TableResult]] = {
    statements.QueryStatement: StatementExecutor._query,
    statements.Insert: StatementExecutor._insert,
    statements.StatementSetStatement: StatementExecutor._statement_set,
    statements.Explain: StatementExecutor._explained,
    statements.CreateTable: StatementExecutor._create_table,
    statements.CreateView: StatementExecutor._create_view,
    statements.CreateDatabase: StatementExecutor._create_database,
    statements.CreateCatalog: StatementExecutor._create_catalog,
    statements.CreateFunction: StatementExecutor._create_function,
    statements.Drop: StatementExecutor._drop,
    statements.AlterTable: StatementExecutor._alter_table,
    statements.AlterView: StatementExecutor._alter_view,
    statements.AlterDatabase: StatementExecutor._alter_database,
    statements.AlterCatalog: StatementExecutor._alter_catalog,
    statements.AlterFunction: StatementExecutor._alter_function,
    statements.Describe: StatementExecutor._describe,
    statements.Show: StatementExecutor._show,
    statements.Use: StatementExecutor._use,
    statements.UseModules: StatementExecutor._use_modules,
    statements.SetOption: StatementExecutor._set,
    statements.Reset: StatementExecutor._reset,
    statements.Unsupported: StatementExecutor._refused,
}
