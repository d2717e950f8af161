"""Which fields of a stream's records ``from_data_stream`` takes, what they are called, and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import Expression
from firesteel.table.sql.errors import near_names
from firesteel.table.sql.syntax import FunctionCall, Name, Node, SelectItem
from firesteel.table.types.data_types import BigIntType, DataType, LocalZonedTimestampType, RowType, TimestampType

__all__ = ["PROCTIME", "ROWTIME", "StreamField", "stream_fields"]

ROWTIME, PROCTIME = "rowtime", "proctime"
_TIMES = {"WINDOW_ROWTIME": ROWTIME, "WINDOW_PROCTIME": PROCTIME}


@dataclass(frozen=True)
class StreamField:
    """A column of the table."""

    name: str
    source: int | str
    """A field of the records by its number, :data:`ROWTIME` for their timestamps, or :data:`PROCTIME` for the clock."""


@dataclass(frozen=True)
class _Written:
    """``col("a")``, ``col("a").alias("b")``, or ``col("a").rowtime``."""

    column: str
    name: str
    time: str | None = None


def stream_fields(fields: Sequence[Any], row_type: RowType, several: bool) -> list[StreamField]:
    """The columns for fields as they are written. Where none of them is a name of the records', they are new names, one
    place after the other; else fields are chosen by name.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.table.expressions import col
    >>> pairs = DataTypes.ROW([DataTypes.FIELD("f0", DataTypes.BIGINT()), DataTypes.FIELD("f1", DataTypes.STRING())])
    >>> stream_fields([col("f1").alias("name"), col("at").rowtime], pairs, True)
    [StreamField(name='name', source=1), StreamField(name='at', source='rowtime')]
    """
    written = [_written(field) for field in fields]
    names = row_type.field_names()
    plain = [each for each in written if each.time is None]
    by_place = not several or not any(each.column in names or each.name != each.column for each in plain)
    if by_place and len(plain) > len(names):
        raise ProgramError(f"{len(plain)} names for {len(names)} columns.")
    found = []
    for place, each in enumerate(written):
        if each.time is not None:
            replaced = (
                place if by_place and several else names.index(each.column) if each.column in names else len(names)
            )
            _check_time(each, row_type.fields[replaced].data_type if replaced < len(names) else None)
            source: int | str = each.time
        elif by_place:
            source = place if several else 0
        elif each.column in names:
            source = names.index(each.column)
        else:
            raise ProgramError(
                f"The stream's records have no field {each.column!r}, they have {', '.join(names)}."
                f"{near_names(each.column, names)}"
            )
        found.append(StreamField(each.name, source))
    for field in found:
        if sum(other.name == field.name for other in found) > 1:
            raise ProgramError(f"from_data_stream(): two columns are called {field.name!r}.")
        if field.source == ROWTIME and sum(other.source == ROWTIME for other in found) > 1:
            raise ProgramError("from_data_stream(): a stream has one event time, and two columns are its rowtime.")
    return found


def _check_time(written: _Written, replaced: DataType | None) -> None:
    if replaced is None:
        return
    if written.time == PROCTIME:
        raise ProgramError(
            f"col({written.column!r}).proctime is a column more: give it a name of its own, behind those of all fields."
        )
    if not isinstance(replaced, BigIntType | TimestampType | LocalZonedTimestampType):
        raise ProgramError(
            f"col({written.column!r}).rowtime stands for a field of type {replaced}, which is no time: it replaces a "
            "BIGINT or TIMESTAMP, or comes behind all fields."
        )


def _written(field: Any) -> _Written:
    if isinstance(field, str):
        return _Written(field, field)
    node: Node | None = field._node if isinstance(field, Expression) else None
    alias = None
    if isinstance(node, SelectItem):
        alias, node = node.alias, node.expression
    time = _TIMES.get(node.name.parts[-1]) if isinstance(node, FunctionCall) else None
    if time is not None and isinstance(node, FunctionCall):
        node = node.args[0]
    if isinstance(node, Name):
        return _Written(node.parts[-1], alias or node.parts[-1], time)
    raise ProgramError(
        "from_data_stream() takes col('a'), col('a').alias('b'), col('a').rowtime and col('a').proctime, got "
        f"{short_repr(field, 60)}."
    )
