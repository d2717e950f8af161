"""One process per subtask: a partition's tasks always run in the same Python process of an executor.

Spark hands a task to any idle Python worker. A function object lives in one process, so its fields (a connection, a
model, a counter that is not worth a state) would be scattered over as many copies as there are workers, and ``open``
would be called for each. So workers here are fronts: a front looks at which partition its next task is for, and passes
the socket to that partition's *host*, a process that does nothing but serve that partition. The bytes themselves never
pass through the front.

    JVM ── socket ──► front ── the socket itself (SCM_RIGHTS) ──► host of partition i
                        ▲                                            │
                        └───────────── "done" ◄──────────────────────┘

1. The front peeks at the task's first bytes; nothing is consumed.
2. It claims the partition by locking a file. If another task of the same partition runs just now (another job), the
   lock is taken and the front runs the task itself.
3. It connects to the host, making it by a fork if there is none, hands over the socket and waits.
4. The host runs PySpark's own worker loop on the socket and says how it went.
5. If the front dies (Spark killed the task), the host interrupts the task, closes the users' functions and dies; if the
   host dies, the front ends with an error, which Spark takes for a crashed worker. How the host died is known to its
   parent, a process that does nothing but wait for that and leave it in a file.

A host runs what it is handed, so it must not be reached by other users, nor may they take its place:

* Sockets and locks are in the daemon's folder for temporary files, which only its user can open. (Abstract addresses
  have no permissions, everybody sees them, and containers that share a network share them.)
* Both ends ask the kernel which user the other one is. A host closes the line to anybody else; a front takes what
  anybody else listens at for a left-over, and makes a new host.

The daemon removes the folder when it ends, its hosts if it was killed, a later process if they were killed, too: see
:mod:`firesteel.engine.scratch`. Outside Linux tasks run in the fronts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from firesteel.common.private_files import replace_file
from firesteel.engine.peers import is_own_user, process_of_peer
from firesteel.engine.processes import is_alive
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.spark.process_end import ending_of
from firesteel.engine.spark.tasks import TASKS

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["available", "install"]

_HEAD = struct.Struct(">iii")
_START_OF_INIT = -9
"""PySpark's mark of a task's first message: mark, length, then the partition."""
_IDLE_SECONDS = 900
_SECONDS_TO_LEARN = 10.0
"""How long a front waits to learn how its host ended."""

Main = Callable[[Any, Any], None]


def available() -> bool:
    """Whether a subtask's batches all run in one process here."""
    return sys.platform.startswith("linux") and os.environ.get("FIRESTEEL_AFFINITY") != "off"


def install(worker: Any) -> None:
    """Puts the front into PySpark's worker module, in the process that workers are forked from."""
    if not available():
        return
    from pyspark.serializers import SpecialLengths

    global _START_OF_INIT
    _START_OF_INIT = SpecialLengths.START_OF_INIT_MESSAGE
    worker.main = _Front(worker.main, os.getpid(), scratch_folder()).main


class _Front:
    def __init__(self, main: Main, daemon: int, folder: Path) -> None:
        self._main = main
        self._daemon = daemon
        """The process that fronts are forked from."""
        self.folder = folder
        """Where fronts and hosts of one daemon find each other."""
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def main(self, infile: BinaryIO, outfile: BinaryIO) -> None:
        partition = _peek_partition(infile.fileno())
        if partition is None:
            self._main(infile, outfile)
            return
        claim = self._claim(partition)
        if claim is None:
            self._main(infile, outfile)
            return
        with claim:
            try:
                host = self._connect(partition)
            except OSError:
                self._main(infile, outfile)
                return
            process = process_of_peer(host)
            with host:
                socket.send_fds(host, [b"t"], [infile.fileno()])
                answer = host.recv(1)
            if not answer:
                self._report_death(partition, process)
                # Only the end of this process closes the line on which the JVM waits.
                os._exit(1)
            if answer != b"0":
                sys.exit(-1)

    def _report_death(self, partition: int, process: int | None) -> None:
        """One line where the worker's output goes."""
        try:
            with open(self.address(f"task-{partition}"), encoding="utf-8") as file:
                what = file.read().strip()
        except OSError:
            what = ""
        of = f"of subtask {partition}" + (f" ({what})" if what else "")
        print(
            f"the Python process {process or ''} {of} {ending_of(self._wait_status(partition, process))}",
            file=sys.stderr,
            flush=True,
        )

    def _wait_status(self, partition: int, process: int | None) -> int | None:
        """How the host ended, from its parent, which learns it a moment after the line has broken."""
        deadline = time.monotonic() + _SECONDS_TO_LEARN
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError), open(self.address(f"end-{partition}"), "rb") as file:
                host, status = map(int, file.read().split())
                if host == process:
                    return status
            time.sleep(0.01)
        return None

    def address(self, what: str) -> str:
        # By the open folder, because a socket's path has at most a hundred characters.
        return f"/proc/self/fd/{self._descriptor}/{what}"

    def _claim(self, partition: int) -> BinaryIO | None:
        """The partition's lock; None where another front has it. It ends with this process, however that ends."""
        try:
            claim = open(self.address(f"claim-{partition}"), "wb")  # noqa: SIM115 - the caller closes it
        except OSError:
            return None
        try:
            # Not a FileLock: this process forks its host while it holds the lock. The host only closes the descriptor,
            # which leaves the lock here; a FileLock's destructor would unlock it for both.
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            claim.close()
            return None
        return claim

    def _connect(self, partition: int) -> socket.socket:
        with contextlib.suppress(OSError):
            return self._try_connect(partition)
        self._fork_host(partition)
        return self._try_connect(partition)

    def _try_connect(self, partition: int) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self.address(f"host-{partition}"))
            if not is_own_user(connection):
                raise PermissionError(f"another user listens as the host of partition {partition}")
        except OSError:
            connection.close()
            raise
        return connection

    def _fork_host(self, partition: int) -> None:
        ready, listening = os.pipe()
        child = os.fork()
        if child == 0:
            # Forked twice, so that the host's parent is nobody's child to be waited for.
            if os.fork():
                os._exit(0)
            try:
                self._watch_host(partition, listening)
            finally:
                os._exit(0)
        os.close(listening)
        os.waitpid(child, 0)
        os.read(ready, 1)
        os.close(ready)

    def _watch_host(self, partition: int, listening: int) -> None:
        """Makes the host, and is its parent for as long as it lives: only a parent learns how a process ended."""
        host = os.fork()
        if host == 0:
            try:
                self._serve(partition, listening)
            except BaseException:
                os._exit(1)
            os._exit(0)
        (self._descriptor,) = _only([self._descriptor])
        _, status = os.waitpid(host, 0)
        path = self.address(f"end-{partition}")
        # The folder may have gone with the daemon.
        with contextlib.suppress(OSError):
            replace_file(path, b"%d %d" % (host, status))

    def _serve(self, partition: int, listening: int) -> None:
        """The host's life: one task after the other until it is idle for long or its daemon is gone."""
        listening, self._descriptor = _only([listening, self._descriptor])
        listener = self._listen(partition)
        listener.settimeout(2)
        TASKS.note_in(os.open(self.address(f"task-{partition}"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        os.write(listening, b"1")
        os.close(listening)
        last_used = time.monotonic()
        while time.monotonic() - last_used < _IDLE_SECONDS and is_alive(self._daemon):
            try:
                front, _ = listener.accept()
            except TimeoutError:
                continue
            if not is_own_user(front):
                front.close()
                continue
            front.setblocking(True)
            self._task(front, listener)
            last_used = time.monotonic()
            if TASKS.leaving:
                break
        TASKS.close_all()
        if not is_alive(self._daemon):
            # It was killed, or it would have removed the folder itself.
            shutil.rmtree(self.folder, ignore_errors=True)

    def _listen(self, partition: int) -> socket.socket:
        # The claim keeps others from being the host: what has this name is a dead one's.
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.address(f"host-{partition}"))
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.address(f"host-{partition}"))
        listener.listen(4)
        return listener

    def _task(self, front: socket.socket, listener: socket.socket) -> None:
        _, descriptors, _, _ = socket.recv_fds(front, 1, 1)
        if not descriptors:
            # The front ended before it handed over anything.
            front.close()
            return
        (descriptor,) = descriptors
        done = threading.Event()
        threading.Thread(target=_die_with, args=(front, listener, done), daemon=True).start()
        code = b"0"
        size = int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))
        with os.fdopen(os.dup(descriptor), "rb", size) as infile, os.fdopen(descriptor, "wb", size) as outfile:
            try:
                self._main(infile, outfile)
                outfile.flush()
            except SystemExit as end:
                code = b"1" if end.code else b"0"
            except BaseException:
                code = b"1"
            with contextlib.suppress(OSError):
                outfile.flush()
        done.set()
        with contextlib.suppress(OSError):
            front.sendall(code)
            front.shutdown(socket.SHUT_RDWR)
        front.close()


def _peek_partition(descriptor: int) -> int | None:
    """The partition of the task that is about to be read, without reading it."""
    with socket.socket(fileno=os.dup(descriptor)) as line:
        acknowledge_at_once(line)
        head = line.recv(_HEAD.size, socket.MSG_PEEK | socket.MSG_WAITALL)
    if len(head) < _HEAD.size:
        return None
    mark, _, partition = _HEAD.unpack(head)
    return int(partition) if mark == _START_OF_INIT and partition >= 0 else None


def acknowledge_at_once(line: socket.socket) -> None:
    """Spark writes a task in several small pieces. By TCP it sends a piece only when the one before was acknowledged,
    and the kernel takes 40 ms over that if nothing goes the other way: 40 ms for each stage of each batch. What is set
    here the kernel forgets after a while, so it is set for every task."""
    if line.family in (socket.AF_INET, socket.AF_INET6):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _only(wanted: list[int]) -> list[int]:
    """Closes all descriptors but the standard ones and these, which get other numbers. Above all the front's socket to
    the JVM has to go: held open here it would hide the front's death."""
    # Copies above the range first, so that none is overwritten before it is moved.
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3 + len(wanted)) for descriptor in wanted]
    kept = [os.dup2(descriptor, 3 + place, inheritable=False) for place, descriptor in enumerate(aside)]
    os.closerange(3 + len(kept), 4096)
    return kept


def _die_with(front: socket.socket, listener: socket.socket, done: threading.Event) -> None:
    """Ends this process when the front ends before the task does: that is how Spark kills a task."""
    with contextlib.suppress(OSError):
        front.recv(1)
    if not done.is_set():
        # The next task of this partition must not come here: it gets a new host.
        listener.close()
        TASKS.leave()
