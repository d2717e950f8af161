"""One job at a time in a checkpoint folder on a file system without locks (hdfs, s3a, gs, abfs): a lease.

The folder has a file that names its holder, a token of its own, and a number that grows. The holder writes it anew
every few seconds.

1. **Take.** Create the file, which fails where there is one. Then watch that one: if it changes, its holder lives, and
   this job is refused. If it stays the same for the length of the lease, its holder is gone, and the file is replaced;
   as soon as it has ended, if the holder was a process of this machine.
2. **Look again.** Two who replace it at the same time both look again a moment later, and the last writer has it.
3. **Renew**, in a thread: read, compare the token, write. Another token there means that the folder was lost: this
   process stood still for so long that another one took over. It is written in place: a file that is missing for a
   moment, as some file systems replace it, would look like a folder that was given back. One that is empty or torn
   for a moment belongs to whoever writes it.
4. **Check**, before anything is committed: a holder that has not renewed for the length of the lease does so now, and
   finds out whether it still is one.

Only the own clock is looked at, and only differences of it, so clocks need not agree. Between a check and what follows
it a holder may still be stopped, for longer than the lease. Then the logs of Spark decide, which let one of two
writers of an entry win where the file system can create a file exclusively (HDFS can, object stores as far as their
connector does).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from firesteel.common.lease_clock import lease_clock
from firesteel.durable.versions import FOLDER_LEASE
from firesteel.engine.folder_lock import Holder, refusal
from firesteel.errors import CheckpointError
from firesteel.filesystems import Storage, joined

__all__ = ["LEASE", "FolderLease", "machine_id"]

logger = logging.getLogger("firesteel")

LEASE = "firesteel-lease.json"
SECONDS = 30.0
READ_TRIES = 10
_OF_LEASES = ("format", "token", "number", "machine")
"""What a lease says beside its holder."""
UNREADABLE: dict[str, Any] = {"token": None}
"""What a file says that is empty or torn: that it is somebody's."""


class FolderLease:
    """The driver's hold on a folder elsewhere."""

    def __init__(
        self,
        folder: str,
        storage: Storage,
        holder: Holder,
        seconds: float | None = None,
        clock: Callable[[], float] = lease_clock,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder, self._storage, self._holder = folder, storage, holder
        self._path = joined(folder, LEASE)
        self._seconds = SECONDS if seconds is None else seconds
        self._clock, self._pause = clock, pause
        self._token = uuid.uuid4().hex
        self._number = 0
        self._renewed = 0.0
        self._torn = False
        """Whether the last write failed: then an unreadable file is this job's."""
        self._lost: CheckpointError | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    # Steps 1 and 2

    def take(self) -> None:
        """Takes the folder, or raises an error that says who has it. Then renews in the background."""
        if not self._storage.create(self._path, self._content()):
            self._wait_until_gone()
            self._storage.overwrite(self._path, self._content())
            self._pause(self._seconds / 10)
            if self._stored().get("token") != self._token:
                raise refusal(self._folder, self._holder_of(self._stored()))
        self._renewed = self._clock()
        threading.Thread(target=self._keep, name="firesteel-lease", daemon=True).start()

    def _wait_until_gone(self) -> None:
        found = self._stored()
        # Whether its holder is gone cannot be told where its meaning is not known.
        FOLDER_LEASE.check(found.get("format", 1), self._path)
        if not found or _is_gone(found):
            return
        logger.info("%s is in use, or was until its holder was killed; this takes %.0f s", self._folder, self._seconds)
        began = self._clock()
        while self._clock() - began < self._seconds:
            self._pause(min(1.0, self._seconds / 10))
            now = self._stored()
            if now is UNREADABLE:
                continue
            if now and now != found:
                raise refusal(self._folder, self._holder_of(now))
            # The JVM of a driver that was killed lives a moment longer.
            if not now or _is_gone(now):
                return

    # Steps 3 and 4

    def _keep(self) -> None:
        while not self._over.wait(self._seconds / 3):
            # What fails here is tried again, and found by the check at the latest.
            with contextlib.suppress(Exception):
                self._renew()

    def _renew(self) -> None:
        with self._lock:
            if self._lost is not None or self._over.is_set():
                return
            found = self._stored()
            if found is UNREADABLE:
                if not self._torn:
                    raise OSError(f"{self._path} cannot be read: somebody else is writing it, or was interrupted")
            elif found.get("token") != self._token:
                self._lost = CheckpointError(
                    f"The checkpoint folder {self._folder} was taken over while this job did not renew its lease, by "
                    f"{self._holder_of(found) or 'a job that has ended since'}. This job ends."
                )
                return
            self._number += 1
            self._torn = True
            self._storage.overwrite(self._path, self._content())
            self._torn = False
            self._renewed = self._clock()

    def check(self) -> None:
        """Raises where the folder is no longer this job's."""
        if self._lost is None and self._clock() - self._renewed > self._seconds * 2 / 3:
            self._renew()
        if self._lost is not None:
            raise self._lost

    def release(self) -> None:
        self._over.set()
        with self._lock, contextlib.suppress(OSError):
            if self._lost is None and self._stored().get("token") == self._token:
                self._storage.delete(self._path)

    def _content(self) -> bytes:
        known = {"token": self._token, "number": self._number, "machine": machine_id(), **asdict(self._holder)}
        return json.dumps({"format": FOLDER_LEASE.version, **known}).encode()

    def _stored(self) -> dict[str, Any]:
        """What the file says; nothing where there is none."""
        for tries_left in reversed(range(READ_TRIES)):
            try:
                found = json.loads(self._storage.read(self._path))
            except FileNotFoundError:
                return {}
            except (OSError, ValueError) as error:
                # Somebody may just be writing it: it is still empty, or its checksum is that of what was there before.
                if tries_left:
                    self._pause(self._seconds / 100)
                elif isinstance(error, OSError):
                    raise
                continue
            return found if isinstance(found, dict) else UNREADABLE
        return UNREADABLE

    @staticmethod
    def _holder_of(found: dict[str, Any]) -> Holder | None:
        return Holder.from_json(json.dumps({key: value for key, value in found.items() if key not in _OF_LEASES}))


def machine_id() -> str:
    """What tells one set of process ids from another: the machine since it was started, and the container."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    return ""


def _is_gone(found: dict[str, Any]) -> bool:
    """Whether the holder was a process here that is no more, and its JVM is gone, too."""
    if not machine_id() or found.get("machine") != machine_id():
        return False
    processes = [found.get("process"), found.get("jvm")]
    return not any(_runs(one) for one in processes if one is not None)


def _runs(process: int) -> bool:
    """One that has ended, and that its parent has not asked about yet, does nothing more."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
