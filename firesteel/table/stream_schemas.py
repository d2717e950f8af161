"""Schemas between streams and tables: which columns come from a stream's records, and which go back."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ProgramError
from firesteel.table.bridges import row_type_of_stream
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.functions.binding import cast_to
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.schema import Schema
from firesteel.table.sql.errors import near_names
from firesteel.table.sql.syntax import Name, Node
from firesteel.table.table_drafts import ColumnDraft, TableDraft, drafted
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import LocalZonedTimestampType, TimestampType

__all__ = ["ROWTIME_COLUMN", "CastColumn", "StreamDeclaration", "fitted_to", "stream_declaration"]

_ROWTIME = "rowtime"
ROWTIME_COLUMN = "$rowtime"
_MILLIS = pa.timestamp("ms", "UTC")


@dataclass(frozen=True)
class CastColumn:
    """A column by its place, as another type."""

    index: int
    type: pa.DataType

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """The column for all rows."""
        column = batch.column(self.index)
        if column.type == self.type:
            return column
        if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(self.type):
            return (
                column.cast(pa.int64()).cast(pa.timestamp(column.type.unit, self.type.tz)).cast(self.type, safe=False)
            )
        return column.cast(self.type)


@dataclass(frozen=True)
class StreamDeclaration:
    """A stream as a table."""

    table: DeclaredTable
    schema: pa.Schema
    """Of the batches that records become: the fields of records, then their timestamp if it is wanted."""
    places: tuple[int, ...]
    """Where in it each column of the table is."""
    several: bool
    """Whether records are rows of several fields."""
    rowtime: bool
    visible: tuple[str, ...]
    """The columns of the schema. The table may have others, which they are computed of."""


def stream_declaration(stream: DataStream, schema: Schema) -> StreamDeclaration:
    """What a schema makes of a stream. Without columns of its own it has all those of the records."""
    row_type, several = row_type_of_stream(stream.get_type())
    draft = schema._draft
    names = row_type.field_names()
    physical = [each for each in draft.columns if each.computed is None and each.metadata is None]
    if not physical:
        own = [ColumnDraft(name, kind) for name, kind in zip(names, row_type.field_types(), strict=True)]
        draft = replace(draft, columns=(*own, *draft.columns))
    elif not several and len(physical) == 1:
        # A value alone has no name: it is the one column, whatever that is called.
        names = [physical[0].name]
    visible = tuple(draft.names)
    kinds = dict(zip(names, row_type.field_types(), strict=True))
    undeclared = [ColumnDraft(name, kinds[name]) for name in _read_by(draft) if name in kinds.keys() - set(visible)]
    table = drafted(replace(draft, columns=(*draft.columns, *undeclared)), "", "the stream")
    declared = {column.name: column.type for column in table.columns if column.is_physical}
    for name, kind in kinds.items():
        # Times are read with the digits that are asked for: nanoseconds end in the year 2262.
        if isinstance(kind, TimestampType | LocalZonedTimestampType) and type(declared.get(name)) is type(kind):
            kinds[name] = declared[name]
    layout = arrow_schema(names, kinds.values())
    wanted = table.metadata
    for name, key in wanted.items():
        if key != _ROWTIME:
            raise ProgramError(
                f"A stream has the metadata 'rowtime', its timestamps; column {name!r} asks for {key!r}."
            )
    if wanted:
        layout = layout.append(pa.field(ROWTIME_COLUMN, _MILLIS))
    places = []
    for column in table.columns:
        if column.computed is not None:
            continue
        name = ROWTIME_COLUMN if column.metadata is not None else column.name
        if name not in layout.names:
            raise ProgramError(f"The stream's records have no field {name!r}.{near_names(name, names)}")
        places.append(layout.names.index(name))
    return StreamDeclaration(table, layout, tuple(places), several, bool(wanted), visible)


def _read_by(draft: TableDraft) -> list[str]:
    """The names in what columns are computed of, each once."""
    found: dict[str, None] = {}

    def look(part: Any) -> None:
        if isinstance(part, Name):
            found[part.parts[0]] = None
        elif isinstance(part, Node):
            for each in fields(part):
                look(getattr(part, each.name))
        elif isinstance(part, tuple | list):
            for each in part:
                look(each)

    for column in draft.columns:
        look(column.computed)
    return list(found)


def fitted_to(plan: Plan, schema: Schema) -> tuple[Plan, int | None]:
    """The columns that a schema chooses, in its types, and where the one is that becomes the timestamp of rows."""
    refs = dict(zip(plan.names, plan.refs(), strict=True))
    expressions: list[Expression] = []
    names: list[str] = []
    rowtime = None
    for column in schema._draft.columns:
        if column.computed is not None:
            continue
        if column.name not in refs:
            raise ProgramError(f"The table has no column {column.name!r}.{near_names(column.name, refs)}")
        if column.metadata is not None:
            if column.metadata != _ROWTIME:
                raise ProgramError(f"A stream takes the metadata 'rowtime', not {column.metadata!r}.")
            rowtime = len(names)
        assert column.type is not None
        expressions.append(cast_to(refs[column.name], column.type))
        names.append(column.name)
    return Project(plan, tuple(expressions), tuple(names)), rowtime
