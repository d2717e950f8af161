"""Rows of OVER's frames are found by their group, and rows that wait by the least time: not by looking at all."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from operatorkit import OperatorRun

from firesteel.datastream.operators import Records
from firesteel.runtime.operators.table import AggregateCall, OverAggregate, OverAggregateOperator
from firesteel.runtime.operators.table import rows_of_groups as module
from firesteel.runtime.operators.table.rows_of_groups import RowsOfGroups
from firesteel.runtime.operators.table.stored_rows import StoredRows
from firesteel.runtime.state.columnar.slots import SlotTable
from firesteel.runtime.state.store import MemoryStore

LONG = pa.int64()
SCHEMA = pa.schema([("word", pa.string()), ("n", LONG), ("at", LONG)])


def rows_of(words: list[str], numbers: list[int], times: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(words, pa.string()), pa.array(numbers, LONG), pa.array(times, LONG)], schema=SCHEMA
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_groups_are_those_that_are_there_in_their_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 6)
    chance = random.Random(seed)
    stored, store, shape = StoredRows(SCHEMA, (0,)), MemoryStore(), dict[str, Any]()
    stored.table.attach(b"rows", store, shape)
    groups = SlotTable([pa.string()], [])
    groups.attach(b"groups", MemoryStore(), {})
    found = RowsOfGroups(stored, groups, 1)
    there: dict[str, list[int]] = {}
    number = 0
    for _ in range(150):
        words = chance.sample("abcdefghij", chance.randint(1, 4))
        slots = groups.slots([pa.array(words)])
        rows, places = found.find(slots)
        for place, word in enumerate(words):
            own = rows[places == place]
            assert stored.batch(own).column(1).to_pylist() == there.get(word, [])
            gone = chance.randint(0, len(own))
            stored.table.remove(own[:gone])
            there[word] = there.get(word, [])[gone:]
        added = sorted(chance.choices(range(len(words)), k=chance.randint(0, 5)))
        numbers = list(range(number, number + len(added)))
        number += len(added)
        new = stored.add(rows_of([words[at] for at in added], numbers, numbers), np.array(numbers, np.int64))
        found.add(new, slots[np.array(added, np.int64)])
        for at, one in zip(added, numbers, strict=True):
            there[words[at]].append(one)
        if chance.random() < 0.1:
            store.write(stored.table.changes())
            if chance.random() < 0.5:
                stored.table.attach(b"rows", store, shape)


def test_a_watermark_costs_the_rows_of_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OverAggregate(
        (0,), (AggregateCall("SUM", 1, LONG),), SCHEMA, pa.schema([*SCHEMA, ("sum", LONG)]), 2, True, 2
    )
    run = OperatorRun(OverAggregateOperator, spec)

    def process(*rows: tuple[str, int, int]) -> None:
        words, numbers, times = (list(column) for column in zip(*rows, strict=True))
        run.operator.process(Records([rows_of(words, numbers, times)], input=0))

    process(*((f"w{n % 100}", n, n) for n in range(1000)), ("later", 1, 9000))
    run.watermark(1000)
    run.end_batch()
    process(("w0", 1, 1001))
    run.watermark(1001)
    looked: list[int] = []
    content = StoredRows.content
    monkeypatch.setattr(StoredRows, "content", lambda self: (looked.append(self.table.size), content(self))[1])
    run.stub.emitted.clear()
    for at in range(1002, 1010):
        process((f"w{at % 2}", at, at))
        run.watermark(at)
    run.watermark(8999)
    assert looked == [], "nothing was due among the rows that wait, and frames were found by their keys"
    run.watermark(9000)
    assert len(looked) == 1
