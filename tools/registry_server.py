"""A schema registry of one's own: Apicurio Registry, which speaks Confluent's API, in memory, on loopback.

Tests use it. It is fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_SCHEMA_REGISTRY`` set::

    .venv/bin/python tools/registry_server.py .venv/bin/python program.py
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
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from kafka_server import java

VERSION = "3.0.9"
SECONDS_TO_START = 120
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def cache() -> Path:
    """Where the registry is, or will be."""
    root = os.environ.get("FIRESTEEL_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "firesteel"
    )
    return Path(root) / f"apicurio-{VERSION}"


def why_not() -> str | None:
    """What is missing to run a registry here; None if nothing is."""
    if java() is None:
        return "no schema registry: there is no java on the path"
    if not cache().is_dir() and shutil.which("mvn") is None:
        return "no schema registry: Maven is needed to fetch it (Debian: apt-get install maven)"
    return None


def installed() -> Path:
    """The folder with the registry's jars, fetched if need be."""
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
        command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={aside}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=aside)
        if done.returncode != 0:
            raise RuntimeError(f"Maven could not fetch the registry:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        (archive,) = aside.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(aside, filter="data")
        archive.unlink()
        with contextlib.suppress(OSError):
            # Another process may have been faster.
            aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ends_with_its_parent() -> None:
    """Also if that is killed: asks Linux for a signal."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class RegistryServer:
    """A registry between ``with`` and its end."""

    def __init__(self) -> None:
        self._port = 0
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of Confluent's API."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    @property
    def log(self) -> str:
        """What the registry has said."""
        assert self._folder is not None
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self) -> RegistryServer:
        self._folder = Path(tempfile.mkdtemp(prefix="firesteel-registry-"))
        self._port = _free_port()
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        assert self._folder is not None
        found = java()
        if found is None:
            raise RuntimeError(str(why_not()))
        settings = {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self._port),
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
        }
        (jar,) = installed().glob("*-runner.jar")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [found, *_JVM, "-jar", str(jar)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=os.environ | settings,
                preexec_fn=_ends_with_its_parent,
            )
        end = time.monotonic() + SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"The registry did not start:\n{self.log[-4000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        # Nothing to run: whoever calls wants it to be there later.
        print(installed())
        sys.exit()
    with RegistryServer() as server:
        sys.exit(subprocess.call(sys.argv[1:], env=os.environ | {"FIRESTEEL_SCHEMA_REGISTRY": server.url}))
