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
2. It claims the partition by binding a name. If another task of the same partition runs just now (another job), the
   name is taken and the front runs the task itself.
3. It connects to the host, making it by a fork if there is none, hands over the socket and waits.
4. The host runs PySpark's own worker loop on the socket and says how it went.
5. If the front dies (Spark killed the task), the host interrupts the task, closes the users' functions and dies; if the
   host dies, the front ends with an error, which Spark takes for a crashed worker.

Names are abstract Unix addresses: the kernel forgets them with their owner, so nothing is ever left behind. Where they
do not exist (outside Linux), tasks run in the fronts.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from firesteel.engine.spark.tasks import TASKS

__all__ = ["available", "install"]

_HEAD = struct.Struct(">iii")
_START_OF_INIT = -9
"""PySpark's mark of a task's first message: mark, length, then the partition."""
_IDLE_SECONDS = 900

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
    worker.main = _Front(worker.main, os.getpid()).main


class _Front:
    def __init__(self, main: Main, family: int) -> None:
        self._main = main
        self._family = family
        """The daemon's process id: fronts and hosts of one daemon find each other by it."""

    def main(self, infile: BinaryIO, outfile: BinaryIO) -> None:
        partition = _peek_partition(infile.fileno())
        if partition is None:
            self._main(infile, outfile)
            return
        claim = self._bind(f"claim-{partition}")
        if claim is None:
            self._main(infile, outfile)
            return
        with claim:
            try:
                host = self._connect(partition)
            except OSError:
                self._main(infile, outfile)
                return
            with host:
                socket.send_fds(host, [b"t"], [infile.fileno()])
                answer = host.recv(1)
            if not answer:
                # The host was killed. Only the end of this process closes the line on which the JVM waits.
                os._exit(1)
            if answer != b"0":
                sys.exit(-1)

    def _name(self, what: str) -> str:
        return f"\0firesteel-{self._family}-{what}"

    def _bind(self, what: str) -> socket.socket | None:
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            held.bind(self._name(what))
        except OSError:
            held.close()
            return None
        return held

    def _connect(self, partition: int) -> socket.socket:
        with contextlib.suppress(OSError):
            return self._try_connect(partition)
        self._fork_host(partition)
        return self._try_connect(partition)

    def _try_connect(self, partition: int) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._name(f"host-{partition}"))
        except OSError:
            connection.close()
            raise
        return connection

    def _fork_host(self, partition: int) -> None:
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            # Forked twice, so that the host is nobody's child to be waited for.
            if os.fork():
                os._exit(0)
            try:
                self._serve(partition, told)
            except BaseException:
                os._exit(1)
            os._exit(0)
        os.close(told)
        os.waitpid(child, 0)
        os.read(ready, 1)
        os.close(ready)

    def _serve(self, partition: int, told: int) -> None:
        """The host's life: one task after the other until it is idle for long or its daemon is gone."""
        kept = os.dup2(told, 3)
        # Above all the front's socket to the JVM: held open here it would hide the front's death.
        os.closerange(4, 4096)
        listener = self._bind(f"host-{partition}")
        assert listener is not None, "the claim keeps others from being the host"
        listener.listen(4)
        listener.settimeout(2)
        os.write(kept, b"1")
        os.close(kept)
        last_used = time.monotonic()
        while time.monotonic() - last_used < _IDLE_SECONDS and _alive(self._family):
            try:
                front, _ = listener.accept()
            except TimeoutError:
                continue
            front.setblocking(True)
            self._task(front, listener)
            last_used = time.monotonic()
            if TASKS.leaving:
                break
        TASKS.close_all()

    def _task(self, front: socket.socket, listener: socket.socket) -> None:
        _, (descriptor,), _, _ = socket.recv_fds(front, 1, 1)
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
        head = line.recv(_HEAD.size, socket.MSG_PEEK | socket.MSG_WAITALL)
    if len(head) < _HEAD.size:
        return None
    mark, _, partition = _HEAD.unpack(head)
    return int(partition) if mark == _START_OF_INIT and partition >= 0 else None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _die_with(front: socket.socket, listener: socket.socket, done: threading.Event) -> None:
    """Ends this process when the front ends before the task does: that is how Spark kills a task."""
    with contextlib.suppress(OSError):
        front.recv(1)
    if not done.is_set():
        # The next task of this partition must not come here: it gets a new host.
        listener.close()
        TASKS.leave()
