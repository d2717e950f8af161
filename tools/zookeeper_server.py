"""A ZooKeeper of one's own: one server in a temporary folder, on loopback, on a free port.

The tests use it. It needs nothing that is not there: Spark brings ZooKeeper's jars for its own standalone masters.
From a shell it runs a command with ``FIRESTEEL_ZOOKEEPER`` set to its address::

    .venv/bin/python tools/zookeeper_server.py .venv/bin/python my_test.py
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from kafka_server import java

SECONDS_TO_START = 60
_JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def jars() -> Path | None:
    """The folder of Spark's jars, if ZooKeeper's are among them."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "jars"
    return folder if list(folder.glob("zookeeper-[0-9]*.jar")) else None


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    if java() is None:
        return "there is no java on the path"
    return "PySpark brings no ZooKeeper" if jars() is None else None


def _ends_with_its_parent() -> None:
    """Also if that is killed: asks Linux for a signal."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class ZookeeperServer:
    """A server between ``with`` and its end."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ZookeeperServer:
        found = java()
        if found is None or jars() is None:
            raise RuntimeError(str(why_not()))
        self._folder = Path(tempfile.mkdtemp(prefix="firesteel-zookeeper-"))
        settings = {
            "tickTime": 200,
            "dataDir": self._folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "minSessionTimeout": 400,
            "maxSessionTimeout": 60_000,
        }
        file = self._folder / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        try:
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [found, *_JVM, "-cp", f"{jars()}/*", main, str(file)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                    preexec_fn=_ends_with_its_parent,
                )
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait(self) -> None:
        assert self._folder is not None
        assert self._process is not None
        end = time.monotonic() + SECONDS_TO_START
        while True:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"ZooKeeper did not start:\n{(self._folder / 'log').read_text()[-3000:]}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as line:
                line.sendall(b"srvr")
                if line.recv(100):
                    return
            time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def main() -> int:
    with ZookeeperServer() as server:
        return subprocess.call(sys.argv[1:] or ["true"], env={**os.environ, "FIRESTEEL_ZOOKEEPER": server.hosts})


if __name__ == "__main__":
    sys.exit(main())
