"""Rows as the print connector writes them: ``+I[1, a]``."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from firesteel.common.types import RowKind
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.functions.java_printing import java_printer
from firesteel.table.types.data_types import DataType

__all__ = ["RowsAsText", "RowsAsTextOperator", "row_texts"]

_KINDS = [str(kind) for kind in RowKind]


@dataclass(frozen=True)
class RowsAsText:
    """Batches as lines of text."""

    types: tuple[DataType, ...]


@handles(RowsAsText)
class RowsAsTextOperator(StreamOperator[RowsAsText]):
    """Every row becomes a line."""

    def process(self, records: Records) -> None:
        for batch in records.values:
            self.context.emit(row_texts(batch, self.spec.types))


def row_texts(batch: pa.RecordBatch, types: tuple[DataType, ...]) -> list[str]:
    """The rows of a batch.

    >>> from firesteel.table.types import DataTypes
    >>> row_texts(pa.record_batch({"a": [1, None]}), (DataTypes.BIGINT(),))
    ['+I[1]', '+I[null]']
    """
    data, kinds = data_of(batch), kinds_of(batch)
    columns = []
    for column, kind in zip(data.columns, types, strict=True):
        write = java_printer(kind)
        columns.append(["null" if value is None else write(value) for value in column.to_pylist()])
    shown = [", ".join(cells) for cells in zip(*columns, strict=True)]
    if kinds is None:
        return [f"+I[{row}]" for row in shown]
    return [f"{_KINDS[kind]}[{row}]" for kind, row in zip(kinds.tolist(), shown, strict=True)]
