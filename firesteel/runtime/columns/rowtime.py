"""Event time of batches: a watermark behind each of them, which an expression over its rows says."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["rowtime_strategy"]


class _Expression(Protocol):
    def evaluate(self, batch: pa.RecordBatch) -> pa.Array: ...


class _LatestOfBatch(TimestampAssigner):
    def __init__(self, watermark: _Expression) -> None:
        self._watermark = watermark

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        latest = pc.max(self._watermark.evaluate(value))
        if not latest.is_valid:
            return MIN_TIMESTAMP + 1
        if pa.types.is_timestamp(latest.type):
            latest = latest.cast(pa.timestamp("us", latest.type.tz), safe=False).cast(pa.int64())
            milliseconds: int = latest.as_py() // 1000
        else:
            milliseconds = latest.as_py()
        # The strategy's watermark is one less than what it has seen; an expression says the watermark itself.
        return milliseconds + 1


def rowtime_strategy(watermark: _Expression) -> WatermarkStrategy:
    """``WATERMARK FOR … AS expression``, for ``assign_timestamps_and_watermarks`` of a stream of batches. The
    expression gives a time, or milliseconds, for each row; the latest of a batch follows it as its watermark.

    >>> class Behind:
    ...     def evaluate(self, batch):
    ...         return pc.subtract(batch.column(0), 5)
    >>> assigner = rowtime_strategy(Behind()).timestamp_assigner
    >>> assigner.extract_timestamp(pa.record_batch({"at": [100, 90]}), 0)
    96
    """
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_LatestOfBatch(watermark))
