"""Catalogs as a program sees them: databases and tables by their paths. ``firesteel.table.catalog`` has these names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import total_ordering

from firesteel.errors import ProgramError
from firesteel.table.catalog.exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)
from firesteel.table.catalog.manager import CatalogManager, Database
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable, View
from firesteel.table.declarations import shown_options
from firesteel.table.schema import Schema
from firesteel.table.table_drafts import draft_of, drafted
from firesteel.table.table_statements import partition_folders

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogPartitionSpec",
    "ObjectIdentifier",
    "ObjectPath",
]


@total_ordering
@dataclass(frozen=True)
class ObjectPath:
    """A database and something in it.

    >>> ObjectPath.from_string("shop.orders").get_object_name()
    'orders'
    """

    database_name: str
    object_name: str

    def __str__(self) -> str:
        return f"{self.database_name}.{self.object_name}"

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other) if isinstance(other, ObjectPath) else NotImplemented

    def compare_to(self, other: ObjectPath) -> int:
        """Below zero, zero or above it."""
        return (str(self) > str(other)) - (str(self) < str(other))

    def get_database_name(self) -> str:
        """The database."""
        return self.database_name

    def get_object_name(self) -> str:
        """The name in it."""
        return self.object_name

    def get_full_name(self) -> str:
        """Both, with a dot between them."""
        return str(self)

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """A path as it is written."""
        database, dot, name = full_name.partition(".")
        if not dot or not database or not name or "." in name:
            raise ProgramError(f"A path is a database and a name: 'shop.orders', got {full_name!r}.")
        return ObjectPath(database, name)


@dataclass(frozen=True)
class ObjectIdentifier:
    """A catalog, a database and something in it."""

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """The three names."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """The catalog."""
        return self.catalog_name

    def get_database_name(self) -> str:
        """The database."""
        return self.database_name

    def get_object_name(self) -> str:
        """The name in it."""
        return self.object_name

    def to_object_path(self) -> ObjectPath:
        """Without the catalog."""
        return ObjectPath(self.database_name, self.object_name)

    def to_list(self) -> list[str]:
        """The three names."""
        return [self.catalog_name, self.database_name, self.object_name]

    def as_serializable_string(self) -> str:
        """As SQL has it."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in self.to_list())

    def as_summary_string(self) -> str:
        """For people."""
        return ".".join(self.to_list())

    def __str__(self) -> str:
        return self.as_serializable_string()


@dataclass(frozen=True)
class CatalogPartitionSpec:
    """The values of a partition's columns."""

    partition_spec: Mapping[str, str]

    def get_partition_spec(self) -> dict[str, str]:
        """By column."""
        return dict(self.partition_spec)

    def __str__(self) -> str:
        return f"CatalogPartitionSpec{{{dict(self.partition_spec)}}}"

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.partition_spec.items())))


@dataclass(frozen=True)
class CatalogDatabase:
    """What is said about a database."""

    properties: Mapping[str, str] = field(repr=False)
    comment: str | None = None

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """Properties and a comment."""
        return CatalogDatabase(dict(properties), comment)

    def get_properties(self) -> dict[str, str]:
        """By name."""
        return dict(self.properties)

    def get_comment(self) -> str:
        """What is said about it."""
        return self.comment or ""

    def copy(self) -> CatalogDatabase:
        """Another one that is equal."""
        return replace(self, properties=dict(self.properties))

    def get_description(self) -> str | None:
        """The comment."""
        return self.comment

    def get_detailed_description(self) -> str | None:
        """The comment."""
        return self.comment


class CatalogBaseTable:
    """A table or view of a catalog.

    >>> schema = Schema.new_builder().column("id", "BIGINT").build()
    >>> CatalogBaseTable.create_table(schema, properties={"connector": "datagen"}).get_options()
    {'connector': 'datagen'}
    """

    def __init__(self, table: CatalogObject) -> None:
        self._table = table

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """A table of a connector."""
        draft = replace(
            schema._draft, partitioned_by=tuple(partition_keys), options=dict(properties or {}), comment=comment
        )
        return CatalogBaseTable(drafted(draft, "", "the table"))

    def get_options(self) -> dict[str, str]:
        """Of the connector."""
        return dict(self._table.options) if isinstance(self._table, DeclaredTable) else {}

    def get_unresolved_schema(self) -> Schema:
        """Its columns."""
        if isinstance(self._table, DeclaredTable):
            return Schema(replace(draft_of(self._table), options={}, partitioned_by=(), comment=None))
        row = self._table.row_type
        return Schema.new_builder().from_fields(row.field_names(), row.field_types()).build()

    def get_comment(self) -> str:
        """What is said about it."""
        return getattr(self._table, "comment", None) or ""

    def copy(self) -> CatalogBaseTable:
        """Another one that is equal."""
        return CatalogBaseTable(self._table)

    def get_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def __repr__(self) -> str:
        return f"CatalogBaseTable({self.get_unresolved_schema()}, {shown_options(self.get_options())})"


@dataclass(frozen=True)
class CatalogDescriptor:
    """A catalog to be made."""

    catalog_name: str
    configuration: object
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: object, comment: str | None = None) -> CatalogDescriptor:
        """A name and its settings: ``type`` is ``generic_in_memory``."""
        return CatalogDescriptor(catalog_name, configuration, comment)


class Catalog:
    """A catalog of an environment, in memory. ``env.get_catalog(name)`` gives it."""

    def __init__(self, manager: CatalogManager, name: str) -> None:
        self._manager, self._name = manager, name

    @property
    def _databases(self) -> dict[str, Database]:
        if self._name not in self._manager.catalogs:
            raise CatalogException(f"There is no catalog {self._name} any more.")
        return self._manager.catalogs[self._name]

    # Databases

    def get_default_database(self) -> str:
        """The database that is current when the catalog is."""
        return next(iter(self._databases), "default")

    def list_databases(self) -> list[str]:
        """Their names."""
        return sorted(self._databases)

    def _database(self, name: str) -> Database:
        if name not in self._databases:
            raise DatabaseNotExistException(f"There is no database {name} in catalog {self._name}.")
        return self._databases[name]

    def get_database(self, database_name: str) -> CatalogDatabase:
        """What is said about a database."""
        found = self._database(database_name)
        return CatalogDatabase(dict(found.options), found.comment)

    def database_exists(self, database_name: str) -> bool:
        """Whether there is one."""
        return database_name in self._databases

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Makes a database."""
        if name in self._databases:
            if ignore_if_exists:
                return
            raise DatabaseAlreadyExistException(f"There is a database {name} in catalog {self._name} already.")
        self._databases[name] = Database({}, database.comment, dict(database.properties))

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Forgets a database that is empty."""
        if name not in self._databases and ignore_if_exists:
            return
        if self._database(name).tables:
            raise DatabaseNotEmptyException(f"The database {name} in catalog {self._name} has tables.")
        del self._databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Says something else about a database."""
        if name not in self._databases and ignore_if_not_exists:
            return
        found = self._database(name)
        found.options, found.comment = dict(new_database.properties), new_database.comment

    # Tables

    def list_tables(self, database_name: str) -> list[str]:
        """Tables and views of a database."""
        return sorted(self._database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        """Views of a database."""
        return sorted(name for name, each in self._database(database_name).tables.items() if isinstance(each, View))

    def _found(self, path: ObjectPath) -> CatalogObject:
        database = self._databases.get(path.database_name)
        found = None if database is None else database.tables.get(path.object_name)
        if found is None:
            raise TableNotExistException(f"There is no table or view {path} in catalog {self._name}.")
        return found

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """A table or view."""
        return CatalogBaseTable(self._found(table_path))

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is one."""
        database = self._databases.get(table_path.database_name)
        return database is not None and table_path.object_name in database.tables

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Puts a table under a path."""
        tables = self._database(table_path.database_name).tables
        if table_path.object_name in tables:
            if ignore_if_exists:
                return
            raise TableAlreadyExistException(f"There is a table or view {table_path} in catalog {self._name} already.")
        tables[table_path.object_name] = table._table

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Puts another table under a path."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        before = self._found(table_path)
        if isinstance(before, View) != isinstance(new_table._table, View):
            raise CatalogException(f"{table_path}: a table cannot become a view, nor a view a table.")
        self._database(table_path.database_name).tables[table_path.object_name] = new_table._table

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Forgets a table or view."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        self._found(table_path)
        del self._database(table_path.database_name).tables[table_path.object_name]

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Gives a table or view another name."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        found = self._found(table_path)
        after = ObjectPath(table_path.database_name, new_table_name)
        if self.table_exists(after):
            raise TableAlreadyExistException(f"There is a table or view {after} in catalog {self._name} already.")
        tables = self._database(table_path.database_name).tables
        del tables[table_path.object_name]
        tables[new_table_name] = found

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Whether a table of files has a partition."""
        return partition_spec in self.list_partitions(table_path)

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """The partitions that a table of files has."""
        table = self._found(table_path)
        if not isinstance(table, DeclaredTable) or not table.partitioned_by:
            raise TableNotPartitionedException(f"{table_path} is not partitioned.")
        wanted = {} if partition_spec is None else partition_spec.get_partition_spec()
        found = [dict(part.split("=", 1) for part in folder.split("/")) for folder in partition_folders(table)]
        return [CatalogPartitionSpec(each) for each in found if wanted.items() <= each.items()]
