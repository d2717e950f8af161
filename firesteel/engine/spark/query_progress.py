"""What Spark's progress reports say of checkpoints."""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["sizes", "sizes_of"]


def sizes(query: Any) -> dict[int, dict[str, int]]:
    """By batch its duration and sizes, for the last batches; nothing where Spark does not answer."""
    found: dict[int, dict[str, int]] = {}
    # Statistics are no reason for a job to fail, whatever became of the query.
    with contextlib.suppress(Exception):
        for progress in query.recentProgress:
            # Triggers without a batch are reported, too, under the number of the batch to come.
            if progress.durationMs.get("addBatch") is not None:
                found[int(progress.batchId)] = sizes_of(progress)
    return found


def sizes_of(progress: Any) -> dict[str, int]:
    """One report.

    >>> from types import SimpleNamespace as Object
    >>> metrics = {"rocksdbTotalBytesWritten": 300, "rocksdbSstFileSize": 5000}
    >>> state = [Object(customMetrics=metrics), Object(customMetrics=metrics)]
    >>> sizes_of(Object(durationMs={"triggerExecution": 70}, stateOperators=state))
    {'duration_ms': 70, 'checkpointed_size': 600, 'state_size': 10000}
    """
    metrics = [operator.customMetrics for operator in progress.stateOperators]
    return {
        "duration_ms": int(progress.durationMs["triggerExecution"]),
        "checkpointed_size": sum(int(one.get("rocksdbTotalBytesWritten", 0)) for one in metrics),
        # Of RocksDB's last snapshot: what came since then is in logs of changes.
        "state_size": sum(int(one.get("rocksdbSstFileSize", 0)) for one in metrics),
    }
