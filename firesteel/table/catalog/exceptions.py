"""What goes wrong with names, as PyFlink calls it."""

from __future__ import annotations

from firesteel.errors import FailureKind
from firesteel.table.catalog.manager import CatalogError

__all__ = [
    "CatalogException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "TableAlreadyExistException",
    "TableNotExistException",
    "TableNotPartitionedException",
]


class CatalogException(CatalogError):
    """The root."""

    kind = FailureKind.PERMANENT


class DatabaseAlreadyExistException(CatalogException):
    """A database of that name is there."""

    kind = FailureKind.PERMANENT


class DatabaseNotEmptyException(CatalogException):
    """A database has tables."""

    kind = FailureKind.PERMANENT


class DatabaseNotExistException(CatalogException):
    """No database has that name."""

    kind = FailureKind.PERMANENT


class TableAlreadyExistException(CatalogException):
    """A table or view of that name is there."""

    kind = FailureKind.PERMANENT


class TableNotExistException(CatalogException):
    """No table or view has that name."""

    kind = FailureKind.PERMANENT


class TableNotPartitionedException(CatalogException):
    """A table has no partitions."""

    kind = FailureKind.PERMANENT
