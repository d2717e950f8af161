"""Jobs that read text files which change: each line once, or an error that names the file."""

from __future__ import annotations

import gzip
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine import submit
from firesteel.errors import FailureKind, JobExecutionError
from firesteel.graph.specs import CollectSpec

LINES = [f"{name} {n:05d}" for name in ("a", "b", "c") for n in range(100)]
STOP = "b 00050"

reached, on = threading.Event(), threading.Event()


def gate(line: str) -> str:
    if line == STOP:
        reached.set()
        assert on.wait(150)
    return line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reached.clear()
    on.clear()
    for name in ("a", "b", "c"):
        write(tmp_path / "in" / f"{name}.txt", [line for line in LINES if line.startswith(name)])
    return tmp_path / "in"


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


class Run:
    """A job on the memory engine that reads a folder in small batches, and what came out of it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        known = {"firesteel.master": "memory", "firesteel.batch.max-records": "2", **settings}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(known))
        env.set_parallelism(2)
        channel = uuid.uuid4().hex
        env.read_text_file(str(folder)).uid("lines").map(gate)._sink("Collect", CollectSpec(channel))
        self.job = submit(env._submission("lines"))
        self.found: list[str] = []
        self._reader = threading.Thread(target=self._collect, args=(channel,), daemon=True)
        self._reader.start()

    def _collect(self, channel: str) -> None:
        try:
            self.found.extend(self.job.collect(channel))
        except JobExecutionError:
            """Told by the job's result, too."""

    def end(self) -> list[str]:
        self.job.get_job_execution_result().result()
        self._reader.join(150)
        return self.found


def stopped_in_the_middle(folder: Path) -> tuple[list[str], dict[str, str]]:
    """What a first run has read when it is stopped with a savepoint, and how to go on from that."""
    first = Run(folder)
    assert reached.wait(150)
    savepoint = first.job.stop_with_savepoint(False, str(folder.parent / "savepoints"))
    on.set()
    path = savepoint.result()
    found = first.end()
    assert STOP in found
    assert LINES[-1] not in found
    return found, {"execution.state-recovery.path": path}


CHANGES: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "nothing": (lambda folder: None, []),
    "a file is added in front": (lambda folder: write(folder / "0.txt", ["new"] * 50), ["new"] * 50),
    "a file is added in between": (lambda folder: write(folder / "aa.txt", ["new"] * 50), ["new"] * 50),
    "an archive is added": (lambda folder: write(folder / "aa.txt.gz", ["new"] * 50), ["new"] * 50),
    "a finished file goes": (lambda folder: (folder / "a.txt").unlink(), []),
    "lines are added to a finished file": (
        lambda folder: (folder / "a.txt").write_bytes((folder / "a.txt").read_bytes() + b"more\n"),
        ["more"],
    ),
    "lines are added to one that was begun": (
        lambda folder: (folder / "b.txt").write_bytes((folder / "b.txt").read_bytes() + b"more\n"),
        ["more"],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_between_a_savepoint_and_its_restore(folder: Path, change: str) -> None:
    first, settings = stopped_in_the_middle(folder)
    act, added = CHANGES[change]
    act(folder)
    second = Run(folder, **settings).end()
    assert sorted(first + second) == sorted(LINES + added)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda folder: os.truncate(folder / "b.txt", 300), r"The file .*/b\.txt was changed"),
        (lambda folder: os.truncate(folder / "a.txt", 300), r"The file .*/a\.txt was changed"),
        (lambda folder: (folder / "b.txt").unlink(), r"The file .*/b\.txt is gone"),
        (lambda folder: write(folder / "b.txt", ["other"] * 300), r"The file .*/b\.txt was changed"),
    ],
    ids=["truncated", "finished and truncated", "gone", "replaced"],
)
def test_what_cannot_be_gone_on_from(folder: Path, change: Callable[[Path], None], text: str) -> None:
    _, settings = stopped_in_the_middle(folder)
    change(folder)
    with pytest.raises(JobExecutionError, match=text) as caught:
        Run(folder, **settings).end()
    assert caught.value.operator == "Source: Text File"
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_file_that_is_truncated_while_a_job_reads_it(folder: Path) -> None:
    run = Run(folder)
    assert reached.wait(150)
    os.truncate(folder / "b.txt", 408)
    on.set()
    with pytest.raises(JobExecutionError, match=r"The file .*/b\.txt was changed.* it had 800 bytes and has 408 now"):
        run.end()
