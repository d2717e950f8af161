"""Writers of files of columns: elements are collected, and written as tables of Arrow."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from firesteel.common.serialization import BulkWriter
from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError, short_repr

__all__ = ["GROUP", "ColumnWriter"]

GROUP = 65536
"""Elements that a part holds in memory before they are encoded."""


class ColumnWriter(BulkWriter):
    """Takes rows, tuples, dicts and dataclasses."""

    def __init__(self, schema: Any, group_size: int, kind: str) -> None:
        self._schema, self._group_size, self._kind = schema, group_size, kind
        self._names = list(schema.names)
        self._rows: list[list[Any]] = []

    @abstractmethod
    def write_table(self, table: Any) -> None:
        """Writes some rows."""

    @abstractmethod
    def close(self) -> None:
        """Ends the file."""

    def add_element(self, element: Any) -> None:
        self._rows.append(self._columns(element))
        if len(self._rows) >= self._group_size:
            self.flush()

    def _columns(self, element: Any) -> list[Any]:
        names = self._names
        if isinstance(element, Row) and element._fields is not None:
            return element.get_fields_by_names(names)
        if isinstance(element, Row | tuple | list):
            if len(element) == len(names):
                return list(element)
        elif isinstance(element, Mapping):
            return [element.get(name) for name in names]
        elif dataclasses.is_dataclass(element):
            return [getattr(element, name) for name in names]
        elif len(names) == 1:
            return [element]
        raise TypeMismatchError(
            f"{self._kind} file with the columns {', '.join(names)} takes rows, tuples, dicts or dataclasses with "
            f"{len(names)} fields, got {short_repr(element, 80)}."
        )

    def flush(self) -> None:
        import pyarrow

        # Here, not at the top: Arrow is loaded by those that write columns, and by no others.
        from firesteel.runtime.columns.nested import arrow_column

        if self._rows:
            rows, self._rows = self._rows, []
            columns = [
                arrow_column([row[position] for row in rows], field.type) for position, field in enumerate(self._schema)
            ]
            self.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))

    def finish(self) -> None:
        self.flush()
        self.close()
