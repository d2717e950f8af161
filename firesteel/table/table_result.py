"""What a statement gives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import pyarrow as pa

from firesteel.common.job_client import JobClient
from firesteel.common.types import Row, RowKind, _make_row
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.functions.printing import printer
from firesteel.table.result_kind import ResultKind
from firesteel.table.tableau import print_fitted, print_streaming
from firesteel.table.types.conversion import values_of
from firesteel.table.types.data_types import RowType

__all__ = ["TableResult"]

_KINDS = tuple(RowKind)


class TableResult:
    """Rows of a query while it runs, or of a statement that has run.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> env.execute_sql("SHOW TABLES").print()
    Empty set
    """

    def __init__(
        self,
        row_type: RowType,
        kind: ResultKind = ResultKind.SUCCESS_WITH_CONTENT,
        rows: list[Row] | None = None,
        batches: CloseableIterator | None = None,
        client: Callable[[], JobClient | None] | None = None,
        time_zone: str = "UTC",
        plain: str | None = None,
    ) -> None:
        self._row_type = row_type
        self._kind = kind
        self._rows = rows
        self._batches = batches
        self._client = client
        self._time_zone = time_zone
        self._plain = plain

    def get_job_client(self) -> JobClient | None:
        """The job that computes the rows; None for statements that start none."""
        return self._client() if self._client is not None else None

    def get_result_kind(self) -> ResultKind:
        """Whether there are rows."""
        return self._kind

    def get_resolved_schema(self) -> RowType:
        """Names and types of the columns."""
        return self._row_type

    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits until a job that writes has ended, or until a query has its first row."""
        client = self.get_job_client()
        if client is not None and self._batches is None:
            client.get_job_execution_result().result(None if timeout_ms is None else timeout_ms / 1000)

    def collect(self) -> CloseableIterator:
        """The rows, each with its kind. Closing the iterator ends the job."""
        if self._batches is None:
            return CloseableIterator(iter(self._rows or []), _nothing)
        batches = self._batches
        return CloseableIterator(self._unpacked(), batches.close)

    def _unpacked(self) -> Iterator[Row]:
        assert self._batches is not None
        for batch in self._batches:
            yield from self._rows_of(batch)

    def _rows_of(self, batch: pa.RecordBatch) -> list[Row]:
        data, kinds = data_of(batch), kinds_of(batch)
        types = self._row_type.field_types()
        columns = [values_of(column, kind, self._time_zone) for column, kind in zip(data.columns, types, strict=True)]
        values = map(list, zip(*columns, strict=True))
        if kinds is None:
            return [_make_row(None, row) for row in values]
        return [_make_row(None, row, _KINDS[kind]) for row, kind in zip(values, kinds.tolist(), strict=True)]

    def print(self, out: TextIO | None = None) -> None:
        """Prints the rows as a table."""
        out = out or sys.stdout
        if self._plain is not None:
            self.wait()
            out.write(f"{self._plain}\n")
        elif self._batches is None:
            rows = [[_text(value) for value in row] for row in self._rows or []]
            print_fitted(self._row_type.field_names(), rows, out)
        else:
            names, types = self._row_type.field_names(), self._row_type.field_types()
            with self._batches:
                print_streaming(names, types, self._printed(), out)

    def _printed(self) -> Iterator[list[str]]:
        assert self._batches is not None
        writers = [printer(kind, self._time_zone, hexadecimal=True) for kind in self._row_type.field_types()]
        for batch in self._batches:
            data, kinds = data_of(batch), kinds_of(batch)
            columns = [
                ["<NULL>" if value is None else write(value) for value in column.to_pylist()]
                for column, write in zip(data.columns, writers, strict=True)
            ]
            for index, row in enumerate(zip(*columns, strict=True)):
                yield [str(_KINDS[0 if kinds is None else kinds[index]]), *row]


def _nothing() -> None:
    """There is no job to end."""


def _text(value: Any) -> str:
    if value is None:
        return "<NULL>"
    return str(value).upper() if isinstance(value, bool) else str(value)
