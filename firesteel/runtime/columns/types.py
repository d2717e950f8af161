"""The type of a stream whose records are Arrow batches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa

from firesteel.common.type_system.codegen import Scope
from firesteel.common.typeinfo import TypeInformation

__all__ = ["ColumnsType"]


class ColumnsType(TypeInformation):
    """Batches of rows. The schema is that of the rows, without their kinds.

    What is declared with it is sent as columns, and its rows are counted rather than its batches.

    >>> ColumnsType(pa.schema([("word", pa.string()), ("n", pa.int64())]))
    COLUMNS<word string, n int64>
    """

    columnar = True

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def explain(self, value: Any) -> str | None:
        if isinstance(value, pa.RecordBatch):
            return None
        return f"expected a batch of {self}, got {type(value).__name__}"

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        return None

    def _key(self) -> Hashable:
        return tuple((field.name, field.type) for field in self.schema)

    def __repr__(self) -> str:
        return f"COLUMNS<{', '.join(f'{field.name} {field.type}' for field in self.schema)}>"
