"""What formats of columns that are read as rows have in common."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.bulk_format import BulkFormat
from firesteel.connectors.files.columns import RowColumns
from firesteel.errors import ProgramError

__all__ = ["ColumnarRowFormat"]


class ColumnarRowFormat(BulkFormat[Any]):
    """Takes what PyFlink's ``ParquetColumnarRowInputFormat`` takes. A subclass reads the blocks."""

    bytes_per_record = 16

    def __init__(
        self,
        row_type: Any,
        hadoop_config: Any = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ProgramError(f"batch_size is a number of rows of at least 1, got {batch_size!r}.")
        self._columns = RowColumns(row_type, is_utc_timestamp, is_case_sensitive)
        self._batch_size = batch_size

    def get_produced_type(self) -> TypeInformation | None:
        return self._columns.declared
