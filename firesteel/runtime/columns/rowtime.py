"""Event time of batches: a watermark behind each of them, which an expression over its rows says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.watermarks import MIN_TIMESTAMP, CuttingAssigner

__all__ = ["rowtime_strategy"]


class _Expression(Protocol):
    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array: ...


class _LatestOfBatch(CuttingAssigner):
    def __init__(self, watermark: _Expression) -> None:
        self._watermark = watermark

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        latest = pc.max(self._watermark.evaluate(value, self.now))
        if not latest.is_valid:
            return MIN_TIMESTAMP + 1
        # The strategy's watermark is one less than what it has seen; an expression says the watermark itself.
        return int(_milliseconds(pa.array([latest.as_py()], latest.type))[0]) + 1

    def cut(self, value: Any) -> list[Any]:
        watermarks = self._watermark.evaluate(value, self.now)
        known = watermarks.is_valid().to_numpy(zero_copy_only=False)
        each = np.where(known, _milliseconds(watermarks), MIN_TIMESTAMP)
        highest = np.maximum.accumulate(each)
        before = np.concatenate(([MIN_TIMESTAMP], highest[:-1]))
        ends = (np.flatnonzero(highest > before) + 1).tolist()
        starts = [0, *ends]
        return [value.slice(start, end - start) for start, end in pairwise([*starts, value.num_rows]) if end > start]


def _milliseconds(times: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Times rounded down, also those before 1970; whatever there is for NULL."""
    if not pa.types.is_timestamp(times.type):
        return np.asarray(times.cast(pa.int64()).fill_null(0), np.int64)
    exact = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())
    return np.asarray(exact.fill_null(0), np.int64) // 1000


def rowtime_strategy(watermark: _Expression) -> WatermarkStrategy:
    """``WATERMARK FOR … AS expression``, for ``assign_timestamps_and_watermarks`` of a stream of batches. The
    expression gives a time, or milliseconds, for each row; the latest of a batch follows it as its watermark.

    >>> class Behind:
    ...     def evaluate(self, batch, now):
    ...         return pc.subtract(batch.column(0), 5)
    >>> assigner = rowtime_strategy(Behind()).timestamp_assigner
    >>> assigner.extract_timestamp(pa.record_batch({"at": [100, 90]}), 0)
    96
    """
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_LatestOfBatch(watermark))
