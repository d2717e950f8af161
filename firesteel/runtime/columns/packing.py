"""Batches as bytes: Arrow's own stream format, compressed with lz4, inside the pickle of a frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.kinds import with_kinds

__all__ = ["Packed", "joined", "pack", "unpack"]

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(batch: pa.RecordBatch) -> bytes:
    """
    >>> unpack(pack(pa.record_batch({"a": [1, 2]}))).to_pydict()
    {'a': [1, 2]}
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack(content: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()


class Packed:
    """Stands for a batch where it is pickled. What is unpickled is the batch.

    >>> import pickle
    >>> pickle.loads(pickle.dumps([Packed(pa.record_batch({"a": [1]}))]))[0].num_rows
    1
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __reduce__(self) -> tuple[Callable[[bytes], pa.RecordBatch], tuple[bytes]]:
        return unpack, (pack(self.batch),)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one stream as one. Some of them may have kinds and others not."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(_alike(batches))


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    widths = {batch.num_columns for batch in batches}
    if len(widths) == 1:
        return batches
    return [_with_insertions(batch) if batch.num_columns < max(widths) else batch for batch in batches]


def _with_insertions(batch: pa.RecordBatch) -> pa.RecordBatch:
    return with_kinds(batch, np.zeros(batch.num_rows, np.int8))
