"""Made-up rows: columns that count, and columns of random values.

A random value is made of the row's number and of a seed, which each job draws anew and keeps in the source's position;
what depends on the clock is made of the time at which a batch was planned, which is in the position, too. So a batch
that is replayed has the same rows, and so has it after a restart.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.connectors.blocks import blocks
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.connectors.table.generators import Generator, mixed
from firesteel.datastream.connectors.base import Source
from firesteel.runtime.columns.types import ColumnsType

__all__ = ["BATCH_ROWS", "Counting", "DatagenEnumerator", "DatagenSource", "Draw", "Field"]

BATCH_ROWS = 32_768
"""Rows of a batch."""


@dataclass(frozen=True)
class Counting:
    """A column that counts from ``first`` to ``last``: numbers, as text or as eight bytes if the column has such."""

    type: pa.DataType
    first: int
    last: int

    def make(self, start: int, end: int) -> pa.Array:
        """The values of rows by their numbers."""
        numbers = np.arange(start + self.first, end + self.first)
        if pa.types.is_string(self.type):
            return pa.array(numbers).cast(pa.string())
        if pa.types.is_binary(self.type):
            return pa.array([number.to_bytes(8, "big", signed=True) for number in numbers.tolist()], self.type)
        if pa.types.is_decimal(self.type):
            # Arrow asks for room for all digits that a number may have.
            return pa.array(numbers).cast(pa.decimal128(38, 0)).cast(self.type)
        # Large numbers are rounded where the type has no such digits.
        return pa.array(numbers).cast(self.type, safe=not pa.types.is_floating(self.type))


Field = Counting | Generator


@dataclass(frozen=True)
class Draw:
    """What random values are made of besides the numbers of rows."""

    seed: int
    now: int
    """In milliseconds."""

    @staticmethod
    def fresh(clock: Callable[[], float] = time.time) -> Draw:
        """Another one for each job."""
        return Draw(secrets.randbits(48), int(clock() * 1000))


class DatagenEnumerator(SplitEnumerator[Draw]):
    """Rows by their numbers. A position is the number of the next row, the seed, and the time of its batch.

    >>> rows = DatagenEnumerator(10, None, clock=lambda: 1.5)
    >>> rows.latest({"row": 0, "seed": 7, "now": 0}, 4)
    {'row': 4, 'seed': 7, 'now': 1500}
    """

    def __init__(self, count: int | None, per_second: float | None, clock: Callable[[], float] = time.time) -> None:
        self._indexes = IndexEnumerator(count, per_second)
        self.bounded = self._indexes.bounded
        self._clock = clock
        self._first = Draw.fresh(clock)

    def ends_within(self, records: int) -> bool:
        return self._indexes.ends_within(records)

    def initial(self) -> dict[str, int]:
        return {"row": 0, "seed": self._first.seed, "now": self._first.now}

    def latest(self, position: Any, max_records: int) -> Any:
        row, draw = _parts(position)
        reached = self._indexes.latest(row, max_records)
        if reached == row:
            return position
        return {"row": reached, "seed": draw.seed, "now": int(self._clock() * 1000)}

    def ended(self, position: Any) -> bool:
        return self._indexes.ended(_parts(position)[0])

    def count(self, start: Any, end: Any) -> int:
        return _parts(end)[0] - _parts(start)[0]

    def pending(self, position: Any) -> int | None:
        return self._indexes.pending(_parts(position)[0])

    def plan(self, start: Any, end: Any, parallelism: int) -> list[list[SplitRange[Draw]]]:
        # By the end: the beginning of the first batch may have been drawn by an attempt that failed.
        (first, _), (last, draw) = _parts(start), _parts(end)
        ranges = blocks(first, last, parallelism)
        return [[] if block is None else [SplitRange(draw, *block)] for block in ranges]


def _parts(position: Any) -> tuple[int, Draw]:
    if isinstance(position, int):
        # Of a job that was begun when nothing but the row's number counted.
        return position, Draw(0, 0)
    return position["row"], Draw(position["seed"], position["now"])


@dataclass(frozen=True)
class DatagenReader(SourceReader[Draw | None, pa.RecordBatch]):
    """Rows of these columns."""

    schema: pa.Schema
    fields: Sequence[Field]

    def read(self, split: Draw | None, start: int, end: int) -> Iterator[Records[pa.RecordBatch]]:
        for low in range(start, end, BATCH_ROWS):
            yield Records([self._batch(low, min(low + BATCH_ROWS, end), split or Draw(0, 0))])

    def _batch(self, start: int, end: int, draw: Draw) -> pa.RecordBatch:
        rows = np.arange(start, end).astype(np.uint64)
        # Each column has numbers of its own for each row.
        seed = mixed(np.array([draw.seed], np.uint64))
        columns = [
            field.make(start, end)
            if isinstance(field, Counting)
            else field.make(mixed(mixed(rows) + mixed(seed + np.uint64(place))), draw.now)
            for place, field in enumerate(self.fields)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class DatagenSource(Source[Any, pa.RecordBatch]):
    """Rows 0, 1, 2, … as batches; without a count until the job ends.

    >>> source = DatagenSource(pa.schema([("n", pa.int64())]), [Counting(pa.int64(), 5, 7)], count=3)
    >>> [records.values[0].column(0).to_pylist() for records in source.create_reader().read(None, 0, 3)]
    [[5, 6, 7]]
    """

    def __init__(
        self, schema: pa.Schema, fields: Sequence[Field], count: int | None, per_second: float | None = None
    ) -> None:
        self._schema = schema
        self.fields = tuple(fields)
        self.count = count
        """How many rows there are; None without an end."""
        self._per_second = per_second

    def create_enumerator(self) -> DatagenEnumerator:
        # Also where all columns count: the job goes on when its columns are declared in another way.
        return DatagenEnumerator(self.count, self._per_second)

    def create_reader(self) -> DatagenReader:
        return DatagenReader(self._schema, self.fields)

    def get_produced_type(self) -> ColumnsType:
        return ColumnsType(self._schema)
