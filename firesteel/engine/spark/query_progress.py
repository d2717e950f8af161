"""What Spark's progress reports say of the size of checkpoints."""

from __future__ import annotations

import contextlib
import json
from typing import Any

__all__ = ["sizes", "sizes_of"]

_WRITTEN = "rocksdbCommitFileSyncLatencyMs"


def sizes(query: Any) -> dict[int, dict[str, int]]:
    """Per batch what is known of its duration and its state; nothing where Spark does not answer."""
    found = {}
    with contextlib.suppress(Exception):
        for progress in query.recentProgress:
            report = progress if isinstance(progress, dict) else json.loads(progress.json)
            found[int(report["batchId"])] = sizes_of(report)
    return found


def sizes_of(report: dict[str, Any]) -> dict[str, int]:
    return {}
