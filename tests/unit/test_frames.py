"""Frames: what a cell holds, and the order in which a subtask gets its cells back."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from firesteel.runtime.frames import (
    DRIVER,
    Frame,
    FrameSpool,
    Mark,
    Watermark,
    decode,
    encode,
    first_unpicklable,
    header_of,
)


def cell(edge: int, upstream: int, sequence: int, elements: list[Any]) -> bytes:
    return Frame(1, 2, edge, upstream, sequence, 1234, encode(elements)).to_bytes()


def test_a_cell_carries_its_header_and_elements() -> None:
    elements = [(["k"], ["v"], [5]), Watermark(3, 99), Mark({3: (99, None)}, True)]
    content = Frame(DRIVER, 65535, 7, 8, 2**32 - 1, -5, encode(elements)).to_bytes()
    assert header_of(content) == (DRIVER, 65535, 7, 8, 2**32 - 1, -5)
    assert decode(content) == elements
    assert decode(memoryview(content)) == elements


def test_elements_keep_their_kind() -> None:
    chunk, watermark, mark = decode(cell(0, 0, 0, [(None, [1], None), Watermark(1, 2), Mark({}, False)]))
    assert isinstance(watermark, Watermark)
    assert isinstance(mark, Mark)
    assert not isinstance(chunk, Watermark | Mark)


@pytest.mark.parametrize("limit", [0, 100, 1 << 20], ids=["all in a file", "some in a file", "all in memory"])
def test_cells_come_back_in_order_whatever_order_they_came_in(limit: int) -> None:
    places = [(edge, upstream, sequence) for edge in (0, 3) for upstream in range(3) for sequence in range(4)]
    shuffled = places[:]
    random.Random(1).shuffle(shuffled)
    spool = FrameSpool(limit)
    for place in shuffled:
        spool.add(cell(*place, [place]))
    assert [decode(content)[0] for content in spool.in_order()] == places


def test_a_spool_is_empty_and_closed_when_it_was_read() -> None:
    spool = FrameSpool(limit=0)
    spool.add(cell(0, 0, 0, ["x"]))
    file = spool._file
    assert file is not None
    assert len(list(spool.in_order())) == 1
    assert file.closed
    assert list(spool.in_order()) == []


def test_what_fits_stays_in_memory() -> None:
    spool = FrameSpool(limit=1 << 20)
    spool.add(cell(0, 0, 0, ["x"]))
    assert spool._file is None


def test_closing_a_spool_drops_what_it_holds() -> None:
    spool = FrameSpool(limit=0)
    spool.add(cell(0, 0, 0, ["x"]))
    spool.close()
    assert list(spool.in_order()) == []


def test_the_value_that_cannot_be_pickled_is_found() -> None:
    lock = threading.Lock()
    assert first_unpicklable([1, lock, 2]) is lock
    assert first_unpicklable([1, 2]) == [1, 2]
