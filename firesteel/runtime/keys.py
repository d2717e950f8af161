"""Where a key lives: a hash that is the same on every run, machine and Python version.

Python's own ``hash`` of text is randomised per process, so it must never decide a route. Two keys that are equal
as dict keys (``1``, ``1.0`` and ``True``) must land on the same subtask, so numbers do use Python's numeric hash:
it is defined by the language reference for equal values of all numeric types and is never randomised.

A key's hash chooses its key group, and its key group chooses the subtask, as in Flink. Key groups are what state is
redistributed by when a job is rescaled.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import numbers
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from firesteel.common.types import Row
from firesteel.errors import UnstableKeyError, short_repr

__all__ = ["DEFAULT_MAX_PARALLELISM", "KeyRoutes", "key_group", "stable_hash", "stable_hashes", "subtask_of"]

DEFAULT_MAX_PARALLELISM = 128
_MASK = 0xFFFFFFFF


def _mix(number: int) -> int:
    """Spreads 32 bits, so that consecutive integers do not share their low bits (a 32-bit avalanche)."""
    number &= _MASK
    number = ((number ^ (number >> 16)) * 0x45D9F3B) & _MASK
    number = ((number ^ (number >> 16)) * 0x45D9F3B) & _MASK
    return number ^ (number >> 16)


def _hash_number(key: Any) -> int:
    if key != key:
        raise UnstableKeyError(
            "A NaN cannot be a key: it is not equal to itself, so its state could never be found again. "
            "Replace it in the key selector, for example by None."
        )
    folded = hash(key)
    return _mix(folded ^ (folded >> 32))


def _hash_parts(tag: int, parts: Any) -> int:
    result = tag
    for part in parts:
        result = _mix(result * 31 + stable_hash(part))
    return result


def _hash_temporal(key: Any) -> int:
    if isinstance(key, datetime.datetime):
        if key.tzinfo is not None and key.utcoffset() is not None:
            key = key.astimezone(datetime.UTC)
        key = key.replace(fold=0)
    return _mix(zlib.crc32(key.isoformat().encode()) + 5)


def _hash_time(key: datetime.time) -> int:
    offset = key.utcoffset()
    if offset is None:
        return _hash_temporal(key)
    # Times with an offset are equal if they are the same moment of a day in UTC.
    moment = datetime.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    return _hash_delta(moment - offset)


def _hash_delta(key: datetime.timedelta) -> int:
    return _hash_parts(23, (key.days, key.seconds, key.microseconds))


def _hash_row(key: Row) -> int:
    if key._fields is None:
        return _hash_parts(19, key)
    # By name, because rows with names are equal whatever the order of their fields.
    named = zip(key._fields, key, strict=False)
    return _mix(sum(_hash_parts(29, field) for field in named) + 7)


def _hash_dataclass(key: Any) -> int:
    fields = [getattr(key, f.name) for f in dataclasses.fields(key) if f.compare]
    return _hash_parts(zlib.crc32(type(key).__qualname__.encode()), fields)


def _hash_text(key: str) -> int:
    # The commonest kind of key, once per key and batch: a checksum spreads well enough by itself.
    try:
        return zlib.crc32(key.encode())
    except UnicodeEncodeError:
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))


_BY_TYPE: dict[type, Callable[[Any], int]] = {
    str: _hash_text,
    bytes: zlib.crc32,
    int: _hash_number,
    float: _hash_number,
    bool: _hash_number,
    Decimal: _hash_number,
    type(None): lambda key: 0x9E3779B9,
    tuple: lambda key: _hash_parts(17, key),
    frozenset: lambda key: _mix(sum(map(stable_hash, key)) + 3),
    Row: _hash_row,
    datetime.date: _hash_temporal,
    datetime.datetime: _hash_temporal,
    datetime.time: _hash_time,
    datetime.timedelta: _hash_delta,
    uuid.UUID: lambda key: _mix(zlib.crc32(key.bytes)),
}


def stable_hash(key: Any) -> int:
    """A 32-bit hash of a key that every process computes alike.

    >>> stable_hash("user-1"), stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    (2116437524, True)
    """
    by_type = _BY_TYPE.get(type(key))
    if by_type is not None:
        return by_type(key)
    if isinstance(key, str):
        return _BY_TYPE[str](key)
    if isinstance(key, numbers.Number):
        return _hash_number(key)
    if isinstance(key, enum.Enum):
        return _mix(zlib.crc32(f"{type(key).__qualname__}.{key.name}".encode()))
    for base in (bytes, tuple, frozenset, datetime.datetime, datetime.date, datetime.time):
        if isinstance(key, base):
            return _BY_TYPE[base](key)
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        params = getattr(type(key), "__dataclass_params__", None)
        if type(key).__hash__ is not None and params is not None and params.eq:
            return _hash_dataclass(key)
    raise UnstableKeyError(_refusal(key))


def _refusal(key: Any) -> str:
    kind = type(key).__name__
    if type(key).__hash__ is None:
        advice = {
            "list": "return tuple(...) of it instead",
            "set": "return frozenset(...) of it instead",
            "dict": "return tuple(sorted(d.items())) of it instead",
            "bytearray": "return bytes(...) of it instead",
        }.get(kind, "make it a frozen dataclass (@dataclass(frozen=True)) or return a tuple of its fields")
        return f"A key of type {kind} cannot be hashed: {short_repr(key, 80)}. In the key selector, {advice}."
    return (
        f"A key of type {kind} has no hash that is the same in every process: {short_repr(key, 80)}. Use str, "
        "bytes, int, float, bool, None, Decimal, a date or time, UUID, Enum, a tuple, a Row or a frozen dataclass "
        "of these as the key."
    )


def stable_hashes(keys: Sequence[Any]) -> Iterable[int]:
    """The hash of each key; of texts, the commonest keys, without a call of ours per key."""
    if set(map(type, keys)) == {str}:
        try:
            return list(map(zlib.crc32, map(str.encode, keys)))
        except UnicodeEncodeError:
            pass
    return map(stable_hash, keys)


_SPREAD = 0x9E3779B1
_32_BITS = 0xFFFFFFFF


def key_group(hashed: int, max_parallelism: int) -> int:
    """The key group of a hash, from 0 to ``max_parallelism`` - 1."""
    # Checksums of short texts differ in few bits: the product spreads them.
    return ((hashed * _SPREAD & _32_BITS) >> 8) % max_parallelism


def subtask_of(group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group: each owns one contiguous range, so that rescaling moves whole ranges."""
    return group * parallelism // max_parallelism


class KeyRoutes(dict[Any, int]):
    """Key to subtask, remembered: a route costs one dict look-up once a key was seen.

    >>> routes = KeyRoutes(parallelism=2, max_parallelism=128)
    >>> routes["a"] == routes["a"]
    True
    """

    LIMIT = 50_000
    """Beyond so many keys a look-up misses the processor's caches: computing the route of a text costs less."""

    def __init__(self, parallelism: int, max_parallelism: int) -> None:
        super().__init__()
        self._max_parallelism = max_parallelism
        self._by_group = [subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)]

    def of(self, keys: list[Any]) -> list[int]:
        """The subtask of each key."""
        if len(self) < self.LIMIT:
            return list(map(self.__getitem__, keys))
        by_group, groups = self._by_group, self._max_parallelism
        return [by_group[((hashed * _SPREAD & _32_BITS) >> 8) % groups] for hashed in stable_hashes(keys)]

    def __missing__(self, key: Any) -> int:
        route = self._by_group[key_group(stable_hash(key), self._max_parallelism)]
        if len(self) < self.LIMIT:
            self[key] = route
        return route
