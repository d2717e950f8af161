"""An OpenSearch of one's own: one node in a temporary folder, on loopback, on free ports.

Its jars are fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_ELASTICSEARCH_HOST`` set::

    .venv/bin/python tools/opensearch_server.py .venv/bin/python program.py
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import local_server
from local_server import LocalServer, fetched, free_ports, maven, run_with, why_no_java_server

__all__ = ["VERSION", "OpenSearchServer", "cache", "jars", "why_not"]

VERSION = "2.19.1.0"
_HERE = Path(__file__).resolve().parent / "opensearch"


def cache() -> Path:
    """Where the jars are, or will be."""
    return local_server.cache(f"opensearch-{VERSION}")


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    return why_no_java_server("OpenSearch", cache())


def jars() -> Path:
    """The folder with its jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        pom = str(_HERE / "pom.xml")
        maven("copy-dependencies", "-f", pom, "-DincludeScope=runtime", into=folder, what="OpenSearch")

    return fetched(cache(), fetch)


class OpenSearchServer(LocalServer):
    """A node between ``with`` and its end."""

    name = "OpenSearch"

    def __init__(self) -> None:
        self._port = self._transport = 0
        super().__init__()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._port}"

    def _set_up(self) -> None:
        self._port, self._transport = free_ports(2)
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        program = str(_HERE / "OpenSearchNode.java")
        arguments = (str(self.folder / "data"), str(self._port), str(self._transport))
        self._process = self._java("-Xmx512m", "-cp", f"{jars()}/*", program, *arguments)
        self._wait_until(self._answers)

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def _answers(self) -> bool:
        try:
            url = f"http://{self.host}/_cluster/health?wait_for_status=yellow&timeout=5s"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


if __name__ == "__main__":
    sys.exit(run_with(OpenSearchServer, jars, "FIRESTEEL_ELASTICSEARCH_HOST", "host"))
