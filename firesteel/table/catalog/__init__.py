"""Catalogs in memory: tables, views and databases by name.

PyFlink's names for programs (``Catalog``, ``ObjectPath``, ``ResolvedSchema`` and so on) are loaded when they are asked
for: what is below needs nothing of them.
"""

from __future__ import annotations

import importlib
from typing import Any

from firesteel.table.catalog.exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)
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
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogError",
    "CatalogException",
    "CatalogManager",
    "CatalogObject",
    "CatalogPartitionSpec",
    "Column",
    "ColumnDefinition",
    "ComputedColumn",
    "Constraint",
    "Database",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "DeclaredTable",
    "InlineTable",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
    "StreamTable",
    "TableAlreadyExistException",
    "TableNotExistException",
    "TableNotPartitionedException",
    "UniqueConstraint",
    "View",
    "WatermarkSpec",
]

_PROGRAMS = {
    **dict.fromkeys(
        (
            "Catalog",
            "CatalogBaseTable",
            "CatalogDatabase",
            "CatalogDescriptor",
            "CatalogPartitionSpec",
            "ObjectIdentifier",
            "ObjectPath",
        ),
        "firesteel.table.catalog_api",
    ),
    **dict.fromkeys(
        (
            "Column",
            "ComputedColumn",
            "Constraint",
            "MetadataColumn",
            "PhysicalColumn",
            "ResolvedSchema",
            "UniqueConstraint",
            "WatermarkSpec",
        ),
        "firesteel.table.resolved_schema",
    ),
}


def __getattr__(name: str) -> Any:
    place = _PROGRAMS.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)
