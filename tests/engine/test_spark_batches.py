"""How large batches are, and that they fit into memory."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from sparkkit import AppendSink, notes, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.engine.batch_sizer import FIRST_BATCH, LARGEST_BATCH, BatchSizer
from firesteel.runtime.frames import Frame, FrameSpool, decode, encode

NONE = WatermarkStrategy.no_watermarks()


def batch_sizes(checkpoint: Path) -> list[int]:
    """How many numbers each batch read, from the offsets that Spark logged."""
    files = sorted(
        (f for f in (checkpoint / "query" / "offsets").iterdir() if f.name.isdigit()), key=lambda f: int(f.name)
    )
    offsets = [json.loads(file.read_text().splitlines()[-1]) for file in files]
    ends = [next(iter(offset["positions"].values())) for offset in offsets]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def test_batches_grow_until_they_take_long_enough(tmp_path: Path) -> None:
    total = 600_000
    # However slow the machine is, they take less than this.
    target = {"firesteel.batch.target-duration": "10 min"}
    env = spark_env(2, {"firesteel.checkpoint.dir": tmp_path / "checkpoint", **target})
    numbers = env.from_source(NumberSequenceSource(1, total), NONE, "numbers")
    numbers.filter(lambda n: n % 100_000 == 0).add_sink(AppendSink(tmp_path, "seen"))
    env.execute("growing")
    sizes = batch_sizes(tmp_path / "checkpoint")
    assert sum(sizes) == total
    assert sizes[0] == FIRST_BATCH
    assert len(sizes) >= 3
    assert max(sizes) > 16 * FIRST_BATCH
    assert sorted(notes(tmp_path, "seen")) == list(range(100_000, total + 1, 100_000))


def test_a_fixed_size_overrides_that(tmp_path: Path) -> None:
    config = {"firesteel.checkpoint.dir": tmp_path / "checkpoint", "firesteel.batch.max-records": 10_000}
    env = spark_env(2, config)
    numbers = env.from_source(NumberSequenceSource(1, 35_000), NONE, "numbers")
    numbers.filter(lambda n: n % 5000 == 0).add_sink(AppendSink(tmp_path, "seen"))
    env.execute("fixed")
    assert batch_sizes(tmp_path / "checkpoint") == [10_000, 10_000, 10_000, 5000]
    assert sorted(notes(tmp_path, "seen")) == list(range(5000, 35_001, 5000))


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (1, 16 * FIRST_BATCH),  # fast: grows, but not beyond what start-up costs could hide
        (250, 4 * FIRST_BATCH),
        (100_000, FIRST_BATCH),  # slow: never below the first size
    ],
)
def test_the_size_after_the_first_batch(duration: float, expected: int) -> None:
    sizer = BatchSizer(target_ms=1000)
    sizer.observe(FIRST_BATCH, duration)
    assert sizer.limit == expected


def test_the_sizer_comes_back_down_slowly_and_has_an_upper_end() -> None:
    sizer = BatchSizer(target_ms=1000)
    for _ in range(10):
        sizer.observe(sizer.limit, 1)
    assert sizer.limit == LARGEST_BATCH
    sizer.observe(LARGEST_BATCH, 100_000)
    assert sizer.limit == LARGEST_BATCH // 4
    sizer.observe(10, 100_000)
    assert sizer.limit == LARGEST_BATCH // 4, "a batch that was not full says nothing"


def test_frames_beyond_the_limit_wait_in_a_file_and_come_back_in_order() -> None:
    spool = FrameSpool(limit=1000)
    frames = [
        Frame(1, 0, edge, upstream, n, 0, encode([[n] * 50]))
        for edge in (0, 1)
        for upstream in (0, 1)
        for n in range(10)
    ]
    for frame in reversed(frames):
        spool.add(frame.to_bytes())
    assert spool._file is not None, "this is about the way through a file"
    assert spool._in_memory <= 1000
    assert [decode(cell) for cell in spool.in_order()] == [[[n] * 50] for _ in range(4) for n in range(10)]
    assert spool._file is None


def deleted_files() -> int:
    """How many files without a name this process has open: a spool's is one."""
    folder = Path("/proc/self/fd")
    links = [os.readlink(link) for link in folder.iterdir() if link.is_symlink() and os.path.lexists(link)]
    return len([link for link in links if link.startswith(tempfile.gettempdir()) and link.endswith("(deleted)")])


@pytest.mark.parametrize(("limit", "files"), [("1 mb", 1), ("64 mb", 0)])
def test_a_batch_larger_than_a_spool_holds_in_memory(limit: str, files: int) -> None:
    """About 9 MB of records in one batch for one subtask."""
    env = spark_env(1, {"firesteel.batch.max-records": 1_000_000, "firesteel.frames.memory": limit})
    numbers = env.from_source(NumberSequenceSource(0, 899), NONE, "numbers")
    # Texts that differ: equal ones would be one object in a frame.
    texts = numbers.map(lambda n: (n, f"{n:05d}" * 2000))
    summed = texts.key_by(lambda pair: 0).map(lambda pair: (pair[0], len(pair[1]), pair[1][:5], deleted_files()))
    with summed.execute_and_collect() as records:
        assert list(records) == [(n, 10_000, f"{n:05d}", files) for n in range(900)]
