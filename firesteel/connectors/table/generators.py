"""Columns of made-up values: each value is made of a random number of 64 bits, so that the same numbers make the same
values, and all values of a batch at once."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Booleans",
    "Bytes",
    "Decimals",
    "Floats",
    "Generator",
    "Integers",
    "Lists",
    "Maps",
    "Moments",
    "Nulls",
    "Structs",
    "Texts",
    "TimesOfDay",
    "Today",
    "Words",
    "mixed",
]

Words = npt.NDArray[np.uint64]
_MASK = (1 << 64) - 1
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_EXACT = Context(prec=60)


def mixed(numbers: Words) -> Words:
    """A number of 64 bits for each number, all of them equally likely (splitmix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _salted(words: Words, salt: int) -> Words:
    """Other numbers for another use of the same ones."""
    return mixed(words + np.uint64(salt * 0x9E3779B97F4A7C15 & _MASK))


def _fractions(words: Words) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return found


@dataclass(frozen=True)
class Generator(ABC):
    """Makes values of one type."""

    type: pa.DataType

    @abstractmethod
    def make(self, words: Words, now: int) -> pa.Array:
        """One value for each number. ``now`` is the time of the batch in milliseconds."""


@dataclass(frozen=True)
class Booleans(Generator):
    def make(self, words: Words, now: int) -> pa.Array:
        return pa.array((words & np.uint64(1)).astype(bool))


@dataclass(frozen=True)
class Integers(Generator):
    """From ``least`` to ``most``, both included."""

    least: int
    most: int

    def make(self, words: Words, now: int) -> pa.Array:
        span = self.most - self.least + 1
        offsets = words if span > _MASK else words % np.uint64(span)
        # Adding wraps around, and comes out right.
        numbers = (offsets + np.uint64(self.least & _MASK)).view(np.int64)
        return pa.array(numbers).cast(self.type)


@dataclass(frozen=True)
class Floats(Generator):
    least: float
    most: float

    def make(self, words: Words, now: int) -> pa.Array:
        fractions = _fractions(words)
        # Not by the difference, which may be too large for a number.
        return pa.array(self.least * (1 - fractions) + self.most * fractions).cast(self.type)


@dataclass(frozen=True)
class Decimals(Generator):
    least: Decimal
    most: Decimal

    def make(self, words: Words, now: int) -> pa.Array:
        scale = self.type.scale
        low, high = (int(each.scaleb(scale, _EXACT)) for each in (self.least, self.most))
        span = high - low + 1
        # Two numbers together are more than the largest decimal has digits.
        pairs = zip(words.tolist(), _salted(words, 1).tolist(), strict=True)
        digits = ((one << 64 | other) % span + low for one, other in pairs)
        return pa.array([Decimal(number).scaleb(-scale, _EXACT) for number in digits], self.type)


@dataclass(frozen=True)
class _Sized(Generator):
    """So many letters or bytes, or with ``varies`` at least one and at most so many."""

    length: int
    varies: bool = False

    def _bytes(self, words: Words) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        """As many random bytes for each number as there may be at most, and how many are wanted."""
        blocks = -(-self.length // 8) or 1
        salts = np.arange(2, blocks + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        made = mixed(words[:, None] + salts[None, :]).view(np.uint8)[:, : self.length]
        lengths = np.full(len(words), self.length, np.int32)
        if self.varies and self.length:
            lengths = (_salted(words, 1) % np.uint64(self.length)).astype(np.int32) + np.int32(1)
        return made, lengths

    def _laid_out(self, content: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int32]) -> pa.Array:
        wanted = np.arange(self.length, dtype=np.int32)[None, :] < lengths[:, None]
        offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content[wanted].tobytes())]
        return pa.Array.from_buffers(self.type, len(lengths), buffers)


@dataclass(frozen=True)
class Texts(_Sized):
    """Hexadecimal digits."""

    def make(self, words: Words, now: int) -> pa.Array:
        made, lengths = self._bytes(words)
        return self._laid_out(_DIGITS[made & 15], lengths)


@dataclass(frozen=True)
class Bytes(_Sized):
    def make(self, words: Words, now: int) -> pa.Array:
        return self._laid_out(*self._bytes(words))


@dataclass(frozen=True)
class Moments(Generator):
    """Now, or up to so many milliseconds before."""

    past: int

    def make(self, words: Words, now: int) -> pa.Array:
        back = (words % np.uint64(self.past)).astype(np.int64) if self.past else np.zeros(len(words), np.int64)
        zone = self.type.tz
        return pa.array(now - back, pa.timestamp("ms", zone)).cast(self.type)


def _local(now: int) -> datetime.datetime:
    """What the machine's clock shows."""
    return datetime.datetime.fromtimestamp(now / 1000)


@dataclass(frozen=True)
class Today(Generator):
    def make(self, words: Words, now: int) -> pa.Array:
        return pa.repeat(pa.scalar(_local(now).date(), self.type), len(words))


@dataclass(frozen=True)
class TimesOfDay(Generator):
    """The time of day now."""

    def make(self, words: Words, now: int) -> pa.Array:
        return pa.repeat(pa.scalar(_local(now).time(), self.type), len(words))


@dataclass(frozen=True)
class Nulls(Generator):
    """Values, a part of which is NULL."""

    inner: Generator
    rate: float

    def make(self, words: Words, now: int) -> pa.Array:
        nulls = _fractions(_salted(words, 1)) < self.rate
        return pc.if_else(pa.array(nulls), pa.scalar(None, self.type), self.inner.make(_salted(words, 2), now))


@dataclass(frozen=True)
class Lists(Generator):
    elements: Generator
    length: int

    def make(self, words: Words, now: int) -> pa.Array:
        values = self.elements.make(_repeated(words, self.length), now)
        return pa.ListArray.from_arrays(_offsets(len(words), self.length), values, self.type)


@dataclass(frozen=True)
class Maps(Generator):
    """Maps, and multisets as maps of counts. They are smaller where keys come twice."""

    keys: Generator
    values: Generator
    length: int

    def make(self, words: Words, now: int) -> pa.Array:
        several = _repeated(words, self.length)
        keys, values = self.keys.make(several, now), self.values.make(_salted(several, 1), now)
        owners = np.repeat(np.arange(len(words)), self.length)
        first = _first_of_each(owners, keys)
        if len(first) < len(keys):
            keys, values, owners = keys.take(pa.array(first)), values.take(pa.array(first)), owners[first]
        ends = np.searchsorted(owners, np.arange(len(words) + 1)).astype(np.int32)
        return pa.MapArray.from_arrays(pa.array(ends), keys, values, self.type)


@dataclass(frozen=True)
class Structs(Generator):
    fields: tuple[Generator, ...]

    def make(self, words: Words, now: int) -> pa.Array:
        columns = [field.make(_salted(words, place), now) for place, field in enumerate(self.fields)]
        return pa.StructArray.from_arrays(columns, fields=list(self.type))


def _repeated(words: Words, length: int) -> Words:
    """So many numbers for each one."""
    steps = np.arange(1, length + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed((words[:, None] + steps[None, :]).ravel())


def _offsets(rows: int, length: int) -> pa.Array:
    return pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(length))


def _first_of_each(owners: npt.NDArray[np.int64], keys: pa.Array) -> npt.NDArray[np.int64]:
    """The places of keys that their owner does not have before, in order."""
    if pa.types.is_nested(keys.type):
        keys = pa.array(map(repr, keys.to_pylist()), pa.string())
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    pairs = owners * (int(codes.max(initial=0)) + 1) + codes
    _, first = np.unique(pairs, return_index=True)
    return np.sort(first)
