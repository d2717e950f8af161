"""State of operators on tables that is larger than memory: in pages it comes to what it comes to in memory."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import environment
from operatorkit import Change, OperatorRun
from savepointkit import Halves
from sqlkit import FAILURES, RESTARTS, STEPS, Failing, everything, left, undisturbed

from firesteel.common import Row, Types
from firesteel.datastream import DataStream
from firesteel.errors import CheckpointError, FiresteelError
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
from firesteel.runtime.operators.table.normalize import ChangelogNormalizeOperator
from firesteel.runtime.state.columnar import SlotColumn, SlotTable, slot_pages
from firesteel.runtime.state.columnar.slot_pager import SlotPager
from firesteel.runtime.state.columnar.slots import scan_slots
from firesteel.runtime.state.store import MemoryStore
from firesteel.state_processor import Savepoint
from firesteel.table import StreamTableEnvironment

LONG = pa.int64()
ROWS = pa.schema([("k", pa.string()), ("n", LONG), ("x", pa.float64())])
TIGHT = {
    "state_backend_type": "rocksdb",
    "state_backend_rocksdb_memory_fixed__per__slot": "1 kb",
}
HASHMAP = {"state_backend_type": "hashmap"}
SMALL_PAGES = 5


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a few slots, so that few rows make many pages."""
    monkeypatch.setattr(slot_pages, "PAGE_ROWS", SMALL_PAGES)


# The table of slots


class Paged:
    """A table in pages, beside a dict."""

    def __init__(self, time_to_live: int | None = None) -> None:
        self.store, self.shape = MemoryStore(), dict[str, Any]()
        self.expected: dict[Any, tuple[Any, int]] = {}
        self.time_to_live, self.now = time_to_live, 0
        self.open()

    def open(self) -> None:
        columns = [SlotColumn("count", LONG, np.int64), SlotColumn("texts", pa.list_(pa.string()), object, None)]
        self.table = SlotTable([pa.string()], columns, [LONG], self.time_to_live)
        self.pager = SlotPager(memory=1)
        self.pager.add(self.table)
        self.table.attach(b"t", self.store, self.shape)

    def batch(self, at_random: random.Random, rows: int, keys: int) -> None:
        places = [(f"k{at_random.randrange(keys)}", at_random.choice([1, 2, None])) for _ in range(rows)]
        batch = pa.record_batch({"k": [key for key, _ in places], "part": pa.array([part for _, part in places], LONG)})
        self.table.expire(self.now)
        for piece in self.pager.pieces(batch, [batch.column(0)], self.store):
            whole = list(dict.fromkeys(zip(*(column.to_pylist() for column in piece.columns), strict=True)))
            slots = self.table.slots([pa.array([key for key, _ in whole]), pa.array([part for _, part in whole], LONG)])
            for place, slot in zip(whole, slots.tolist(), strict=True):
                self.check(place, slot)
                if at_random.random() < 0.3:
                    self.table.remove(np.array([slot]))
                    self.expected.pop(place, None)
                else:
                    count = int(self.table.values[0][slot]) + 1
                    self.table.values[0][slot], self.table.values[1][slot] = count, ["x"] * (count % 3)
                    self.table.put(np.array([slot]))
                    self.expected[place] = count, self.now
        self.store.write(self.pager.changes())
        self.table.attach(b"t", self.store, self.shape, unchanged=True)

    def check(self, place: Any, slot: int) -> None:
        count, used = self.expected.get(place, (0, 0))
        if self.time_to_live is not None and used + self.time_to_live <= self.now:
            count = 0
        assert bool(self.table.alive[slot]) is (count > 0), place
        assert self.table.values[0][slot] == count
        assert (self.table.values[1][slot] or []) == ["x"] * (count % 3)

    def stored(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for keys, values in scan_slots(b"t", self.store, self.shape):
            assert not set(keys) & set(found)
            found.update(zip(keys, values, strict=True))
        return found


@pytest.mark.parametrize("seed", range(4))
def test_pages_have_what_a_dict_has(small_pages: None, seed: int) -> None:
    at_random = random.Random(seed)
    paged = Paged()
    for number in range(40):
        # The state grows, is touched here and there, and shrinks again.
        paged.batch(at_random, at_random.choice([1, 20, 300]), 50 if number > 30 else 10 * (number + 1))
        if number % 7 == 3:
            paged.open()
        assert paged.table.entries == len(paged.expected)
        assert sum(map(len, paged.store.content.values())) == paged.shape["bytes"]
    assert paged.stored() == {place: (count, ["x"] * (count % 3)) for place, (count, _) in paged.expected.items()}
    assert paged.shape["pages"] > 20
    assert len(paged.store.content) <= paged.shape["pages"]
    # Nothing stays in memory behind a batch.
    assert paged.table.size == 0


def test_what_expires_in_pages_that_nobody_reads_goes_away(small_pages: None) -> None:
    at_random = random.Random(1)
    paged = Paged(time_to_live=100)
    paged.batch(at_random, 300, 200)
    assert paged.table.entries > 100
    for paged.now in range(50, 4000, 50):
        # One key, always the same.
        paged.batch(at_random, 3, 1)
    assert paged.table.entries <= 3


def test_what_is_put_is_newer_than_its_page() -> None:
    paged = Paged()
    for counts in ([1, 2], [3, None]):
        slots = paged.table.slots([pa.array(["a", "b"]), pa.array([1, 1])])
        for slot, count in zip(slots, counts, strict=True):
            if count is not None:
                paged.table.values[0][slot] = count
                paged.table.put(np.array([slot]))
        paged.store.write(paged.pager.changes())
    assert paged.stored() == {("a", 1): (3, None), ("b", 1): (2, None)}


class Counting(MemoryStore):
    """How often each cell was read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[bytes] = Counter()
        self.written: Counter[bytes] = Counter()

    def get_many(self, keys: Any) -> Any:
        self.read.update(keys)
        return super().get_many(keys)

    def write(self, changes: Any) -> None:
        changes = list(changes)
        self.written.update(key for key, _ in changes)
        super().write(changes)


def test_a_batch_reads_and_writes_the_pages_it_touches_once(small_pages: None) -> None:
    paged = Paged()
    store = paged.store = Counting()
    paged.open()
    at_random = random.Random(0)
    for _ in range(3):
        paged.batch(at_random, 2000, 1000)
    pages = paged.shape["pages"]
    assert pages > 300
    store.read.clear()
    store.written.clear()
    paged.batch(at_random, 2000, 1000)
    assert len(store.read) > pages / 2
    # Some are split, which is one more time.
    assert sum(store.read.values()) < 1.1 * pages
    assert sum(store.written.values()) < 1.1 * pages
    store.read.clear()
    store.written.clear()
    paged.batch(at_random, 1, 1000)
    assert sum(store.read.values()) <= 2
    assert sum(store.written.values()) <= 2


def test_pages_that_are_too_large_are_split_batch_by_batch(monkeypatch: pytest.MonkeyPatch, small_pages: None) -> None:
    paged = Paged()
    store = paged.store = Counting()
    paged.open()
    at_random = random.Random(0)
    for _ in range(3):
        paged.batch(at_random, 2000, 1000)
    pages = paged.shape["pages"]
    # As if the slots had become four times as large.
    monkeypatch.setattr(slot_pages, "PAGE_BYTES", paged.shape["bytes"] // pages // 4)
    for number in range(pages):
        store.read.clear()
        paged.batch(at_random, 1, 1000)
        assert sum(store.read.values()) <= 8, number
    assert 3 * pages <= paged.shape["pages"]
    assert len(paged.stored()) == paged.table.entries == len(paged.expected)


def test_wide_slots_have_pages_of_their_own_from_the_start() -> None:
    store, shape = MemoryStore(), dict[str, Any]()
    table = SlotTable([LONG], [SlotColumn("text", pa.string(), object, None)])
    table.attach(b"t", store, shape)
    pager = SlotPager(memory=1)
    pager.add(table)
    slots = table.slots([pa.array(range(1000))])
    table.values[0][slots] = "x" * 2000
    table.put(slots)
    store.write(pager.changes())
    assert max(map(len, store.content.values())) < 2 * slot_pages.PAGE_BYTES


def test_long_chains_are_found_as_short_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table = SlotTable([pa.string()], [], [LONG])
    keys = pa.array(random.Random(2).choices(["a", "b", "b", "b", None], k=300))
    table.slots([keys, pa.array(range(300))])
    asked = [pa.array(["b", "x", None, "a", "b"])]
    short = [found.tolist() for found in chains.Chains(table, [pa.string()]).matches(asked, 5)]
    monkeypatch.setattr(chains, "LONG", 100)
    long = [found.tolist() for found in chains.Chains(table, [pa.string()]).matches(asked, 5)]
    assert long == short
    assert len(short[0]) > 300


def test_a_damaged_page_is_told() -> None:
    paged = Paged()
    paged.batch(random.Random(0), 100, 50)
    (cell,) = paged.store.content
    paged.store.content[cell] = b"nonsense"
    with pytest.raises(CheckpointError, match=r"The stored state 't' cannot be read \(page 0"):
        paged.batch(random.Random(0), 1, 50)


# Operators


def grouping(retracts: bool, **options: Any) -> GroupAggregate:
    calls = (
        AggregateCall("SUM", 1, LONG),
        AggregateCall("MIN", 1, LONG),
        AggregateCall("MAX", 2, pa.float64()),
        AggregateCall("COUNT", 1, LONG, distinct=True),
        AggregateCall("LAST_VALUE", 2, pa.float64()),
        AggregateCall("COUNT", None, LONG),
    )
    schema = pa.schema([ROWS.field(0), *(pa.field(f"r{n}", call.type) for n, call in enumerate(calls))])
    return GroupAggregate((0,), calls, ROWS, schema, retracts=retracts, **options)


def joining(kind: str) -> Join:
    schema = ROWS if kind in ("SEMI", "ANTI") else pa.schema([*ROWS, ("k2", pa.string()), ("n2", LONG), ("x2", LONG)])
    if kind not in ("SEMI", "ANTI"):
        schema = pa.schema([*ROWS, *(field.with_name(f"{field.name}2") for field in ROWS)])
    return Join(kind, (0,), (0,), ROWS, ROWS, schema, None)


RANKED = ROWS.append(pa.field("place", LONG))
CASES: dict[str, tuple[type[Any], Any, bool]] = {
    "group by, insertions": (GroupAggregateOperator, grouping(False), False),
    "group by, changes": (GroupAggregateOperator, grouping(True), True),
    "group by, mini-batch": (GroupAggregateOperator, grouping(True, mini_batch=True), True),
    **{
        f"{kind} join": (JoinOperator, joining(kind), True)
        for kind in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
    },
    "top 2": (RankOperator, Rank((0,), (Order(1),), ROWS, RANKED, 2, with_rank=True), False),
    "top 2 of changes": (RankOperator, Rank((0,), (Order(1),), ROWS, RANKED, 2, with_rank=True, retracts=True), True),
    "first row": (FirstRowOperator, FirstRow((0,), (Order(2),), ROWS, ROWS), False),
    "last row": (ChangelogNormalizeOperator, ChangelogNormalize((0,), ROWS), False),
}


def changes(at_random: random.Random, there: list[tuple[Any, ...]], count: int, takes_back: bool) -> list[Change]:
    found: list[Change] = []
    for _ in range(count):
        if takes_back and there and at_random.random() < 0.4:
            found.append((3, there.pop(at_random.randrange(len(there)))))
        else:
            row = (f"k{at_random.randrange(60)}", at_random.choice([1, 2, 3, None]), at_random.choice([0.5, 2.5]))
            there.append(row)
            found.append((0, row))
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_operators_give_what_they_give_in_memory(small_pages: None, case: str, seed: int) -> None:
    """Key by key: the order of rows with different keys is another one, if they do not fit into memory together."""
    operator, spec, takes_back = CASES[case]
    at_random = random.Random(seed)
    in_memory, tight = OperatorRun(operator, spec), OperatorRun(operator, spec, memory=1)
    there: tuple[list[Any], list[Any]] = ([], [])
    for number in range(25):
        side = at_random.randrange(2) if isinstance(spec, Join) else 0
        rows = changes(at_random, there[side], at_random.choice([3, 40, 150]), takes_back)
        for run in (in_memory, tight):
            run.take(rows, ROWS, side)
            if number % 3 == 2:
                run.end_batch()
            if number % 8 == 7:
                run.restart()
    in_memory.end_batch()
    tight.end_batch()
    assert tight.entries == in_memory.entries > 0
    shapes = tight.stub.shapes.values()
    assert all(shape["pages"] > 1 for shape in shapes), "nothing was in pages"
    if getattr(spec, "mini_batch", False):
        # A bundle ends where memory does.
        assert standing(tight.changes) == standing(in_memory.changes)
    elif isinstance(spec, Join):
        # In which order a row meets those of its key depends on how they came into memory.
        assert standing(tight.changes) == standing(in_memory.changes)
        assert Counter(tight.changes) == Counter(in_memory.changes)
    else:
        assert by_key(tight.changes) == by_key(in_memory.changes)


def by_key(found: list[Change]) -> dict[Any, list[Change]]:
    keys: dict[Any, list[Change]] = {}
    for kind, row in found:
        # The right side's key, where a row has no left one.
        key = row[0] if row[0] is not None or len(row) < 6 else row[3]
        keys.setdefault(key, []).append((kind, row))
    return keys


def standing(found: list[Change]) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for kind, row in found:
        rows[row] += 1 if kind in (0, 2) else -1
        assert rows[row] >= 0
    return +rows


# Programs


@pytest.mark.parametrize("mini_batch", ["false", "true"])
def test_a_failure_inside_every_batch(small_pages: None, tmp_path: Path, mini_batch: str) -> None:
    failing = Failing(tmp_path, FAILURES)

    got = Halves(tmp_path).whole(failing, STEPS, 2, **RESTARTS, **TIGHT, table_exec_mini__batch_enabled=mini_batch)

    assert left(got) == undisturbed()
    assert failing.count() == len(STEPS)


@pytest.mark.parametrize(
    ("before", "after"),
    [(TIGHT, TIGHT), (TIGHT, HASHMAP), (HASHMAP, TIGHT)],
    ids=["in pages", "into memory", "out of memory"],
)
def test_a_savepoint_and_another_parallelism(
    small_pages: None, tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    halves = Halves(tmp_path)

    got = halves.save(everything, STEPS[:2], 3, **before)
    got += halves.resume(everything, STEPS, 2, **after)

    assert left(got) == undisturbed()


def test_a_query_whose_state_is_larger_than_memory(small_pages: None) -> None:
    env = environment(**{"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"})
    env.create_temporary_view("t", env.from_elements([(n % 2000, n) for n in range(6000)], ["k", "n"]))
    found = env.sql_query("SELECT k, COUNT(*) AS c, MAX(n) AS m FROM t GROUP BY k").to_pandas()
    assert sorted(found.itertuples(index=False)) == [(k, 3, k + 4000) for k in range(2000)]


@pytest.mark.parametrize("setting", ["rocksdb", "hashmap"])
def test_state_that_must_be_in_memory_is_an_error_where_the_backend_does_not_allow_it(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr("firesteel.runtime.state.backend.COLUMNS_MEMORY", 1 << 10)
    limits = {"state.backend.type": setting, "state.backend.rocksdb.memory.fixed-per-slot": "1kb"}
    env = environment(**limits)
    env.create_temporary_view("t", env.from_elements([(n,) for n in range(2000)], ["n"]))
    # Without a key there is nothing to make pages by.
    query = env.sql_query("SELECT COUNT(DISTINCT n) AS c FROM t")
    if setting == "hashmap":
        assert query.to_pandas()["c"].tolist() == [2000]
        return
    with pytest.raises(FiresteelError, match=r"take \d+ MB, and the state backend allows 0 MB.*fixed-per-slot"):
        query.to_pandas()


NUMBERS = Types.ROW_NAMED(["k", "n"], [Types.DOUBLE(), Types.LONG()])
NAN = float("nan")
BY_DOUBLE = {
    "SELECT k, n, COUNT(*) AS c FROM t GROUP BY k, n": {("nan", 1, 3), ("0.0", 1, 2), (None, 1, 2), ("1.5", 1, 1)},
    "SELECT k, COUNT(*) AS c FROM t GROUP BY k": {("nan", 3), ("0.0", 2), (None, 2), ("1.5", 1)},
    "SELECT n, COUNT(DISTINCT k) AS c FROM t GROUP BY n": {(1, 3)},
}


@pytest.mark.parametrize("query", BY_DOUBLE)
@pytest.mark.parametrize(("before", "after"), [(TIGHT, TIGHT), (HASHMAP, TIGHT), (TIGHT, HASHMAP)])
def test_nan_is_a_key_behind_a_savepoint(
    tmp_path: Path, query: str, before: dict[str, str], after: dict[str, str]
) -> None:
    def build(pairs: DataStream) -> DataStream:
        tables = StreamTableEnvironment.create(pairs.get_execution_environment())
        rows = pairs.map(lambda pair: Row(k=pair[0], n=pair[1]), output_type=NUMBERS).uid("rows").set_parallelism(1)
        tables.create_temporary_view("t", tables.from_data_stream(rows))
        return tables.to_changelog_stream(tables.sql_query(query)).map(shown)

    def shown(row: Row) -> tuple[int, tuple[str, ...]]:
        return row.get_row_kind().value, tuple(str(value + 0.0 if isinstance(value, float) else value) for value in row)

    steps = [[(NAN, 1), (0.0, 1), (None, 1)], [(NAN, 1), (-0.0, 1), (None, 1)], [(NAN, 1), (1.5, 1)]]
    halves = Halves(tmp_path)

    got = halves.save(build, steps[:2], 2, **before)
    savepoint = Savepoint.load(halves.path)
    (groups,) = (state for state in savepoint.states() if state.name == "groups")
    keys = [str(row.get("k")) for row in savepoint.read_arrow(groups.uid, groups.name).to_pylist()]
    got += halves.resume(build, steps, 3, **after)

    assert sorted(keys) == (["0.0", "None", "nan"] if "k, " in query else ["None"])
    assert set(standing(got)) == {tuple(map(str, row)) for row in BY_DOUBLE[query]}
