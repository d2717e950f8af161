"""A ZooKeeper of one's own: one server in a temporary folder, on loopback, on a free port.

The tests use it. Nothing has to be fetched: Spark brings ZooKeeper's jars for its own standalone masters. From a shell
it runs a command with ``FIRESTEEL_ZOOKEEPER`` set to its address::

    .venv/bin/python tools/zookeeper_server.py .venv/bin/python my_test.py
"""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import sys
from pathlib import Path

from local_server import LocalServer, free_ports, java, run_with

__all__ = ["ZookeeperServer", "jars", "why_not"]


def jars() -> Path:
    """The folder of Spark's jars, if ZooKeeper's are among them."""
    found = importlib.util.find_spec("pyspark")
    folder = Path(found.origin).parent / "jars" if found is not None and found.origin else None
    if folder is None or not list(folder.glob("zookeeper-[0-9]*.jar")):
        raise RuntimeError("no ZooKeeper: PySpark brings none")
    return folder


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    if java() is None:
        return "no ZooKeeper: there is no java on the path"
    try:
        jars()
    except RuntimeError as error:
        return str(error)
    return None


class ZookeeperServer(LocalServer):
    """A server between ``with`` and its end."""

    name = "ZooKeeper"

    def __init__(self) -> None:
        self.port = 0
        super().__init__()

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _set_up(self) -> None:
        (self.port,) = free_ports(1)
        settings = {
            "tickTime": 200,
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "minSessionTimeout": 400,
            "maxSessionTimeout": 60_000,
        }
        file = self.folder / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self._process = self._java("-Xmx128m", "-cp", f"{jars()}/*", main, str(file))
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as line:
            line.sendall(b"srvr")
            return bool(line.recv(100))
        return False


if __name__ == "__main__":
    sys.exit(run_with(ZookeeperServer, jars, "FIRESTEEL_ZOOKEEPER", "hosts"))
