"""What Flink's tools know operators by: 32 hexadecimal digits."""

from __future__ import annotations

import hashlib
import re

__all__ = ["operator_id"]

_ID = re.compile(r"[0-9a-f]{32}")


def operator_id(uid: str) -> str:
    """The id of the operator with this uid. One that the program did not name has such an id for its uid already.

    >>> operator_id("27da2c82989ea2b964fbe76a5d3f0a11")
    '27da2c82989ea2b964fbe76a5d3f0a11'
    >>> operator_id("orders") == operator_id("orders") != operator_id("order"), len(operator_id("orders"))
    (True, 32)
    """
    return uid if _ID.fullmatch(uid) else hashlib.blake2b(uid.encode(), digest_size=16).hexdigest()
