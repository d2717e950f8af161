"""What a table says it holds is about what its process would get back."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.runtime.state.growing import GrowingTable
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.weight import Scale, weight


@dataclass
class Visit:
    user: str
    pages: list[int]


VALUES: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: n * 1000,
    "texts": lambda n: f"{n:0100d}",
    "tuples": lambda n: (n * 1000, f"name-{n}", n / 3),
    "maps": lambda n: {f"item-{n}-{at}": n * 1000 + at for at in range(5)},
    "objects": lambda n: Visit(f"user-{n}", [n * 1000 + at for at in range(10)]),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("fits", [True, False])
def test_what_is_held(kind: str, fits: bool) -> None:
    make = VALUES[kind]
    store = MemoryStore()
    gc.collect()
    tracemalloc.start()
    try:
        table = GrowingTable(b"t", store, {}, fits)
        for n in range(5_000):
            table.put(f"key-{n}", make(n))
        written = list(table.changes())
        cells = sum(len(cell or b"") for _, cell in written)
        del written
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
        # Of pages, what the store has of them stays as well.
        assert 0.6 < table.releasable_bytes / taken < 1.5, (table.releasable_bytes, taken, cells)
    finally:
        tracemalloc.stop()


def test_what_is_only_read_is_weighed_too() -> None:
    store, shape = MemoryStore(), dict[str, Any]()
    table = GrowingTable(b"t", store, shape, fits=False)
    for n in range(100):
        table.put(n, ["x" * 50 + str(at) for at in range(200)])
    store.write(table.changes())
    releasable_bytes, later = table.releasable_bytes, GrowingTable(b"t", store, shape, fits=False)
    later.load(range(100))
    assert 0.9 < later.releasable_bytes / releasable_bytes < 1.1


def test_what_was_not_written_yet_is_weighed_too() -> None:
    table = GrowingTable(b"t", MemoryStore(), {})
    assert table.releasable_bytes == 0
    for n in range(10):
        table.put(n, "x" * 1_000_000)
    assert 10_000_000 < table.releasable_bytes < 11_000_000


def test_a_long_collection_is_known_by_its_first_elements() -> None:
    assert 0.9 < weight(list(range(1000, 101_000))) / (100_000 * (8 + 28)) < 1.1
    assert weight(["x" * 1000] * 10) > 10_000
    assert weight({}) < weight({1: "a"}) < weight({1: "a" * 100})


def test_what_holds_itself_has_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert weight(endless) < 10_000


def test_no_single_batch_decides() -> None:
    scale = Scale()
    scale.learn([["x" * 1000, 1, "key"]] * 100)
    before = scale.of(1000)
    scale.learn([["x" * 100_000, 1, "key"]])
    assert before < scale.of(1000) < before * 30
    scale.learn([])
    assert scale.of(0) == 0
