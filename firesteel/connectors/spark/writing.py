"""Records on their way to a Spark writer.

1. **Collect** (task). The records of a batch become columns: Arrow, compressed. A value that does not fit its column is
   refused here, before the batch is logged.
2. **Prepare** (task). The columns are the committable, which the driver logs in the checkpoint folder. *Crash here:*
   there is nothing to clean up.
3. **Commit** (driver, when the batch is logged). The columns of all subtasks are one DataFrame, and a
   :mod:`target <.targets>` writes it. It also gets the number of the batch, by which it recognises one that comes
   again. *Crash here:* it comes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.connectors.files.arrow import arrow_schema
from firesteel.connectors.files.column_writing import GROUP, ColumnWriter
from firesteel.connectors.retrying import retried
from firesteel.connectors.spark.session import spark_session
from firesteel.connectors.spark.targets import SparkBatch, Target
from firesteel.datastream.connectors.base import Committer, CommitterContext, SinkWriter
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import TypeMismatchError, short_repr

__all__ = ["FrameCommitter", "FrameWriter"]

RETRY_SECONDS = 60.0


class FrameWriter(SinkWriter):
    """Makes columns of records."""

    def __init__(self, row_type: Any) -> None:
        self._schema = arrow_schema(row_type)
        self._columns: _Columns | None = None

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._opened().add_element(value)

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        add = self._opened().add_element
        for value in values:
            add(value)

    def _opened(self) -> _Columns:
        if self._columns is None:
            self._columns = _Columns(self._schema)
        return self._columns

    def prepare_commit(self) -> list[Any]:
        columns, self._columns = self._columns, None
        if columns is None:
            return []
        columns.finish()
        return [columns.content()]


class _Columns(ColumnWriter):
    """A stream of Arrow in memory."""

    def __init__(self, schema: Any) -> None:
        import pyarrow as pa

        super().__init__(schema, GROUP, "A DataFrame instead of a")
        self._out = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._out, schema, options=options)

    def write_table(self, table: Any) -> None:
        self._writer.write_table(table)

    def flush(self) -> None:
        import pyarrow as pa

        rows = self._rows
        try:
            super().flush()
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._refused(rows, error) from None

    def _refused(self, rows: list[list[Any]], error: Exception) -> TypeMismatchError:
        """Columns are made as a whole, so Arrow did not say of which record. One by one it does."""
        import pyarrow as pa

        from firesteel.runtime.columns.nested import arrow_column

        for row in rows:
            for field, value in zip(self._schema, row, strict=True):
                try:
                    arrow_column([value], field.type)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as own:
                    reason = str(own).splitlines()[0]
                    return TypeMismatchError(
                        f"The column {field.name!r} is of the type {field.type} and cannot hold "
                        f"{short_repr(value, 80)}: {reason}. It is in the record {short_repr(row, 200)}."
                    )
        return TypeMismatchError(str(error).splitlines()[0])

    def close(self) -> None:
        self._writer.close()

    def content(self) -> bytes:
        found: bytes = self._out.getvalue().to_pybytes()
        return found


class FrameCommitter(Committer):
    """Has Spark write what a batch has prepared."""

    def __init__(self, target: Target, context: CommitterContext) -> None:
        self._target, self._context = target, context

    def commit(self, committables: list[Any]) -> None:
        import pyarrow as pa

        if not committables:
            return
        tables = [pa.ipc.open_stream(content).read_all() for content in committables]
        batch = SparkBatch(self._context.name_prefix(), self._context.checkpoint_id())
        session = spark_session()
        frame = session.createDataFrame(pa.concat_tables(tables))
        retried(lambda: self._target.write(frame, batch), RETRY_SECONDS, f"a batch for {self._target}")

    def close(self) -> None:
        self._target.close()
