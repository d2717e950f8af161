"""What Spark's progress reports say of batches and checkpoints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["durations_of", "is_reported", "progress_after", "sizes_of"]

PARTS = {
    "latestOffset": "latest_offset",
    "queryPlanning": "planning",
    "getBatch": "planning",
    "walCommit": "wal_commit",
    "addBatch": "add_batch",
    "commitOffsets": "commit_offsets",
}
"""What the log of batches calls the parts of Spark's that it has."""


def progress_after(query: Any, batch: int) -> dict[int, dict[str, Any]]:
    """By batch Spark's report of it, for the last batches after one; nothing where Spark does not answer."""
    found: dict[int, dict[str, Any]] = {}
    # Statistics are no reason for a job to fail, whatever became of the query.
    with contextlib.suppress(Exception):
        reports = query._jsq.recentProgress()
        # The newest first, and each as one text: PySpark's own property asks for every field of all of them.
        for index in range(len(reports) - 1, -1, -1):
            if reports[index].batchId() <= batch:
                break
            report = json.loads(reports[index].json())
            # Triggers without a batch are reported, too, under the number of the batch to come.
            if "addBatch" in report["durationMs"]:
                found[int(report["batchId"])] = report
    return found


def is_reported(query: Any, batch: int) -> bool:
    """Whether Spark is done with a batch: it reports one after it has logged it."""
    report = query._jsq.lastProgress()
    return report is not None and int(report.batchId()) >= batch


def sizes_of(report: Mapping[str, Any]) -> dict[str, int]:
    """What a checkpoint took.

    >>> metrics = {"rocksdbTotalBytesWritten": 300, "rocksdbSstFileSize": 5000}
    >>> state = [{"customMetrics": metrics}, {"customMetrics": metrics}]
    >>> sizes_of({"durationMs": {"triggerExecution": 70}, "stateOperators": state})
    {'duration_ms': 70, 'checkpointed_size': 600, 'state_size': 10000}
    """
    metrics = [operator.get("customMetrics", {}) for operator in report["stateOperators"]]
    return {
        "duration_ms": int(report["durationMs"]["triggerExecution"]),
        "checkpointed_size": sum(int(one.get("rocksdbTotalBytesWritten", 0)) for one in metrics),
        # Of RocksDB's last snapshot: what came since then is in logs of changes.
        "state_size": sum(int(one.get("rocksdbSstFileSize", 0)) for one in metrics),
    }


def durations_of(report: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """How many milliseconds a batch took, and its parts.

    >>> durations_of({"durationMs": {"triggerExecution": 70, "addBatch": 50, "queryPlanning": 4, "getBatch": 1}})
    (70.0, {'add_batch': 50.0, 'planning': 5.0})
    """
    durations = report["durationMs"]
    parts: dict[str, float] = {}
    for name, spent in durations.items():
        if name in PARTS:
            parts[PARTS[name]] = parts.get(PARTS[name], 0.0) + float(spent)
    return float(durations["triggerExecution"]), parts
