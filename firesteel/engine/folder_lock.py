"""One job at a time in a checkpoint folder.

Two locks of the operating system, which end with the process that holds them:

1. ``firesteel-lock``, held by the driver from before it touches anything in the folder until the job is over. Whoever
   comes second is refused, for good, and learns who was first.
2. ``firesteel-coordinator-lock``, held by the process that plans batches. When a driver is killed, that process lives a
   moment longer, and a source in it may still write what it receives. The next driver waits for it, and after a
   restart so does the next coordinator.

File systems that only Spark reaches have no such locks: see :mod:`.folder_lease`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from firesteel.common.private_files import make_private_folder
from firesteel.durable.versions import FOLDER_HOLDER
from firesteel.errors import CheckpointError

__all__ = ["COORDINATOR_LOCK", "HOLDER", "LOCK", "FolderLock", "Holder", "hold_as_coordinator", "refusal"]

LOCK = "firesteel-lock"
HOLDER = "firesteel-holder.json"
COORDINATOR_LOCK = "firesteel-coordinator-lock"

DRIVER_SECONDS = 5.0
"""How long a driver waits: one that was just stopped may still be on its way out."""
COORDINATOR_SECONDS = 30.0


@dataclass(frozen=True)
class Holder:
    """Who holds a folder."""

    job: str
    job_id: str
    process: int
    host: str
    since: float
    jvm: int | None = None
    """The process of Spark's JVM, where there is one: it may live a moment longer than the driver."""

    @staticmethod
    def here(job: str, job_id: str, jvm: int | None = None) -> Holder:
        return Holder(job, job_id, os.getpid(), socket.gethostname(), time.time(), jvm)

    def to_json(self) -> str:
        return json.dumps({"format": FOLDER_HOLDER.version, **asdict(self)})

    @staticmethod
    def from_json(text: str | bytes) -> Holder | None:
        """None where the text says nothing of a holder, or a newer Firesteel wrote it. The lock alone decides."""
        try:
            known = json.loads(text)
            readable = FOLDER_HOLDER.refusal(known.pop("format", 1)) is None
            return Holder(**known) if readable else None
        except (ValueError, TypeError, AttributeError):
            return None

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"job {self.job!r} ({self.job_id}), process {self.process} on {self.host}, since {since}"


def refusal(folder: str, holder: Holder | None) -> CheckpointError:
    """The error of whoever comes second."""
    who = f"in use by {holder}" if holder is not None else "in use by another process"
    return CheckpointError(
        f"The checkpoint folder {folder} is {who}. Nothing was changed there. Cancel or stop that job first, or give "
        "this one a folder of its own."
    )


class FolderLock:
    """The driver's hold on a folder of this machine.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = FolderLock(folder, Holder("orders", "4f2a", 17, "here", 0.0))
    ...     first.take()
    ...     try:
    ...         FolderLock(folder, Holder("orders", "77b1", 18, "here", 9.0)).take(seconds=0)
    ...     except CheckpointError as error:
    ...         print("job 'orders' (4f2a), process 17 on here" in str(error))
    ...     first.release()
    True
    """

    def __init__(self, folder: str, holder: Holder) -> None:
        self._folder = folder
        self._holder = holder
        self._lock = _lock(folder, LOCK)

    def take(self, seconds: float = DRIVER_SECONDS, for_coordinator: float = COORDINATOR_SECONDS) -> None:
        """Takes the folder, or raises an error that says who has it."""
        try:
            self._acquire(seconds)
        except Timeout:
            raise refusal(self._folder, self._known()) from None
        try:
            hold_as_coordinator(self._folder, for_coordinator).release()
            self._note()
        except BaseException:
            self._lock.release()
            raise

    def _acquire(self, seconds: float) -> None:
        while True:
            make_private_folder(self._folder)
            # A job that ends may delete its folder while this one waits there. Then it is there for the taking.
            with contextlib.suppress(FileNotFoundError):
                self._lock.acquire(timeout=seconds)
                return

    def check(self) -> None:
        """Raises where the folder is no longer this job's. The system keeps a lock as long as its process lives."""

    def release(self) -> None:
        # The folder may have been deleted, and be another job's by now.
        if self._known() == self._holder:
            with contextlib.suppress(OSError):
                os.remove(os.path.join(self._folder, HOLDER))
        self._lock.release()

    def _known(self) -> Holder | None:
        try:
            return Holder.from_json(Path(self._folder, HOLDER).read_bytes())
        except OSError:
            return None

    def _note(self) -> None:
        descriptor = os.open(os.path.join(self._folder, HOLDER), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(self._holder.to_json())


def hold_as_coordinator(folder: str, seconds: float = COORDINATOR_SECONDS) -> FileLock:
    """Takes the folder for the process that plans batches, until it releases it or ends."""
    make_private_folder(folder)
    lock = _lock(folder, COORDINATOR_LOCK)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise CheckpointError(
            f"A process of an earlier run still works in the checkpoint folder {folder}, and did for the last "
            f"{seconds:.0f} s. End it (it holds the lock of {COORDINATOR_LOCK}), or give this job a folder of its own."
        ) from None
    return lock


def _lock(folder: str, name: str) -> FileLock:
    return FileLock(os.path.join(folder, name), mode=0o600, thread_local=False, poll_interval=0.02)
