"""The tree of statements that are no queries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import Name, Node, Query
from firesteel.table.types.data_types import DataType

__all__ = [
    "AlterCatalog",
    "AlterDatabase",
    "AlterFunction",
    "AlterTable",
    "AlterView",
    "Column",
    "CreateCatalog",
    "CreateDatabase",
    "CreateFunction",
    "CreateTable",
    "CreateView",
    "Describe",
    "Drop",
    "Explain",
    "Insert",
    "LikeClause",
    "OnConflict",
    "PrimaryKey",
    "QueryStatement",
    "Reset",
    "SetOption",
    "Show",
    "Statement",
    "StatementSetStatement",
    "Unsupported",
    "Use",
    "UseModules",
    "Watermark",
]

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Statement(Node):
    """The root of statements."""


@dataclass(frozen=True)
class QueryStatement(Statement):
    """A query by itself."""

    query: Query


@dataclass(frozen=True)
class Column(Node):
    """A column of a table: physical, computed (``AS expression``) or metadata (``METADATA FROM 'key'``)."""

    name: str
    type: DataType | None
    computed: Node | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_metadata(self) -> bool:
        """Whether the connector gives it."""
        return self.metadata is not None


@dataclass(frozen=True)
class Watermark(Node):
    """``WATERMARK FOR column AS expression``."""

    column: Name
    expression: Node


@dataclass(frozen=True)
class PrimaryKey(Node):
    """``PRIMARY KEY (a, b) NOT ENFORCED``."""

    columns: tuple[str, ...]
    enforced: bool
    name: str | None = None


@dataclass(frozen=True)
class LikeClause(Node):
    """``LIKE t (INCLUDING ALL)``."""

    table: Name
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE TABLE``."""

    name: Name
    columns: tuple[Column, ...]
    watermarks: tuple[Watermark, ...]
    primary_key: PrimaryKey | None
    comment: str | None
    partitioned_by: tuple[str, ...]
    options: Options
    like: LikeClause | None
    query: Query | None
    temporary: bool
    if_not_exists: bool
    partition_span: Span | None = None
    column_names: tuple[Name, ...] = ()
    """The columns of the query in the order of the table, where they stand alone."""


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE VIEW name AS query``; ``text`` is the query as it was written."""

    name: Name
    columns: tuple[str, ...]
    comment: str | None
    query: Query
    text: str
    temporary: bool
    if_not_exists: bool
    or_replace: bool


@dataclass(frozen=True)
class CreateFunction(Statement):
    """``CREATE FUNCTION name AS 'module.function' LANGUAGE PYTHON``."""

    name: Name
    identifier: str
    language: str
    temporary: bool
    system: bool
    if_not_exists: bool


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """``CREATE DATABASE``."""

    name: Name
    comment: str | None
    options: Options
    if_not_exists: bool


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """``CREATE CATALOG``."""

    name: Name
    options: Options
    if_not_exists: bool
    comment: str | None = None


@dataclass(frozen=True)
class AlterFunction(Statement):
    """``ALTER FUNCTION name AS 'module.function' LANGUAGE PYTHON``; what stands behind ALTER is a definition."""

    changed: CreateFunction
    if_exists: bool


@dataclass(frozen=True)
class Drop(Statement):
    """``DROP TABLE``; ``kind`` is TABLE, VIEW, FUNCTION, DATABASE or CATALOG."""

    kind: str
    name: Name
    temporary: bool
    system: bool
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class AlterTable(Statement):
    """``ALTER TABLE``; ``action`` is RENAME, RENAME COLUMN, SET, RESET, ADD, MODIFY or DROP."""

    name: Name
    if_exists: bool
    action: str
    new_name: Name | None = None
    options: Options = ()
    keys: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    watermark: Watermark | None = None
    primary_key: PrimaryKey | None = None
    positions: tuple[str | None, ...] = ()
    """For each column: None, the column that it comes behind, or an empty text for FIRST."""


@dataclass(frozen=True)
class AlterDatabase(Statement):
    """``ALTER DATABASE d SET ('key' = 'value')``."""

    name: Name
    options: Options


@dataclass(frozen=True)
class AlterCatalog(Statement):
    """``ALTER CATALOG c``: SET has options, RESET their keys, COMMENT a comment."""

    name: Name
    options: Options = ()
    keys: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class AlterView(Statement):
    """``ALTER VIEW``: another name, or another query."""

    name: Name
    new_name: Name | None
    query: Query | None
    text: str


class OnConflict(Enum):
    """What becomes of several rows with the same primary key: ``ON CONFLICT DO ...``."""

    ERROR = "ERROR"
    """The job fails."""
    NOTHING = "NOTHING"
    """The first one stays."""
    DEDUPLICATE = "DEDUPLICATE"
    """The last one takes its place, and gives way to others when it is taken back."""


@dataclass(frozen=True)
class Insert(Statement):
    """``INSERT INTO``."""

    target: Name
    query: Query
    overwrite: bool
    partition: tuple[tuple[str, Node], ...]
    columns: tuple[Name, ...]
    hints: tuple[Node, ...] = ()
    on_conflict: OnConflict | None = None


@dataclass(frozen=True)
class StatementSetStatement(Statement):
    """``EXECUTE STATEMENT SET BEGIN ... END``."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN PLAN FOR``."""

    details: tuple[str, ...]
    statement: Statement


@dataclass(frozen=True)
class Describe(Statement):
    """``DESCRIBE t``; ``kind`` is TABLE, DATABASE, CATALOG or FUNCTION."""

    name: Name
    extended: bool
    kind: str = "TABLE"


@dataclass(frozen=True)
class Show(Statement):
    """``SHOW TABLES FROM d LIKE 'a%'``; ``kind`` is TABLES, VIEWS, CREATE TABLE and so on."""

    kind: str
    name: Name | None = None
    like: str | None = None
    negated: bool = False
    partition: tuple[tuple[str, Node], ...] = ()
    """For PARTITIONS: values that those that are shown have."""
    ignore_case: bool = False
    """ILIKE."""


@dataclass(frozen=True)
class Use(Statement):
    """``USE d``, ``USE CATALOG c``."""

    kind: str
    name: Name


@dataclass(frozen=True)
class UseModules(Statement):
    """``USE MODULES core``."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class SetOption(Statement):
    """``SET 'key' = 'value'``; without a key all settings are listed."""

    key: str | None
    value: str | None


@dataclass(frozen=True)
class Reset(Statement):
    """``RESET 'key'``."""

    key: str | None


@dataclass(frozen=True)
class Unsupported(Statement):
    """A statement of Flink that is known and not run, with what it begins with and why it is not there."""

    what: str
    why: str
