"""Sources by hand: an enumerator that plans, a reader that reads, and positions that go through JSON as in a log."""

from __future__ import annotations

import json
from typing import Any

from firesteel.connectors.source import SourceReader, SplitEnumerator, SplitRange

__all__ = ["read", "read_all"]


def read(reader: SourceReader[Any, Any], shares: list[list[SplitRange[Any]]]) -> list[Any]:
    """The records of all shares in a row."""
    parts = (part for share in shares for one in share for part in reader.read(one.split, one.start, one.end))
    return [value for part in parts if not isinstance(part, int) for value in part.values]


def read_all(
    enumerator: SplitEnumerator[Any], reader: SourceReader[Any, Any], batch: int = 10**9, parallelism: int = 2
) -> list[Any]:
    """The whole of a bounded source in batches."""
    position, found = enumerator.initial(), []
    while not enumerator.ended(position):
        end = json.loads(json.dumps(enumerator.latest(position, batch)))
        found += read(reader, enumerator.plan(position, end, parallelism))
        position = end
    return found
