"""Spark's hash of an id, computed in Python: which block a vertex is in that is no neighbour."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as T

from firesteel.errors import ProgramError, short_repr

__all__ = ["spark_hash"]

_MASK = 0xFFFFFFFF


def spark_hash(value: Any, kind: T.DataType, seed: int = 42) -> int:
    """What ``pyspark.sql.functions.hash`` gives for a value of this type.

    >>> spark_hash(1, T.LongType()), spark_hash("abcde", T.StringType())
    (-1712319331, 814637928)
    """
    if isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.DateType, T.BooleanType)) and isinstance(value, int):
        return _signed(_finish(_mix(seed, value & _MASK), 4))
    if isinstance(kind, T.LongType) and isinstance(value, int):
        return _signed(_finish(_mix(_mix(seed, value & _MASK), (value >> 32) & _MASK), 8))
    if isinstance(kind, T.StringType) and isinstance(value, str):
        data = value.encode()
        whole = len(data) - len(data) % 4
        mixed = seed
        for begin in range(0, whole, 4):
            mixed = _mix(mixed, int.from_bytes(data[begin : begin + 4], "little"))
        for byte in data[whole:]:
            # Bytes that are left over count one by one, as signed numbers.
            mixed = _mix(mixed, (byte - 256 if byte > 127 else byte) & _MASK)
        return _signed(_finish(mixed, len(data)))
    raise ProgramError(
        f"A message to a vertex that is not a neighbour needs an id of type {kind.simpleString()} that is a whole "
        f"number or text, got {short_repr(value)} ({type(value).__name__})."
    )


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix(state: int, block: int) -> int:
    block = _rotate(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(state ^ block, 13) * 5 + 0xE6546B64) & _MASK


def _finish(state: int, length: int) -> int:
    state ^= length
    state = (state ^ (state >> 16)) * 0x85EBCA6B & _MASK
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & _MASK
    return state ^ (state >> 16)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
