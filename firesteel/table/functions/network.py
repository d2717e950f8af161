"""Addresses of IPv4 as numbers."""

from __future__ import annotations

import re

from firesteel.table.functions.registry import Function, Signature, register
from firesteel.table.functions.text import maybe_string
from firesteel.table.functions.values import by_value
from firesteel.table.types.data_types import BigIntType

__all__ = ["address_of_number", "number_of_address"]

_PART = re.compile(r"[0-9]{1,3}")


def number_of_address(text: str) -> int | None:
    """An address as a number. Of a short one the last part is the last byte.

    >>> number_of_address("127.0.0.1"), number_of_address("127.1"), number_of_address("256.0.0.1")
    (2130706433, 2130706433, None)
    """
    parts = text.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) and int(part) < 256 for part in parts):
        return None
    *front, last = map(int, parts)
    return int.from_bytes([*front, *[0] * (3 - len(front)), last], "big")


def address_of_number(number: int) -> str | None:
    """A number as an address.

    >>> address_of_number(2130706433)
    '127.0.0.1'
    """
    return ".".join(map(str, number.to_bytes(4, "big"))) if 0 <= number < 2**32 else None


register(Function("INET_ATON", Signature(("string",)), lambda arguments: BigIntType(), by_value(number_of_address)))
register(Function("INET_NTOA", Signature(("integer",)), maybe_string, by_value(address_of_number)))
