"""The final rows of a query as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from firesteel.table.final_rows import final_rows
from firesteel.table.table_result import TableResult
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import DataType, LocalZonedTimestampType, RowType, TimestampType

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["final_frame"]


def final_frame(result: TableResult, row_type: RowType, time_zone: str) -> pd.DataFrame:
    """What is left of the changelog when all input has come, in the types of PyFlink: numbers as wide as the column's
    (floats where an integer is NULL), moments in the local zone, arrays of numpy, rows as dicts."""
    names, kinds = row_type.field_names(), row_type.field_types()
    try:
        rows = final_rows(list(result.batches()), arrow_schema(names, kinds))
    finally:
        result.close()
    columns = [
        column.cast(_for_pandas(column.type, kind, time_zone), safe=False)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    # By numbers: two columns may have the same name, of which Arrow makes one.
    frame: pd.DataFrame = pa.Table.from_arrays(columns, [str(at) for at in range(len(names))]).to_pandas(
        maps_as_pydicts="lossy"
    )
    frame.columns = names
    return frame


def _for_pandas(stored: pa.DataType, kind: DataType, time_zone: str) -> pa.DataType:
    if isinstance(kind, TimestampType | LocalZonedTimestampType):
        unit = "s" if kind.precision == 0 else stored.unit
        return pa.timestamp(unit, time_zone if isinstance(kind, LocalZonedTimestampType) else None)
    return stored
