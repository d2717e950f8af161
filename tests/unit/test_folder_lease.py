"""One job at a time in a checkpoint folder on a file system without locks, with a clock that only the test moves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.engine.folder_lease import LEASE, FolderLease, machine_id
from firesteel.engine.folder_lock import Holder
from firesteel.errors import CheckpointError
from firesteel.filesystems import LocalFileSystem

LENGTH = 900
ELSEWHERE = Holder("orders", "4f2a", 17, "elsewhere", 0.0)


class World:
    """A clock, and what happens while somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.meanwhile: Callable[[], None] = lambda: None

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def world() -> World:
    return World()


def lease(folder: Path, world: World, job_id: str = "77b1") -> FolderLease:
    # So long that the thread that renews does nothing within a test.
    holder = Holder.here("orders", job_id)
    return FolderLease(str(folder), LocalFileSystem(), holder, LENGTH, world.clock, world.pause)


def stored(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / LEASE).read_text())
    return found


def plant(folder: Path, **changes: Any) -> None:
    known = {"token": "theirs", "number": 1, "machine": "another", **vars(ELSEWHERE), **changes}
    (folder / LEASE).write_text(json.dumps(known))


def test_a_free_folder_is_taken_at_once_and_given_back(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    assert world.now == 100
    assert stored(tmp_path)["job_id"] == "77b1"
    one.check()
    one.release()
    assert not (tmp_path / LEASE).exists()


def test_who_comes_second_is_refused_as_soon_as_the_holder_shows_that_it_lives(tmp_path: Path, world: World) -> None:
    plant(tmp_path)
    numbers = iter(range(2, 100))
    world.meanwhile = lambda: plant(tmp_path, number=next(numbers))
    with pytest.raises(CheckpointError, match=r"in use by job 'orders' \(4f2a\), process 17 on elsewhere"):
        lease(tmp_path, world).take()
    assert stored(tmp_path)["token"] == "theirs"


def test_a_lease_has_a_version_and_one_of_a_newer_firesteel_is_left_alone(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    assert stored(tmp_path)["format"] == 1
    one.release()
    plant(tmp_path, format=2, process=None, machine=machine_id())
    before = (tmp_path / LEASE).read_bytes()
    with pytest.raises(CheckpointError) as refused:
        lease(tmp_path, world).take()
    assert str(refused.value) == (
        "The lease of a checkpoint folder has format 2, of a newer Firesteel; this one reads 1 only. Use the Firesteel "
        f"that wrote it, or a newer one ({tmp_path / LEASE})."
    )
    assert (tmp_path / LEASE).read_bytes() == before
    # What says none is version 1: its holder is gone.
    plant(tmp_path, process=None, machine=machine_id())
    lease(tmp_path, world).take()


def test_a_lease_that_is_being_written_is_read_again(tmp_path: Path, world: World) -> None:
    """It is empty between its creation and its content; where there are checksums, one may be older than the other."""
    (tmp_path / LEASE).write_text("")
    seen: list[str] = []
    numbers = iter(range(2, 100))

    def writes() -> None:
        seen.append((tmp_path / LEASE).read_text())
        plant(tmp_path, number=next(numbers))

    world.meanwhile = writes
    with pytest.raises(CheckpointError, match="in use by job 'orders'"):
        lease(tmp_path, world).take()
    assert seen[0] == ""
    assert all("theirs" in one for one in seen[1:])


def test_a_lease_that_stays_torn_is_its_writers_until_it_runs_out(tmp_path: Path, world: World) -> None:
    (tmp_path / LEASE).write_text('{"token": "th')
    one = lease(tmp_path, world)
    one.take()
    assert world.now - 100 >= LENGTH
    # Who holds it leaves what another may just be writing alone, and does not take it for lost either.
    (tmp_path / LEASE).write_text("")
    world.now += LENGTH
    with pytest.raises(OSError, match="somebody else is writing it"):
        one.check()
    assert (tmp_path / LEASE).read_text() == ""


def test_who_failed_to_write_its_lease_writes_it_again(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = lease(tmp_path, world)
    one.take()

    def half(self: LocalFileSystem, path: str, content: bytes) -> None:
        Path(path).write_bytes(content[:10])
        raise OSError("no space left")

    world.now += LENGTH
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "overwrite", half)
        with pytest.raises(OSError, match="no space left"):
            one.check()
    one.check()
    assert stored(tmp_path)["job_id"] == "77b1"
    # Unless another one has it by now.
    world.now += LENGTH
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "overwrite", half)
        with pytest.raises(OSError, match="no space left"):
            one.check()
    plant(tmp_path, token="successor")
    with pytest.raises(CheckpointError, match="was taken over"):
        one.check()


def test_a_read_that_fails_once_is_tried_again(tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path)
    numbers = iter(range(2, 100))
    world.meanwhile = lambda: plant(tmp_path, number=next(numbers))
    failures = [OSError("Checksum error"), OSError("Checksum error")]
    read = LocalFileSystem.read

    def sometimes(self: LocalFileSystem, path: str) -> bytes:
        if failures:
            raise failures.pop()
        return read(self, path)

    monkeypatch.setattr(LocalFileSystem, "read", sometimes)
    with pytest.raises(CheckpointError, match="in use by job 'orders'"):
        lease(tmp_path, world).take()
    failures[:] = [OSError("gone for good")] * 100
    with pytest.raises(OSError, match="gone for good"):
        lease(tmp_path, world).take()


def test_a_holder_that_shows_nothing_for_the_length_of_the_lease_is_gone(tmp_path: Path, world: World) -> None:
    plant(tmp_path)
    one = lease(tmp_path, world)
    one.take()
    assert world.now - 100 >= LENGTH
    assert stored(tmp_path)["job_id"] == "77b1"
    one.release()


def test_nobody_waits_for_a_process_of_this_machine_that_is_no_more(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    machine = stored(tmp_path)["machine"]
    # Its JVM may still finish what it began.
    plant(tmp_path, machine=machine, process=gone.pid, jvm=os.getpid())
    before = world.now
    lease(tmp_path, world, "83aa").take()
    assert world.now - before >= LENGTH
    plant(tmp_path, machine=machine, process=gone.pid, jvm=gone.pid)
    before = world.now
    lease(tmp_path, world, "9c00").take()
    assert world.now - before < LENGTH
    assert stored(tmp_path)["job_id"] == "9c00"


def test_a_process_of_this_machine_that_ends_meanwhile_is_waited_for_no_longer(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    jvm = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    plant(tmp_path, machine=stored(tmp_path)["machine"], process=jvm.pid, jvm=jvm.pid)

    def it_ends() -> None:
        # Not by its object, which would ask about it.
        os.kill(jvm.pid, signal.SIGKILL)
        # It stays among the processes until its parent asks: it does not count.
        os.waitid(os.P_PID, jvm.pid, os.WEXITED | os.WNOWAIT)

    world.meanwhile = it_ends
    before = world.now
    lease(tmp_path, world, "83aa").take()
    assert world.now - before < LENGTH
    jvm.communicate()


def test_of_two_who_take_over_at_once_the_last_writer_has_it(tmp_path: Path, world: World) -> None:
    plant(tmp_path, machine="another")
    one = lease(tmp_path, world)

    def somebody_else_writes_after_us() -> None:
        if stored(tmp_path).get("job_id") == "77b1":
            plant(tmp_path, token="faster")

    world.meanwhile = somebody_else_writes_after_us
    with pytest.raises(CheckpointError, match="in use by"):
        one.take()


def test_a_holder_that_stood_still_finds_out_before_it_commits(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    plant(tmp_path, token="successor")
    # Nothing is read as long as the lease is fresh.
    one.check()
    world.now += LENGTH
    with pytest.raises(
        CheckpointError, match=r"was taken over while .* did not renew its lease, by job 'orders' \(4f2a\)"
    ):
        one.check()
    one.release()
    assert stored(tmp_path)["token"] == "successor", "what is another's stays"


def test_a_holder_that_stood_still_and_was_not_missed_goes_on(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    world.now += LENGTH
    one.check()
    assert stored(tmp_path)["number"] == 1
    one.release()


def test_the_holder_is_this_process(tmp_path: Path, world: World) -> None:
    one = lease(tmp_path, world)
    one.take()
    assert stored(tmp_path)["process"] == os.getpid()
    one.release()


def test_a_machine_that_slept_for_longer_than_the_lease_looks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = FolderLease(str(tmp_path), LocalFileSystem(), Holder.here("orders", "77b1"), LENGTH)
    one.take()
    # Another job took the folder over meanwhile.
    plant(tmp_path)
    one.check()
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + LENGTH * (clock == time.CLOCK_BOOTTIME))
    with pytest.raises(CheckpointError, match="was taken over"):
        one.check()
    one.release()
