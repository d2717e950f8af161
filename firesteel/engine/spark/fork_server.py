"""Python processes that Spark starts, made by a fork.

Spark has several Python processes: daemons that fork workers, and for each query one that plans its batches and one for
each keyed stage that makes its states known. All of them are new interpreters, which import PySpark, pyarrow and the
runtime anew: half a second of processor time each. So there is one process that has imported all of that while the JVM
started, the *fork server*, and Spark is given a *launcher* for Python:

    JVM ── starts ──► launcher ── module, environment, standard streams (SCM_RIGHTS) ──► fork server ── forks ──► module
                         └───────────────── open until the module has ended ──────────────────────────────────────┘

1. The launcher (:mod:`firesteel.engine.spark.launcher`) imports nothing but sockets. Where no fork server answers it
   becomes the interpreter itself.
2. What is forked has the environment, the folder and the standard streams of the launcher. A signal to the launcher is
   passed on, and it ends when the module has ended, with the same exit code.
3. The fork server ends with the driver.

The socket is in a folder that only its user can open, and each end asks the kernel which user the other one is. Only
for workers on this machine, on Linux, and where the JVM is started here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firesteel.engine.peers import is_own_user
from firesteel.engine.spark.launcher import is_decisive

__all__ = ["main", "started_beside"]

_SOCKET, _LAUNCHER = "fork", "python"
_STREAMS = 3
_SIGNALS: dict[signal.Signals, Any] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
}
_PRELOADED = (
    "pyspark.worker",
    "pyspark.worker_util",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.stateful_processor_util",
    "firesteel.engine.coordinator",
)
"""What planning needs besides what workers do."""

_servers: dict[Path, subprocess.Popen[bytes]] = {}
"""By folder. Each ends when its standard input does, which is when this process ends, however that happens."""


def started_beside(folder: Path, python: str, variables: Mapping[str, str]) -> str:
    """Starts a fork server, and gives what Spark is to run as its Python: ``python`` itself where forks are of no use.

    ``folder`` is made for the launcher and the socket; only this user may open it.
    """
    if not sys.platform.startswith("linux") or python != sys.executable:
        return python
    # As Spark has it for its workers. Libraries read the number of threads when they are loaded, and what has threads
    # cannot be forked.
    workers = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES", "OMP_NUM_THREADS": "1"}
    started = {**workers, **os.environ, **variables}
    running = _servers.get(folder)
    if running is not None and running.poll() is None:
        return str(folder / _LAUNCHER)
    try:
        launcher = _write_launcher(folder, python, started)
        if launcher is not None:
            _servers[folder] = _start(folder, python, started)
    except OSError:
        # Jobs run all the same.
        return python
    return launcher or python


def _start(folder: Path, python: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        [python, "-m", __name__, str(folder)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for the driver.
        process_group=0,
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[bytes]) -> None:
    """As the end of this process would, but before the interpreter finds something that was not closed."""
    if server.stdin is not None:
        server.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(1)


def _write_launcher(folder: Path, python: str, started: Mapping[str, str]) -> str | None:
    """The path of a program that does what ``python`` does; None where such a program cannot be run: the kernel allows
    127 characters for an interpreter, and some administrators no programs among temporary files."""
    # Not by way of a shell, which forgets variables with names such as a.b.
    first = f"#!{python} -IS"
    if len(first) > 127 or " " in python:
        return None
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / _LAUNCHER
    path.write_text(
        f"{first}\nimport sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport launcher\n"
        f"launcher.main({str(folder)!r}, {python!r}, sys.argv[1:], {_decisive(started)!r})\n",
        encoding="utf-8",
    )
    path.chmod(0o700)
    return str(path) if os.access(path, os.X_OK) else None


def _decisive(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that an interpreter reads when it starts. Others may be secrets, which belong in no file."""
    return {name: value for name, value in variables.items() if is_decisive(name)}


def main(folder: str) -> None:
    """The life of a fork server."""
    # Before the modules are there: who asks meanwhile waits, instead of importing the same once more.
    listener = _listen(folder)
    from firesteel.engine.spark.daemon import PRELOADED

    for name in (*PRELOADED, *_PRELOADED):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    # What is forked is nobody's child to be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    driver = sys.stdin.fileno()
    while True:
        ready, _, _ = select.select([listener, driver], [], [])
        if driver in ready:
            return
        caller, _ = listener.accept()
        # Who gets no answer becomes the interpreter itself: this user may have too many processes.
        with caller, contextlib.suppress(OSError):
            if is_own_user(caller) and os.fork() == 0:
                listener.close()
                _run(caller)


def _listen(folder: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    # By the open folder, because a socket's path has at most a hundred characters.
    address = f"/proc/self/fd/{descriptor}/{_SOCKET}"
    with contextlib.suppress(FileNotFoundError):
        os.remove(address)
    listener.bind(address)
    listener.listen(64)
    os.close(descriptor)
    return listener


def _run(caller: socket.socket) -> None:
    """Runs a module as the process that the launcher stands for, and ends this process."""
    code = 1
    try:
        module = _become(caller)
    except BaseException:
        # Without an answer the launcher becomes the interpreter, which says what is wrong.
        os._exit(1)
    # The launcher ends with this process, and not with those that it forks.
    os.register_at_fork(after_in_child=caller.close)
    try:
        caller.sendall(b"%d\n" % os.getpid())
        # It runs as the main module, and not as the one that was imported.
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        # A query that was stopped while it started no longer waits for this process. Where it should, Spark says so.
        condition = getattr(error, "getCondition", None)
        if condition is None or condition() != "CANNOT_OPEN_SOCKET":
            traceback.print_exc()
    # An interpreter's end, without taking apart module by module what is shared with the fork server.
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(OSError):
        caller.sendall(b"%d\n" % (code & 0xFF))
    os._exit(code & 0xFF)


def _become(caller: socket.socket) -> str:
    """Takes over the place of the launcher; gives the module that is to run."""
    head, streams, _, _ = socket.recv_fds(caller, 4, _STREAMS)
    with caller.makefile("rb") as rest:
        folder, ignored, count, *fields = rest.read(int.from_bytes(head)).decode(errors="surrogateescape").split("\0")
    arguments, variables = fields[: int(count)], fields[int(count) :]
    os.chdir(folder)
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, usual in _SIGNALS.items():
        signal.signal(number, signal.SIG_IGN if str(int(number)) in ignored.split(",") else usual)
    # As the JVM has it, which opens as many files as it may.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.environ.clear()
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    # As ``python -m`` has it.
    sys.argv = arguments
    sys.path[0] = folder
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    _show_as(arguments)
    return arguments[0]


def _show_as(arguments: list[str]) -> None:
    """Lets ``ps``, and whoever ends processes by what they are, see what this one does: a fork has its parent's command
    line. Linux shows the memory of the first arguments, so there is as much space as those have."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        words = b"\0".join([b"python", b"-m", *(argument.encode() for argument in arguments)])[: end - start - 1]
        if start:
            ctypes.memmove(start, words.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main(sys.argv[1])
    # There is nothing to take apart.
    os._exit(0)
