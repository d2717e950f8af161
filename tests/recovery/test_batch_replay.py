"""A recorded micro-batch again, in this process: ``firesteel replay``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import CommitSink, commit_calls, script_environment, spark_env

from firesteel.cli import main
from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError

NONE = WatermarkStrategy.no_watermarks()
CALLS: list[tuple[int, int]] = []


class Fragile(KeyedProcessFunction):
    """Counts, and fails at one record."""

    def __init__(self, fails_at: int) -> None:
        self.fails_at = fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        CALLS.append((os.getpid(), value))
        if value == self.fails_at:
            raise ValueError(f"{value} after {count}")
        yield [ctx.get_current_key(), count]


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """The checkpoint of a job that failed in its third batch."""
    settings = {"firesteel.checkpoint.dir": tmp_path / "checkpoint", "firesteel.batch.max-records": 10}
    env = spark_env(2, settings)
    numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").set_parallelism(1)
    (tmp_path / "out").mkdir()
    numbers.key_by(lambda n: n % 3).process(Fragile(25)).sink_to(CommitSink(tmp_path / "out")).name("out")
    with pytest.raises(JobExecutionError):
        env.execute("fragile")
    return tmp_path / "checkpoint"


def files_of(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_failed_batch_fails_again_here_and_an_earlier_one_does_not(
    failed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, commits = files_of(failed), len(commit_calls(failed.parent / "out"))
    CALLS.clear()

    assert main(["replay", str(failed)]) == 1
    errors = capsys.readouterr().err
    # With the state from before the batch, in this very process, where breakpoints work.
    assert "ValueError: 25 after 9" in errors
    assert {pid for pid, _ in CALLS} == {os.getpid()}
    assert {value for _, value in CALLS} <= set(range(20, 30))

    assert main(["replay", str(failed), "--batch", "1"]) == 0
    shown = capsys.readouterr().out
    # What the sink got then, and nothing was written anywhere.
    assert sorted(line for line in shown.splitlines() if line.startswith("out")) == sorted(
        f"out:{1 + subtask}> {[key, count]}" for subtask, key, count in expected(shown)
    )
    assert "batch 1 of 'fragile': 10 records read" in shown
    assert files_of(failed) == before
    assert len(commit_calls(failed.parent / "out")) == commits

    assert main(["replay", str(failed), "--batch", "77"]) == 1
    assert "has no batch 77: its log has 0 to 2" in capsys.readouterr().err


def expected(shown: str) -> Iterator[tuple[int, int, int]]:
    subtask = {
        int(line.split("[")[1].split(",")[0]): int(line.split(":")[1].split(">")[0]) - 1
        for line in shown.splitlines()
        if line.startswith("out")
    }
    counts = {key: len(range(key, 10, 3)) for key in range(3)}
    for n in range(10, 20):
        counts[n % 3] += 1
        yield subtask[n % 3], n % 3, counts[n % 3]


def test_the_first_batch_and_a_program_of_today(
    failed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "fixed.py"
    program.write_text(
        f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from test_batch_replay import Fragile, NONE, NumberSequenceSource, CommitSink, spark_env
env = spark_env(2)
numbers = env.from_source(NumberSequenceSource(0, 99), NONE, "numbers").set_parallelism(1)
numbers.key_by(lambda n: n % 3).process(Fragile(-1)).sink_to(CommitSink("nowhere")).name("out")
env.execute("fragile")
"""
    )
    assert main(["replay", str(failed), "--program", str(program)]) == 0
    assert "[1, 9]" in capsys.readouterr().out
    assert main(["replay", str(failed), "-b", "0"]) == 0
    assert "[0, 4]" in capsys.readouterr().out


def test_files_that_the_job_brings(tmp_path: Path) -> None:
    """In a process that finds them nowhere else, and after they are gone from where the program had them."""
    brought, checkpoint = tmp_path / "brought", tmp_path / "checkpoint"
    brought.mkdir()
    (brought / "replayed_module.py").write_text("def check(n):\n    raise ValueError(f'checked {n}')\n")
    (brought / "limits.txt").write_text("seven")
    env = spark_env(1, {"firesteel.checkpoint.dir": checkpoint})
    env.add_python_file(str(brought / "replayed_module.py"))
    env.register_cached_file(str(brought / "limits.txt"), "limits")
    env.from_collection([7]).map(Brought()).print()
    with pytest.raises(JobExecutionError, match="checked 7 seven"):
        env.execute("bringing")
    shutil.rmtree(brought)

    def replayed() -> str:
        command = [sys.executable, "-m", "firesteel", "replay", str(checkpoint)]
        paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
        environment = script_environment(PYTHONPATH=paths, FIRESTEEL_FULL_TRACE=None)
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 1
        return done.stderr

    assert "ValueError: checked 7 seven" in replayed()
    shutil.rmtree(checkpoint / "firesteel-files")
    assert "No module named 'replayed_module'" in replayed()


class Brought(MapFunction):
    """Uses a module and a file of the job's."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.limit = Path(runtime_context.get_distributed_cache().get_file("limits")).read_text()

    def map(self, value: int) -> None:
        from replayed_module import check  # type: ignore[import-not-found]

        check(f"{value} {self.limit}")
