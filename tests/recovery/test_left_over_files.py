"""A kill in the middle of writing a checkpoint's files: what it leaves is planted, and the job goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, committed, spark_env

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError
from firesteel.testing import CommitCrashes, CrashPoint

RECORDS, BATCH, KEYS = 150, 50, 7


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield [ctx.get_current_key(), count]


def run(out: Path, config: dict[str, Any]) -> None:
    env = spark_env(2, config)
    numbers = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % KEYS).process(Count()).sink_to(CommitSink(out))
    env.execute("left-over files")


def temporary(place: Path, task: str = "") -> None:
    """Spark writes a file under such a name, and renames it when it is complete. This one never was."""
    name = f".{place.name}.8d1a4c52-7b8e-4a37-9a0e-0d5b8a3c6f11{task}.tmp"
    (place.parent / name).write_bytes(b"v1\n{half")
    (place.parent / f".{name}.crc").write_bytes(b"crc\0\0\0\2\0")


def checksums(place: Path) -> Path:
    return place.parent / f".{place.name}.crc"


def test_a_job_goes_on_from_what_a_kill_left_of_files_that_were_being_written(tmp_path: Path) -> None:
    folder, out = tmp_path / "checkpoint", tmp_path / "out"
    out.mkdir()
    config = {"firesteel.checkpoint.dir": folder, "firesteel.batch.max-records": BATCH}
    # The second batch has written its state, and is not logged as done.
    crashes = CommitCrashes({CrashPoint.LOGGED: ["pass", "error"]})
    with crashes, pytest.raises(JobExecutionError, match="failed on purpose"):
        run(out, {**config, **crashes.config})
    query = folder / "query"
    logs = {name: sorted(int(one.name) for one in (query / name).glob("[0-9]*")) for name in ("offsets", "commits")}
    assert logs == {"offsets": [0, 1], "commits": [0]}
    done, undone = (query / "state" / "0" / "0" / f"{version}.changelog" for version in (1, 2))
    assert done.exists()
    assert undone.exists()
    # 1. Killed before a file was renamed.
    temporary(query / "offsets" / "2")
    temporary(query / "commits" / "1")
    temporary(query / "state" / "0" / "1" / "3.changelog", ".TID42")
    # 2. Killed after a new file was renamed, before its checksums were.
    for file in (query / "offsets" / "1", query / "commits" / "0", done):
        checksums(file).unlink()
    # 3. Killed while a batch was repeated: after its file had taken the place of the earlier attempt's, before its
    #    checksums had. The batch is not logged as done, so nobody reads the file before it is written once more.
    undone.write_bytes(done.read_bytes()[::-1])
    assert checksums(undone).exists()
    run(out, config)
    expected = {(n % KEYS, n // KEYS + 1) for n in range(RECORDS)}
    found = [tuple(record) for record in committed(out)]
    assert sorted(found) == sorted(expected)
