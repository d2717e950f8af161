"""Catalogs, databases and what is in them, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from firesteel.errors import FailureKind, ProgramError
from firesteel.table.catalog.tables import CatalogObject, View
from firesteel.table.sql.errors import near_names

__all__ = ["CatalogDefinition", "CatalogError", "CatalogManager", "Database"]


class CatalogError(ProgramError):
    """A name that is taken, or that nothing has."""

    kind = FailureKind.PERMANENT


@dataclass
class Database:
    """Tables and views by name."""

    tables: dict[str, CatalogObject] = field(default_factory=dict)
    comment: str | None = None
    options: dict[str, str] = field(default_factory=dict)


Path = tuple[str, str, str]


@dataclass(frozen=True)
class CatalogDefinition:
    """A catalog as it was declared."""

    options: Mapping[str, str]
    comment: str | None = None


class CatalogManager:
    """Everything that has a name, and which catalog and database are current.

    >>> names = CatalogManager("default_catalog", "default_database")
    >>> names.qualified(("t",))
    ('default_catalog', 'default_database', 't')
    """

    def __init__(self, catalog: str, database: str) -> None:
        self.catalogs: dict[str, dict[str, Database]] = {catalog: {database: Database()}}
        self.definitions: dict[str, CatalogDefinition] = {}
        """What CREATE CATALOG said of those that it made."""
        self.temporary: dict[Path, CatalogObject] = {}
        self.current_catalog = catalog
        self.current_database = database

    def qualified(self, parts: tuple[str, ...]) -> Path:
        """The full path of a name."""
        if len(parts) > 3:
            raise CatalogError(
                f"{'.'.join(parts)} has {len(parts)} parts: a catalog, a database and a name are the most."
            )
        head = (self.current_catalog, self.current_database)[: 3 - len(parts)]
        catalog, database, name = (*head, *parts)
        return catalog, database, name

    def find(self, parts: tuple[str, ...]) -> CatalogObject | None:
        """What has that name. A temporary table hides another one of its name."""
        if len(parts) > 3:
            return None
        path = self.qualified(parts)
        found = self.temporary.get(path)
        if found is not None:
            return found
        database = self.catalogs.get(path[0], {}).get(path[1])
        return database.tables.get(path[2]) if database is not None else None

    def database(self, catalog: str, name: str) -> Database:
        """A database, or an error that offers others."""
        if catalog not in self.catalogs:
            raise CatalogError(f"There is no catalog {catalog}.{near_names(catalog, self.catalogs)}")
        databases = self.catalogs[catalog]
        if name not in databases:
            raise CatalogError(f"There is no database {name} in catalog {catalog}.{near_names(name, databases)}")
        return databases[name]

    def create(
        self,
        parts: tuple[str, ...],
        created: CatalogObject,
        temporary: bool,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> None:
        """Puts something under a name that is not taken."""
        path = self.qualified(parts)
        what = "view" if isinstance(created, View) else "table"
        if temporary:
            place: dict[Path, CatalogObject] = self.temporary
            taken = path in place
        else:
            taken = path[2] in self.database(path[0], path[1]).tables
        if taken and not replace:
            if if_not_exists:
                return
            kind = "temporary " if temporary else ""
            raise CatalogError(f"There is a {kind}{what} {'.'.join(path)} already.")
        if temporary:
            self.temporary[path] = created
        else:
            self.database(path[0], path[1]).tables[path[2]] = created

    def drop(self, parts: tuple[str, ...], view: bool, temporary: bool | None, if_exists: bool) -> bool:
        """Removes a table or view. ``temporary`` None means whichever there is; then a temporary one is refused."""
        path = self.qualified(parts)
        what = "view" if view else "table"
        hidden = self.temporary.get(path)
        if temporary:
            if hidden is not None and isinstance(hidden, View) == view:
                del self.temporary[path]
                return True
        else:
            if hidden is not None and isinstance(hidden, View) == view:
                raise CatalogError(f"{'.'.join(path)} is temporary: DROP TEMPORARY {what.upper()} drops it.")
            tables = self.database(path[0], path[1]).tables if path[0] in self.catalogs else {}
            found = tables.get(path[2])
            if found is not None and isinstance(found, View) == view:
                del tables[path[2]]
                return True
        if if_exists:
            return False
        raise CatalogError(f"There is no {'temporary ' if temporary else ''}{what} {'.'.join(path)}.")

    def names(self, catalog: str | None = None, database: str | None = None) -> list[str]:
        """Tables and views of a database, temporary ones too."""
        return sorted(name for name, _ in self.entries(catalog, database))

    def entries(self, catalog: str | None = None, database: str | None = None) -> Iterator[tuple[str, CatalogObject]]:
        """Names and what they stand for."""
        catalog, database = catalog or self.current_catalog, database or self.current_database
        own = dict(self.catalogs.get(catalog, {}).get(database, Database()).tables)
        own.update({path[2]: each for path, each in self.temporary.items() if path[:2] == (catalog, database)})
        yield from own.items()

    def use_catalog(self, name: str) -> None:
        """Makes a catalog current, with its default database."""
        if name not in self.catalogs:
            raise CatalogError(f"There is no catalog {name}.{near_names(name, self.catalogs)}")
        databases = self.catalogs[name]
        first = self.definitions[name].options.get("default-database", "default") if name in self.definitions else None
        self.current_catalog = name
        self.current_database = first if first in databases else next(iter(databases), "default")

    def use_database(self, parts: tuple[str, ...]) -> None:
        """Makes a database current."""
        catalog, name = parts if len(parts) == 2 else (self.current_catalog, parts[0])
        self.database(catalog, name)
        self.current_catalog, self.current_database = catalog, name
