"""The integer that Spark's hash partitioning sends to a chosen partition.

Spark places a row at ``pmod(murmur3(grouping value, seed 42), partitions)``, which is no bijection on 0, 1, 2, …:
with subtask numbers as grouping values some partitions would get two subtasks and others none.
"""

from __future__ import annotations

import functools

__all__ = ["murmur3_int", "partition_tokens"]

_MASK = 0xFFFFFFFF


def _rotl(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def murmur3_int(value: int, seed: int = 42) -> int:
    """Murmur3 (x86, 32 bits) of one 4-byte integer as a signed number.

    >>> murmur3_int(0), murmur3_int(1)
    (933211791, -559580957)
    """
    block = (value & _MASK) * 0xCC9E2D51 & _MASK
    block = _rotl(block, 15) * 0x1B873593 & _MASK
    result = (_rotl(seed ^ block, 13) * 5 + 0xE6546B64) & _MASK
    result ^= 4
    result = (result ^ (result >> 16)) * 0x85EBCA6B & _MASK
    result = (result ^ (result >> 13)) * 0xC2B2AE35 & _MASK
    result ^= result >> 16
    return result - (1 << 32) if result >= 1 << 31 else result


@functools.cache
def partition_tokens(partitions: int) -> tuple[int, ...]:
    """For each partition the smallest integer that Spark sends there.

    >>> [murmur3_int(token) % 5 for token in partition_tokens(5)]
    [0, 1, 2, 3, 4]
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < partitions:
        found.setdefault(murmur3_int(candidate) % partitions, candidate)
        candidate += 1
    return tuple(found[partition] for partition in range(partitions))
