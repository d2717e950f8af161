"""An HDFS of one's own: Hadoop's mini cluster, one process in a temporary folder, on loopback, on free ports.

The tests use it. Its jars are fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_HDFS`` set to its address::

    .venv/bin/python tools/hdfs_server.py .venv/bin/python my_job.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import local_server
from local_server import LocalServer, fetched, free_ports, maven, run_with, why_no_java_server

__all__ = ["VERSION", "HdfsServer", "cache", "jars", "why_not"]

VERSION = "3.5.0"
_POM = Path(__file__).resolve().parent / "hdfs" / "pom.xml"


def cache() -> Path:
    """Where the jars are, or will be."""
    return local_server.cache(f"hdfs-{VERSION}")


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    if (missing := why_no_java_server("HDFS", cache())) is not None:
        return missing
    try:
        jars()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


def jars() -> Path:
    """The folder with its jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        maven("copy-dependencies", "-f", str(_POM), "-DincludeScope=runtime", into=folder, what="HDFS")

    return fetched(cache(), fetch)


class HdfsServer(LocalServer):
    """A name node and a data node between ``with`` and its end."""

    name = "HDFS"

    def __init__(self) -> None:
        self._port = 0
        super().__init__()

    @property
    def uri(self) -> str:
        """The address: ``hdfs://127.0.0.1:port``."""
        return f"hdfs://127.0.0.1:{self._port}"

    def _set_up(self) -> None:
        self._port, http = free_ports(2)
        details = self.folder / "details"
        options = (
            "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            # The mini cluster's own folder.
            f"-Dtest.build.data={self.folder}/data",
            f"-Dhadoop.log.dir={self.folder}",
        )
        main = ("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1")
        ports = ("-nnport", str(self._port), "-httpport", str(http), "-writeDetails", str(details))
        self._process = self._java(*options, "-cp", f"{jars()}/*", *main, *ports)
        # When it says where it is, it has a data node and can be written to.
        self._wait_until(lambda: details.is_file() and details.stat().st_size > 0)


if __name__ == "__main__":
    sys.exit(run_with(HdfsServer, jars, "FIRESTEEL_HDFS", "uri"))
