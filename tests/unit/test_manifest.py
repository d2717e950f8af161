"""The manifest of a checkpoint folder: what may go on from it, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine.folder_lock import Holder
from firesteel.engine.manifest import NAME, CheckpointFolder, Manifest
from firesteel.engine.payload import JobPayload
from firesteel.errors import CheckpointError
from firesteel.filesystems import LocalFileSystem
from firesteel.graph.job_graph import JobGraph


def graph(parallelism: int = 2, uid: str = "totals", extra: bool = False, most: int = 128) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism).set_max_parallelism(most)
    stream = env.from_collection([("a", 1)])
    if extra:
        stream = stream.map(lambda record: record)
    stream.key_by(lambda record: record[0]).sum(1).uid(uid).print()
    return env._job_graph()


def manifest(backend: str = "hashmap", name: str = "job", **changes: Any) -> Manifest:
    return Manifest.of(name, graph(**changes), backend)


def write_query(path: Path, width: int = 2) -> None:
    """A query's folder as Spark leaves it after batch 1 of a job with one later stage."""
    query = path / "query"
    for folder in ("offsets", "commits"):
        (query / folder).mkdir(parents=True)
        for batch in (0, 1):
            (query / folder / str(batch)).write_text('v1\n{"batch": 1}\n-\n')
            (query / folder / f".{batch}.crc").write_bytes(b"crc")
    (query / "metadata").write_text('{"id":"4711"}')
    for partition in range(width):
        place = query / "state" / "0" / str(partition)
        place.mkdir(parents=True)
        for version in (1, 2):
            (place / f"{version}.changelog").write_bytes(b"changes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with a checkpoint."""
    place = tmp_path / "checkpoint"
    folder = CheckpointFolder(str(place), manifest())
    assert folder.claim() is False
    write_query(place)
    folder.begun()
    return place


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def refused(path: Path, now: Manifest, words: str) -> None:
    before = contents(path)
    with pytest.raises(CheckpointError, match=words) as caught:
        CheckpointFolder(str(path), now).claim()
    assert str(path) in str(caught.value)
    assert contents(path) == before, "nothing may change"


def test_the_same_job_goes_on(path: Path) -> None:
    before = contents(path)
    folder = CheckpointFolder(str(path), manifest(name="another name"))
    assert folder.claim() is True
    folder.begun()
    assert contents(path) == before
    assert Manifest.from_json((path / NAME).read_text()).operators == manifest().operators


def test_other_jobs_are_refused(path: Path) -> None:
    refused(path, manifest(uid="sums"), r"another program \(job 'job'\): it has .*uid totals\).*the program has .*sums")
    refused(path, manifest(extra=True), "the program has 'Map'")
    refused(path, manifest(parallelism=3), "had parallelism 2 and has 3 now")
    refused(path, manifest(most=64), "had maximum parallelism 128 and has 64 now")
    refused(path, manifest(backend="rocksdb"), "backend 'hashmap'; the job has 'rocksdb' now")


def remove_state(path: Path) -> None:
    for file in (path / "query/state/0/1").iterdir():
        file.unlink()
    (path / "query/state/0/1").rmdir()


def lose_commits(path: Path) -> None:
    for file in (path / "query/commits").iterdir():
        file.unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: (path / NAME).unlink(), "its manifest .* is missing"),
        (lambda path: (path / NAME).write_text('{"format": 1, "jo'), "cannot be read"),
        (lambda path: (path / NAME).write_text("[]"), "it has no format"),
        (lambda path: (path / NAME).write_text('{"format": 1, "operators": []}'), "it lacks something"),
        (lambda path: (path / NAME).write_text(json.dumps({"format": 99})), "format 99, of a newer Firesteel"),
        (lambda path: (path / "query").rename(path / "elsewhere"), "its folder 'query' is missing"),
        (lambda path: (path / "query/metadata").unlink(), "query/metadata is missing"),
        (lambda path: (path / "query/metadata").write_text("{"), "query/metadata is damaged"),
        (lambda path: (path / "query/offsets").rename(path / "lost"), "query/offsets has no entries"),
        (lambda path: (path / "query/offsets/1").write_text("v1\n{"), "query/offsets/1 is damaged"),
        (lambda path: (path / "query/commits/1").write_text(""), "query/commits/1 is damaged"),
        (lose_commits, "query/commits ends at None, but query/offsets at 1"),
        (remove_state, "state directory query/state/0/1 is missing"),
        (lambda path: (path / "query/state/0/0/2.changelog").unlink(), "version 2 of the state in query/state/0/0"),
        (lambda path: (path / "query/state/0/0/2.changelog").write_bytes(b""), "2.changelog is empty"),
    ],
)
def test_a_damaged_folder_is_refused(path: Path, damage: Callable[[Path], Any], words: str) -> None:
    damage(path)
    refused(path, manifest(), words)


def test_a_batch_that_was_not_committed_is_no_damage(path: Path) -> None:
    (path / "query/commits/1").unlink()
    (path / "query/state/0/0/2.changelog").unlink()
    assert CheckpointFolder(str(path), manifest()).claim() is True


def test_a_start_that_came_to_nothing_blocks_nobody(tmp_path: Path) -> None:
    assert CheckpointFolder(str(tmp_path), manifest()).claim() is False
    assert CheckpointFolder(str(tmp_path), manifest(uid="sums")).claim() is False
    assert "sums" in (tmp_path / NAME).read_text()
    # But offsets are something to lose, even before the first batch is done.
    write_query(tmp_path)
    refused(tmp_path, manifest(), "another program")


def test_a_file_is_no_folder_to_lock(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="is a file"):
        CheckpointFolder(str(tmp_path / "file"), manifest()).lock(Holder.here("counts", "1"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot be written"):
        CheckpointFolder(str(tmp_path / "file" / "below"), manifest()).claim()


def test_deleting_leaves_what_is_not_the_jobs(path: Path) -> None:
    folder = CheckpointFolder(str(path), manifest())
    (path / "notes.txt").write_text("mine")
    folder.delete()
    assert [file.name for file in path.iterdir()] == ["notes.txt"]
    (path / "notes.txt").unlink()
    folder.delete()
    assert not path.exists()


@pytest.mark.parametrize(
    "left", [["metadata", "offsets/.0.11-22.tmp"], [".metadata.crc"], ["offsets/.0.tmp", "state/0/x"]]
)
def test_what_a_first_batch_left_before_it_was_logged_is_cleaned(tmp_path: Path, left: list[str]) -> None:
    folder = CheckpointFolder(str(tmp_path), manifest())
    folder.claim()
    for name in left:
        path = tmp_path / "query" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "firesteel-sources").mkdir()
    folder.clear_unless_begun()
    assert not (tmp_path / "query").exists()
    assert (tmp_path / "firesteel-sources").exists(), "what a source has received is not lost"


def test_what_was_logged_or_begun_is_not_cleaned(path: Path) -> None:
    folder = CheckpointFolder(str(path), manifest())
    folder.claim()
    folder.clear_unless_begun()
    assert (path / "query/offsets/1").exists()
    for log in ("offsets", "commits"):
        for entry in (path / "query" / log).iterdir():
            entry.unlink()
    folder.begun()
    folder.clear_unless_begun()
    assert (path / "query").exists(), "somebody has deleted the logs: that is damage, and not to be made worse"


def test_a_full_disk_keeps_no_job_from_running(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class FullDisk(LocalFileSystem):
        def write(self, path: str, content: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    CheckpointFolder(str(tmp_path), manifest(), FullDisk()).keep_job(JobPayload("1", (), b""))
    assert "No space left" in caplog.text


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, "passing"), (errno.EACCES, "permanent")])
def test_a_query_folder_that_cannot_be_made(tmp_path: Path, number: int, kind: str) -> None:
    class Unwritable(LocalFileSystem):
        def make_folder(self, path: str) -> None:
            raise OSError(number, os.strerror(number))

    with pytest.raises(CheckpointError, match="cannot be written") as caught:
        CheckpointFolder(str(tmp_path), manifest(), Unwritable()).make_query_folder()
    assert caught.value.kind.value == kind


def test_whether_a_job_had_finished(path: Path) -> None:
    folder = CheckpointFolder(str(path), manifest())
    for last in (False, True):
        (path / "query/offsets/1").write_text("v1\n{}\n" + json.dumps({"positions": {}, "last": last}))
        assert folder.finished is last
