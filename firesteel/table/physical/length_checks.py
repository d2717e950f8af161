"""Columns of a table that have a length: values of another one are cut and padded, or fail the job."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ConfigurationError, InputError
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import Calc
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    BinaryType,
    CharType,
    DataType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["SizedColumn", "fitted_lengths"]

ENFORCER = "table.exec.sink.type-length-enforcer"
_SIZED = (CharType, VarCharType, BinaryType, VarBinaryType)


@dataclass(frozen=True)
class SizedColumn:
    """A column of a batch as it is, or if it has a type, with values of its length."""

    index: int
    name: str
    path: str
    type: DataType | None
    fails: bool

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """The column for all rows."""
        column = batch.column(self.index)
        if not isinstance(self.type, _SIZED):
            return column
        length, fixed = self.type.length, isinstance(self.type, CharType | BinaryType)
        text = isinstance(self.type, CharType | VarCharType)
        lengths = pc.utf8_length(column) if text else pc.binary_length(column)
        wrong = pc.not_equal(lengths, length) if fixed else pc.greater(lengths, length)
        if not pc.any(wrong).as_py():
            return column
        if self.fails:
            raise InputError(
                f"Column {self.name} of {self.path} is {self.type.nullable()}, and a value has the length "
                f"{lengths.filter(wrong)[0]}. Cast it, or let values be cut and padded ({ENFORCER} = TRIM_PAD)."
            )
        if text:
            column = pc.utf8_slice_codeunits(column, 0, length)
            return pc.utf8_rpad(column, length) if fixed else column
        column = pc.binary_slice(column, 0, length)
        if not fixed:
            return column
        return pa.array([None if one is None else one.ljust(length, b"\0") for one in column.to_pylist()], column.type)


def _chosen(configuration: Configuration) -> str:
    chosen = configuration.get_string(ENFORCER, "IGNORE")
    if chosen.upper() not in ("IGNORE", "TRIM_PAD", "ERROR"):
        raise ConfigurationError(
            f"{ENFORCER} is IGNORE (values stay as they are), TRIM_PAD (they are cut and padded) or ERROR (one of "
            f"another length fails the job), got {chosen!r}."
        )
    return chosen.upper()


def _sized_columns(table: DeclaredTable) -> dict[int, DataType]:
    kinds = ((at, column.type) for at, column in enumerate(table.writable))
    return {at: kind for at, kind in kinds if isinstance(kind, _SIZED) and kind.length < MAX_LENGTH}


def fitted_lengths(
    stream: DataStream, plan: Plan, table: DeclaredTable, path: str, configuration: Configuration
) -> DataStream:
    """The stream, with values of the length that columns of the table have."""
    chosen, sized = _chosen(configuration), _sized_columns(table)
    if chosen == "IGNORE" or not sized:
        return stream
    schema = arrow_schema(plan.names, plan.types)
    names = [column.name for column in table.writable]
    columns = tuple(SizedColumn(at, name, path, sized.get(at), chosen == "ERROR") for at, name in enumerate(names))
    return stream.transform("LengthEnforcer", Calc(columns, schema), ColumnsType(schema))
