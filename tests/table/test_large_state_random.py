"""Random changelogs through every operator whose state may be in pages: with failures, restarts and savepoints it comes
to what it comes to in memory without any."""

from __future__ import annotations

import itertools
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from operatorkit import Change, batch_of
from paged_model import Job, Part, comparable

from firesteel.runtime.operators.table import (
    AggregateCall,
    ChangelogNormalize,
    FirstRow,
    FirstRowOperator,
    GroupAggregate,
    GroupAggregateOperator,
    Join,
    JoinOperator,
    Order,
    Rank,
    RankOperator,
    chains,
)
from firesteel.runtime.operators.table.accumulators import Values
from firesteel.runtime.operators.table.normalize import ChangelogNormalizeOperator
from firesteel.runtime.operators.table.specs import TableAggregate
from firesteel.runtime.operators.table.table_aggregate import TableAggregateOperator
from firesteel.runtime.operators.table.user_accumulators import objects
from firesteel.runtime.state.columnar import slot_pages
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables

LONG, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()
NAN = float("nan")
SEEDS = 1
"""Each has other rows, failures and restarts."""
NESTED = pa.struct({"a": pa.list_(DOUBLE), "b": pa.map_(TEXT, pa.int32())})
KEYS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "text": (TEXT, lambda n: None if n == 3 else f"k{n}"),
    "double": (DOUBLE, lambda n: [0.0, -0.0, NAN, None, 1e300][n] if n < 5 else n / 4),
    "float": (pa.float32(), lambda n: [0.0, -0.0, NAN, None, 0.1][n] if n < 5 else n / 4),
    "decimal": (pa.decimal128(20, 2), lambda n: None if n == 2 else Decimal(n) / 4),
    "time": (pa.timestamp("ms"), lambda n: None if n == 2 else n * 1000 - 5),
    "nested": (
        NESTED,
        lambda n: None if n == 1 else {"a": [[0.0], [-0.0], [NAN], None, []][n % 5], "b": [("x", n // 5), ("y", None)]},
    ),
    "truth": (pa.bool_(), lambda n: [True, False, None][n % 3]),
}


class Kept:
    """A user's aggregate: all values that are there."""

    functions: Sequence[Any] = ()
    state_type = pa.binary()

    def __init__(self, each_row: bool) -> None:
        self.each_row = each_row

    def arguments(self, columns: Sequence[pa.Array], rows: int) -> list[Any]:
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def take(self, accumulator: Any, arguments: Sequence[Any], signs: Sequence[int] | None) -> Any:
        accumulator = accumulator if accumulator is not None else {"values": []}
        for (value,), sign in zip(arguments, signs or [1] * len(arguments), strict=True):
            if sign > 0:
                accumulator["values"].append(value)
            elif value in accumulator["values"]:
                accumulator["values"].remove(value)
        return accumulator

    def value(self, accumulator: Any) -> Any:
        return sum(value or 0 for value in accumulator["values"]) if accumulator["values"] else None

    def results(self, values: Sequence[Any]) -> Values:
        return Values(objects(values), np.array([value is not None for value in values], bool))

    def store(self, accumulators: Sequence[Any]) -> pa.Array:
        return pa.array([None if each is None else pickle.dumps(each) for each in accumulators], pa.binary())

    def load(self, column: pa.Array) -> list[Any]:
        return [None if each is None else pickle.loads(each) for each in column.to_pylist()]

    def emitted(self, accumulator: Any) -> list[Any]:
        return [(value,) for value in sorted(value for value in accumulator["values"] if value is not None)[-2:]]

    def columns_of(self, rows: Sequence[Any]) -> list[pa.Array]:
        return [pa.array([value for (value,) in rows], LONG)]


@dataclass(frozen=True)
class Case:
    operator: type[Any]
    spec: Callable[[pa.Schema, int | None], Any]
    takes_back: bool = False
    sides: int = 1
    in_order: bool = True
    """Whether all changes of a key are the same and in the same order; else what stands in the end is."""
    expires: bool = True
    deletes: bool = False


def schema_of(key: pa.DataType) -> pa.Schema:
    return pa.schema([("k", key), ("n", LONG), ("x", DOUBLE), ("s", TEXT), ("f", pa.bool_())])


def grouping(retracts: bool, mini_batch: bool = False) -> Callable[[pa.Schema, int | None], Any]:
    def spec(rows: pa.Schema, ttl: int | None) -> GroupAggregate:
        calls = (
            AggregateCall("SUM", 1, LONG),
            AggregateCall("MIN", 1, LONG),
            AggregateCall("MAX", 3, TEXT),
            AggregateCall("MIN", 2, DOUBLE),
            AggregateCall("COUNT", 1, LONG, distinct=True),
            AggregateCall("SUM", 1, LONG, distinct=True, filter=4),
            AggregateCall("LAST_VALUE", 3, TEXT),
            AggregateCall("AVG", 1, LONG),
            AggregateCall("COUNT", None, LONG),
            AggregateCall("", None, LONG, user=Kept(each_row=not mini_batch), arguments=(1,)),
        )
        schema = pa.schema([rows.field(0), *(pa.field(f"r{n}", call.type) for n, call in enumerate(calls))])
        return GroupAggregate((0,), calls, rows, schema, retracts=retracts, mini_batch=mini_batch, state_ttl=ttl)

    return spec


def joining(kind: str) -> Callable[[pa.Schema, int | None], Any]:
    def spec(rows: pa.Schema, ttl: int | None) -> Join:
        schema = rows
        if kind not in ("SEMI", "ANTI"):
            schema = pa.schema([*rows, *(field.with_name(f"{field.name}2") for field in rows)])
        return Join(kind, (0,), (0,), rows, rows, schema, None, (ttl, ttl))

    return spec


def ranking(**options: Any) -> Callable[[pa.Schema, int | None], Any]:
    def spec(rows: pa.Schema, ttl: int | None) -> Rank:
        ranked = rows.append(pa.field("place", LONG)) if options.get("with_rank") else rows
        return Rank((0,), (Order(1), Order(2, ascending=False)), rows, ranked, state_ttl=ttl, **options)

    return spec


def table_aggregate(rows: pa.Schema, ttl: int | None) -> TableAggregate:
    schema = pa.schema([rows.field(0), ("v", LONG)])
    return TableAggregate((0,), AggregateCall("", None, LONG, user=Kept(False), arguments=(1,)), rows, schema)


CASES = {
    "group by, insertions": Case(GroupAggregateOperator, grouping(False)),
    "group by, changes": Case(GroupAggregateOperator, grouping(True), True),
    "group by, mini-batch": Case(GroupAggregateOperator, grouping(True, mini_batch=True), True, in_order=False),
    **{
        f"{kind} join": Case(JoinOperator, joining(kind), True, 2, in_order=False)
        for kind in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
    },
    "top 2": Case(RankOperator, ranking(end=2, with_rank=True)),
    "top 3, last wins": Case(RankOperator, ranking(end=3, last_wins=True)),
    "top 2 of changes": Case(RankOperator, ranking(end=2, with_rank=True, retracts=True), True),
    "first row": Case(
        FirstRowOperator, lambda rows, ttl: FirstRow((0,), (Order(2), Order(1)), rows, rows, state_ttl=ttl)
    ),
    "last row": Case(
        ChangelogNormalizeOperator, lambda rows, ttl: ChangelogNormalize((0,), rows, state_ttl=ttl), deletes=True
    ),
    "table aggregate": Case(TableAggregateOperator, table_aggregate, True, in_order=False, expires=False),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a few slots, so that few rows make many pages."""
    monkeypatch.setattr(slot_pages, "PAGE_ROWS", 5)
    monkeypatch.setattr(slot_pages, "_READ_AT_ONCE", 7)
    monkeypatch.setattr(slot_pages, "_WRITE_AT_ONCE", 3)
    monkeypatch.setattr(chains, "LONG", 8)


def by_key(found: list[Change]) -> dict[Any, list[Change]]:
    keys: dict[Any, list[Change]] = {}
    for kind, row in found:
        keys.setdefault(comparable(row[0]), []).append((kind, comparable(row)))
    return keys


def net(found: list[Change]) -> dict[Any, int]:
    """How often each row comes more than it goes."""
    rows: Counter[Any] = Counter()
    for kind, row in found:
        rows[comparable(row)] += 1 if kind in (0, 2) else -1
    return {row: count for row, count in rows.items() if count}


class Script:
    """What comes, batch by batch."""

    def __init__(self, seed: int, case: Case, key: str, expires: bool) -> None:
        self.at_random = random.Random(seed)
        self.case, self.expires = case, expires
        kind, self._value = KEYS[key]
        self.schema = schema_of(kind)
        self._there: list[list[tuple[int, tuple[Any, ...]]]] = [[], []]
        self.now = 1000

    def parts(self, number: int) -> list[Part]:
        at_random = self.at_random
        self.now += at_random.choice([0, 50, 200]) if self.expires else 1
        found = []
        keys = at_random.choice([1, 3, 30, 80])
        for _ in range(at_random.choice([0, 1, 2, 4])):
            side = at_random.randrange(self.case.sides)
            if self.expires:
                # What has expired is not taken back: a group may then end while values of it are left.
                self._there[side] = [entry for entry in self._there[side] if entry[0] > self.now - 400]
            rows = self._rows(
                at_random.choice([1, 5, 40, 120]), keys, self._there[side], number > 15 and not self.expires
            )
            found.append(Part(batch_of(rows, self.schema), (0,), side))
        return found

    def _rows(self, count: int, keys: int, there: list[tuple[int, tuple[Any, ...]]], shrinks: bool) -> list[Change]:
        at_random, found = self.at_random, list[Change]()
        for _ in range(count):
            if self.case.takes_back and there and at_random.random() < (0.8 if shrinks else 0.35):
                found.append((3, there.pop(at_random.randrange(len(there)))[1]))
                continue
            row = (
                self._value(at_random.randrange(keys)),
                at_random.choice([1, 2, 3, None]),
                at_random.choice([0.5, -0.0, 0.0, None]),
                at_random.choice(["a", "b", "", None]),
                at_random.choice([True, False, None]),
            )
            there.append((self.now, row))
            found.append((3 if self.case.deletes and at_random.random() < 0.3 else 0, row))
        return found


def runs() -> Iterator[tuple[str, str, int | None, int]]:
    """Every operator with and without a time to live, each time with other keys."""
    names = itertools.cycle(KEYS)
    for seed in range(SEEDS):
        for name, case in CASES.items():
            for time_to_live in (None, 500) if case.expires else (None,):
                yield name, next(names), time_to_live, seed
        next(names)


@pytest.mark.parametrize(("name", "key", "time_to_live", "seed"), list(runs()))
def test_it_comes_to_the_same(name: str, key: str, time_to_live: int | None, seed: int) -> None:
    case = CASES[name]
    script = Script(seed, case, key, time_to_live is not None)
    at_random, spec = script.at_random, case.spec(script.schema, time_to_live)
    # No memory: pages come and go with every batch. Much of it: what was in pages stays in memory from then on.
    backends = [RocksDBTables(memory=memory) for memory in (1, 300_000, 10**9)]
    calm = Job(case.operator, spec, HashMapTables(), 1)
    wild = Job(case.operator, spec, backends[at_random.randrange(2)], 2)
    for number in range(24):
        parts, failures = script.parts(number), at_random.choice([0, 0, 1, 2])
        expected, got = calm.batch(parts, script.now), wild.batch(parts, script.now, at_random, failures)
        if case.in_order:
            assert by_key(got) == by_key(expected), number
        else:
            assert net(got) == net(expected), number
            if case.sides == 2:
                assert Counter(map(comparable, got)) == Counter(map(comparable, expected)), number
        if time_to_live is None:
            assert_same(wild.stored(), calm.stored())
        chance = at_random.random()
        if chance < 0.15:
            wild.restart(at_random.choice([*backends, HashMapTables()]))
        elif chance < 0.3:
            wild.rescale(at_random.choice([*backends, HashMapTables()]), at_random.randrange(1, 4))


def assert_same(got: dict[str, dict[Any, Any]], expected: dict[str, dict[Any, Any]]) -> None:
    """Which keys there are, and the count or list that comes first. What else a NULL is beside is nobody's business."""
    for name in got.keys() | expected.keys():
        mine, other = got.get(name, {}), expected.get(name, {})
        assert mine.keys() == other.keys(), (name, mine.keys() ^ other.keys())
        different = {key: (mine[key][:1], other[key][:1]) for key in mine if mine[key][:1] != other[key][:1]}
        assert not different, (name, different)
