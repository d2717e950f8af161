"""Results that were recorded from PyFlink, and how ours are compared with them.

Only the standard library is used: tools that run in PyFlink's environment import it, too.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

NEXMARK_EVENTS = 2000
NEXMARK_STRETCH = 600
"""So that the events take two minutes."""
_LARGE = 40


def final(changes: list[Any]) -> Counter[str]:
    """The rows that changes leave, each as JSON."""
    kinds = {kind for kind, *_ in changes}
    if "+U" in kinds and "-U" not in kinds:
        # Flink leaves -U out where a key says what is replaced: the first column, in what we have recorded.
        return Counter(json.dumps(row) for row in {row[0]: row for _, *row in changes}.values())
    rows: Counter[str] = Counter()
    for kind, *row in changes:
        rows[json.dumps(row)] += 1 if kind in ("+I", "+U") else -1
    return +rows


def summary(changes: list[Any]) -> dict[str, Any]:
    """The table that changes leave: its rows, or of a large one how many there are, a digest and the first."""
    lines = sorted(final(changes).elements())
    if len(lines) <= _LARGE:
        return {"rows": [json.loads(line) for line in lines]}
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {"count": len(lines), "digest": digest, "first": [json.loads(line) for line in lines[:5]]}


def shown_value(value: Any) -> Any:
    """A value of a row as JSON has it: bytes as hexadecimal digits, fractions and what tells time as text."""
    if isinstance(value, bytes | bytearray):
        return f"x{bytes(value).hex()}"
    if isinstance(value, list | tuple):
        return [shown_value(each) for each in value]
    if isinstance(value, dict):
        return sorted([[shown_value(key), shown_value(each)] for key, each in value.items()], key=repr)
    if type(value).__name__ == "Row":
        return [shown_value(each) for each in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
