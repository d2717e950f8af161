"""Tables, databases and catalogs of a table environment by name: the part of
:class:`~firesteel.table.TableEnvironment` about them."""

from __future__ import annotations

from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.errors import ProgramError, short_repr
from firesteel.table.catalog.manager import CatalogDefinition, CatalogError, CatalogManager
from firesteel.table.catalog.tables import View
from firesteel.table.catalog_api import Catalog, CatalogDescriptor, ObjectIdentifier
from firesteel.table.catalog_statements import create_catalog
from firesteel.table.sql.cursor import Cursor

__all__ = ["CatalogNames", "path_parts"]


def path_parts(path: str) -> tuple[str, ...]:
    """The names of a path.

    >>> path_parts("shop.`my orders`")
    ('shop', 'my orders')
    """
    return Cursor(path).name().parts


class CatalogNames:
    """Lists and forgets what has a name, and says which catalog and database names belong to."""

    _catalogs: CatalogManager

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forgets a temporary view; False if there is none."""
        return self._catalogs.drop(path_parts(view_path), view=True, temporary=True, if_exists=True)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forgets a temporary table; False if there is none."""
        return self._catalogs.drop(path_parts(table_path), view=False, temporary=True, if_exists=True)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forgets a view of the catalog."""
        return self._catalogs.drop(path_parts(view_path), view=True, temporary=None, if_exists=ignore_if_not_exists)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forgets a table of the catalog."""
        return self._catalogs.drop(path_parts(table_path), view=False, temporary=None, if_exists=ignore_if_not_exists)

    def list_tables(self) -> list[str]:
        """Tables and views of the current database."""
        return self._catalogs.names()

    def list_views(self) -> list[str]:
        """Views of the current database."""
        return sorted(name for name, each in self._catalogs.entries() if isinstance(each, View))

    def list_temporary_views(self) -> list[str]:
        """Temporary views."""
        return sorted(path[2] for path, each in self._catalogs.temporary.items() if isinstance(each, View))

    def list_temporary_tables(self) -> list[str]:
        """Temporary tables and views."""
        return sorted(path[2] for path in self._catalogs.temporary)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """A catalog, to look at and to change; None if there is none of that name.

        >>> from firesteel.table import EnvironmentSettings, TableEnvironment
        >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> env.get_catalog("default_catalog").list_databases()
        ['default_database']
        """
        return Catalog(self._catalogs, catalog_name) if catalog_name in self._catalogs.catalogs else None

    def _identifier(self, path: str) -> ObjectIdentifier:
        return ObjectIdentifier(*self._catalogs.qualified(path_parts(path)))

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Gives a catalog of an environment a name in this one. What is in it is shared."""
        if catalog_name in self._catalogs.catalogs:
            raise CatalogError(f"There is a catalog {catalog_name} already.")
        self._catalogs.catalogs[catalog_name] = catalog._databases

    def list_modules(self) -> list[str]:
        """Where functions come from: the module ``core``."""
        return ["core"]

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """A catalog in memory."""
        if not isinstance(catalog_descriptor, CatalogDescriptor):
            raise ProgramError(f"create_catalog() takes a CatalogDescriptor, got {short_repr(catalog_descriptor, 60)}.")
        given: Any = catalog_descriptor.configuration
        options = dict(given.to_dict() if isinstance(given, Configuration) else given)
        create_catalog(self._catalogs, catalog_name, CatalogDefinition(options, catalog_descriptor.comment))

    def list_catalogs(self) -> list[str]:
        """All catalogs."""
        return sorted(self._catalogs.catalogs)

    def list_databases(self) -> list[str]:
        """Databases of the current catalog."""
        return sorted(self._catalogs.catalogs[self._catalogs.current_catalog])

    def get_current_catalog(self) -> str:
        """The catalog that names belong to."""
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        """The database that names belong to."""
        return self._catalogs.current_database

    def use_catalog(self, catalog_name: str) -> None:
        """Makes a catalog current."""
        self._catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        """Makes a database current."""
        self._catalogs.use_database((database_name,))
