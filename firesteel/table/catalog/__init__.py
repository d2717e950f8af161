"""Catalogs in memory: tables, views and databases by name."""

from firesteel.table.catalog.manager import CatalogError, CatalogManager, Database
from firesteel.table.catalog.tables import (
    CatalogObject,
    ColumnDefinition,
    DeclaredTable,
    InlineTable,
    StreamTable,
    View,
)

__all__ = [
    "CatalogError",
    "CatalogManager",
    "CatalogObject",
    "ColumnDefinition",
    "Database",
    "DeclaredTable",
    "InlineTable",
    "StreamTable",
    "View",
]
