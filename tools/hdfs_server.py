"""An HDFS of one's own: Hadoop's mini cluster, one process in a temporary folder, on loopback, on free ports.

The tests use it. Its jars are fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_HDFS`` set to its address::

    .venv/bin/python tools/hdfs_server.py .venv/bin/python my_job.py
"""

from __future__ import annotations

import contextlib
import ctypes
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

VERSION = "3.5.0"
SECONDS_TO_START = 120
_POM = Path(__file__).resolve().parent / "hdfs" / "pom.xml"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def cache() -> Path:
    """Where the jars are, or will be."""
    root = os.environ.get("FIRESTEEL_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "firesteel"
    )
    return Path(root) / f"hdfs-{VERSION}"


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    if java() is None:
        return "there is no java on the path"
    if not cache().is_dir():
        if shutil.which("mvn") is None:
            return "Maven is needed to fetch it (Debian: apt-get install maven)"
        try:
            jars()
        except RuntimeError as error:
            return str(error).splitlines()[0]
    return None


def jars() -> Path:
    """The folder with its jars, fetched if need be."""
    folder = cache()
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(str(why_not()))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Aside first: a folder by the right name is complete.
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        command = [maven, "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={aside}"], capture_output=True, text=True, check=False, cwd=aside
        )
        if done.returncode != 0:
            raise RuntimeError(f"Maven could not fetch HDFS:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        with contextlib.suppress(OSError):
            # Another process may have been faster.
            aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _ends_with_its_parent() -> None:
    """Also if that is killed: asks Linux for a signal."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class HdfsServer:
    """A name node and a data node between ``with`` and its end."""

    def __init__(self) -> None:
        self._port = 0
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The address: ``hdfs://127.0.0.1:port``."""
        return f"hdfs://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What it has said."""
        assert self._folder is not None
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self) -> HdfsServer:
        found = java()
        if found is None:
            raise RuntimeError(str(why_not()))
        self._folder = Path(tempfile.mkdtemp(prefix="firesteel-hdfs-"))
        self._port, http = _free_ports(2)
        options = [
            *_JVM,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            # The mini cluster's own folder.
            f"-Dtest.build.data={self._folder}/data",
            f"-Dhadoop.log.dir={self._folder}",
        ]
        main = [
            "org.apache.hadoop.test.MiniDFSClusterManager",
            "-format",
            "-datanodes",
            "1",
            "-nnport",
            str(self._port),
        ]
        more = ["-httpport", str(http), "-writeDetails", str(self._folder / "details")]
        try:
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [found, *options, "-cp", f"{jars()}/*", *main, *more],
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
        """Until it says where it is: then it has a data node, and can be written to."""
        assert self._folder is not None
        assert self._process is not None
        end = time.monotonic() + SECONDS_TO_START
        details = self._folder / "details"
        while not (details.is_file() and details.stat().st_size):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"HDFS did not start:\n{self.log[-4000:]}")
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
    """Without a command it fetches what is needed."""
    if len(sys.argv) < 2:
        print(jars())
        return 0
    with HdfsServer() as server:
        return subprocess.call(sys.argv[1:], env={**os.environ, "FIRESTEEL_HDFS": server.uri})


if __name__ == "__main__":
    sys.exit(main())
