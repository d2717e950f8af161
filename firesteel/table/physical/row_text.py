"""Rows as the print connector writes them: ``+I[1, a]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firesteel.common.types import RowKind
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.functions.printing import printer
from firesteel.table.types.data_types import BooleanType, DataType

__all__ = ["RowsAsText", "RowsAsTextOperator", "row_texts"]

_KINDS = [str(kind) for kind in RowKind]


@dataclass(frozen=True)
class RowsAsText:
    """Batches as lines of text."""

    types: tuple[DataType, ...]
    time_zone: str


@handles(RowsAsText)
class RowsAsTextOperator(StreamOperator[RowsAsText]):
    """Every row becomes a line."""

    def process(self, records: Records) -> None:
        for batch in records.values:
            self.context.emit(row_texts(batch, self.spec.types, self.spec.time_zone))


def row_texts(batch: pa.RecordBatch, types: tuple[DataType, ...], time_zone: str = "UTC") -> list[str]:
    """The rows of a batch.

    >>> from firesteel.table.types import DataTypes
    >>> row_texts(pa.record_batch({"a": [1, None]}), (DataTypes.BIGINT(),))
    ['+I[1]', '+I[null]']
    """
    data, kinds = data_of(batch), kinds_of(batch)
    columns = []
    for column, kind in zip(data.columns, types, strict=True):
        # The print connector writes what Java's toString gives.
        write = _java_boolean if isinstance(kind, BooleanType) else printer(kind, time_zone)
        columns.append(["null" if value is None else write(value) for value in column.to_pylist()])
    shown = [", ".join(cells) for cells in zip(*columns, strict=True)]
    if kinds is None:
        return [f"+I[{row}]" for row in shown]
    return [f"{_KINDS[kind]}[{row}]" for kind, row in zip(kinds.tolist(), shown, strict=True)]


def _java_boolean(value: Any) -> str:
    return str(value).lower()
