"""What a catalog holds under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from firesteel.table.logical.plan import Plan
from firesteel.table.types.data_types import DataType, RowType

__all__ = ["CatalogObject", "ColumnDefinition", "DeclaredTable", "InlineTable", "SparkTable", "StreamTable", "View"]


@dataclass(frozen=True)
class CatalogObject:
    """The root: something with columns."""

    @property
    def row_type(self) -> RowType:
        """Names and types of the columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class InlineTable(CatalogObject):
    """Rows of the program itself."""

    columns: RowType
    batches: tuple[pa.RecordBatch, ...] = field(compare=False, repr=False)

    @property
    def row_type(self) -> RowType:
        return self.columns


@dataclass(frozen=True, eq=False)
class SparkTable(CatalogObject):
    """A DataFrame of Spark. ``read`` gives its rows as batches, for those who do not run on Spark."""

    columns: RowType
    frame: Any
    read: Callable[[], Sequence[pa.RecordBatch]] = field(repr=False)

    @property
    def row_type(self) -> RowType:
        return self.columns


@dataclass(frozen=True, eq=False)
class StreamTable(CatalogObject):
    """A stream of batches, which a program made of a DataStream."""

    columns: RowType
    stream: Any
    insert_only: bool

    @property
    def row_type(self) -> RowType:
        return self.columns


@dataclass(frozen=True)
class View(CatalogObject):
    """A query under a name. One of SQL is resolved anew where it is used: ``text`` is its query with all names in
    full, and ``plan`` is what it was when it was made, which says its columns and their types."""

    plan: Plan
    text: str | None = None
    comment: str | None = None

    @property
    def row_type(self) -> RowType:
        return self.plan.row_type


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a declared table; ``computed`` and ``metadata`` as they were written."""

    name: str
    type: DataType
    computed: Any = None
    computed_text: str | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """Whether the connector's format has it."""
        return self.computed is None and self.metadata is None


@dataclass(frozen=True)
class DeclaredTable(CatalogObject):
    """A table of CREATE TABLE: columns, and the options of its connector."""

    columns: tuple[ColumnDefinition, ...]
    options: Mapping[str, str] = field(repr=False)
    """They may hold passwords."""
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_name: str | None = None
    watermarks: tuple[tuple[str, Any, str], ...] = ()
    """The column, the expression as it was read, and as it was written."""

    @property
    def row_type(self) -> RowType:
        return RowType.of([each.name for each in self.columns], [each.type for each in self.columns])

    @property
    def readable(self) -> RowType:
        """The columns that the connector gives: those of its format, and metadata."""
        own = [each for each in self.columns if each.computed is None]
        return RowType.of([each.name for each in own], [each.type for each in own])

    @property
    def writable(self) -> tuple[ColumnDefinition, ...]:
        """The columns that rows for the connector have."""
        return tuple(each for each in self.columns if each.computed is None and not each.virtual)

    @property
    def metadata(self) -> dict[str, str]:
        """Columns that the connector gives besides those of its format, and what it calls them."""
        return {each.name: each.metadata for each in self.columns if each.metadata is not None}

    @property
    def physical(self) -> RowType:
        """The columns that the connector reads and writes."""
        own = [each for each in self.columns if each.is_physical]
        return RowType.of([each.name for each in own], [each.type for each in own])
