"""What a statement gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TextIO

import pyarrow as pa

from firesteel.common.job_client import JobClient
from firesteel.common.types import Row, RowKind, make_row
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.functions.printing import printer
from firesteel.table.resolved_schema import ResolvedSchema
from firesteel.table.result_kind import ResultKind
from firesteel.table.table_schema import TableSchema
from firesteel.table.tableau import WIDEST, print_fitted, print_rows
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
        client: JobClient | None = None,
        time_zone: str = "UTC",
        plain: str | None = None,
        changes: bool = True,
        widest: int = WIDEST,
    ) -> None:
        """``changes``: whether rows have kinds, which are printed with them. ``widest``: characters of a column whose
        values may be of any length, where rows are printed as they come."""
        self._row_type = row_type
        self._kind = kind
        self._rows = rows
        self._batches = batches
        self._client = client
        self._time_zone = time_zone
        self._plain = plain
        self._changes = changes
        self._widest = widest

    def get_job_client(self) -> JobClient | None:
        """The job that computes or writes the rows, also while they are collected; None for statements that start none,
        and for queries in batch mode: their rows are computed when they are asked for."""
        return self._client

    def get_result_kind(self) -> ResultKind:
        """Whether there are rows."""
        return self._kind

    def get_table_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return TableSchema(self._row_type.field_names(), self._row_type.field_types())

    def get_resolved_schema(self) -> ResolvedSchema:
        """Names and types of the columns."""
        return ResolvedSchema.physical(self._row_type.field_names(), self._row_type.field_types())

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
            return [make_row(None, row) for row in values]
        return [make_row(None, row, _KINDS[kind]) for row, kind in zip(values, kinds.tolist(), strict=True)]

    def print(self, out: TextIO | None = None) -> None:
        """Prints the rows as a table."""
        out = out or sys.stdout
        if self._plain is not None:
            self.wait()
            out.write(f"{self._plain}\n")
        elif self._batches is None:
            listed = [[_text(value) for value in row] for row in self._rows or []]
            print_fitted(self._row_type.field_names(), listed, out)
        else:
            names, types = self._row_type.field_names(), self._row_type.field_types()
            with self._batches:
                rows = self.changes() if self._changes else (row[1:] for row in self.changes())
                print_rows(names, types, rows, out, self._changes, self._widest)

    @property
    def is_query(self) -> bool:
        """Whether a job computes the rows while they are taken."""
        return self._batches is not None

    def close(self) -> None:
        """Ends the job of a query."""
        if self._batches is not None:
            self._batches.close()

    @property
    def rows(self) -> list[Row]:
        """The rows of a statement that is no query."""
        return self._rows or []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of a query as Arrow batches, as they come; a column more has the kinds of changes, if there are any
        but insertions."""
        assert self._batches is not None
        yield from self._batches

    def changes(self) -> Iterator[list[str]]:
        """The rows of a query as :meth:`print` writes them: the kind of change, then the values."""
        for batch in self.batches():
            for kind, row in self.written(batch):
                yield [str(kind), *("<NULL>" if value is None else value for value in row)]

    def written(self, batch: pa.RecordBatch) -> Iterator[tuple[RowKind, list[str | None]]]:
        """The rows of a batch with their kinds, the values as texts, NULL as None."""
        writers = [printer(kind, self._time_zone, hexadecimal=True) for kind in self._row_type.field_types()]
        data, kinds = data_of(batch), kinds_of(batch)
        columns = [
            [None if value is None else write(value) for value in column.to_pylist()]
            for column, write in zip(data.columns, writers, strict=True)
        ]
        for index, row in enumerate(zip(*columns, strict=True)):
            yield _KINDS[0 if kinds is None else kinds[index]], list(row)


def _nothing() -> None:
    """There is no job to end."""


def _text(value: Any) -> str:
    # What a table does not have, such as a key, is shown as nothing.
    if value is None:
        return ""
    return str(value).upper() if isinstance(value, bool) else str(value)
