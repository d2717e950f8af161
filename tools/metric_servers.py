"""Servers that take metrics, for the tests of reporters: Debian's prometheus and push gateway, npm's statsd, PyPI's
carbon.

None of them is installed: their files are fetched once and kept in Firesteel's cache. Run as a script, this fetches all
of them and says what is missing. Each server runs in a temporary folder, on loopback, on free ports.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import venv
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import local_server
from local_server import free_ports

SECONDS_TO_START = 180
STATSD = "0.9.0"
CARBON = "1.1.10"


def cache() -> Path:
    """Where the files are, or will be."""
    return local_server.cache("metric-servers-1")


def _fetched(name: str, fetch: Callable[[Path], None], needs: str) -> Path:
    """A folder of the cache."""
    folder = cache() / name
    if not folder.is_dir() and shutil.which(needs) is None:
        raise RuntimeError(f"{name}: {needs} is needed to fetch it")
    try:
        return local_server.fetched(folder, fetch)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeError(f"{name} could not be fetched: {error}") from error


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise subprocess.SubprocessError(f"{command[0]}: {done.stderr.strip()[-300:]}")


def _debian(package: str) -> Path:
    """The files of a Debian package, not installed: its service would start."""

    def fetch(folder: Path) -> None:
        try:
            _run("apt-get", "download", "-qq", package, cwd=folder)
        except subprocess.SubprocessError:
            # The lists of packages may be missing or old.
            _run("apt-get", "update", "-qq", cwd=folder)
            _run("apt-get", "download", "-qq", package, cwd=folder)
        (archive,) = folder.glob("*.deb")
        _run("dpkg", "-x", str(archive), str(folder), cwd=folder)
        archive.unlink()

    return _fetched(package, fetch, "apt-get") / "usr" / "bin" / package


def prometheus() -> Path:
    return _debian("prometheus")


def push_gateway() -> Path:
    return _debian("prometheus-pushgateway")


def statsd() -> Path:
    def fetch(folder: Path) -> None:
        _run("npm", "pack", f"statsd@{STATSD}", cwd=folder)
        _run("tar", "xzf", f"statsd-{STATSD}.tgz", cwd=folder)

    return _fetched(f"statsd-{STATSD}", fetch, "npm") / "package" / "stats.js"


def carbon() -> Path:
    """The Python of an environment that has it."""

    def fetch(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        _run(str(folder / "bin" / "python"), "-m", "pip", "install", "-q", f"carbon=={CARBON}", "whisper", cwd=folder)

    return _fetched(f"carbon-{CARBON}", fetch, sys.executable) / "bin" / "python"


FETCHED = {"prometheus": prometheus, "push gateway": push_gateway, "statsd": statsd, "carbon": carbon}


def free_port() -> int:
    return free_ports(1)[0]


class Server:
    """A process that is ended with the test."""

    def __init__(
        self, *command: str, ready: Callable[[], bool], config: Any = None, env: dict[str, str] | None = None
    ) -> None:
        """In a command ``{folder}`` is the server's folder, with ``config`` in the file ``config.json``."""
        self.folder = Path(tempfile.mkdtemp(prefix="metrics-"))
        (self.folder / "config.json").write_text(json.dumps(config))
        self._log = open(self.folder / "log", "wb")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [part.replace("{folder}", str(self.folder)) for part in command],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, **(env or {})},
        )
        deadline = time.monotonic() + SECONDS_TO_START
        while not _holds(ready):
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "log").read_text(errors="replace")[-1000:]
                self.close()
                raise RuntimeError(f"{command[0]} did not start: {said}")
            time.sleep(0.05)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _holds(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except OSError:
        return False


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


class Prometheus(Server):
    """Scrapes one target every two seconds: it has as long to answer, also in a process that has much to do."""

    def __init__(self, target: int, token: str | None = None) -> None:
        self.port = free_port()
        asked: dict[str, Any] = {"authorization": {"credentials": token}} if token else {}
        jobs = [{"job_name": "firesteel", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}], **asked}]
        super().__init__(
            str(prometheus()),
            "--config.file={folder}/config.json",
            "--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            ready=lambda: "Ready" in get(f"http://127.0.0.1:{self.port}/-/ready"),
            config={"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": jobs},
        )

    def query(self, text: str) -> list[Any]:
        """The result of a query: labels and values."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={urllib.parse.quote(text)}"
        found: list[Any] = json.loads(get(url))["data"]["result"]
        return found


class PushGateway(Server):
    def __init__(self) -> None:
        self.port = free_port()
        super().__init__(
            str(push_gateway()),
            f"--web.listen-address=127.0.0.1:{self.port}",
            ready=lambda: "OK" in get(f"http://127.0.0.1:{self.port}/-/ready"),
        )

    def metrics(self) -> str:
        return get(f"http://127.0.0.1:{self.port}/metrics")


class StatsD(Server):
    def __init__(self) -> None:
        self.port, self._manager = free_port(), free_port()
        addresses = {"port": self.port, "address": "127.0.0.1", "mgmt_port": self._manager, "mgmt_address": "127.0.0.1"}
        super().__init__(
            "node",
            str(statsd()),
            "{folder}/config.json",
            ready=lambda: _listens(self._manager),
            config={**addresses, "flushInterval": 600_000, "backends": []},
        )

    def gauges(self) -> dict[str, float]:
        with socket.create_connection(("127.0.0.1", self._manager), 5) as line:
            line.sendall(b"gauges\n")
            said = b""
            while b"END" not in said:
                said += line.recv(1 << 16)
        found = re.findall(r"'?([\w.\-<>]+)'?: (-?[\d.e+]+)[,\s}]", said.decode())
        return {name: float(number) for name, number in found}


class Carbon(Server):
    def __init__(self) -> None:
        self.port, self._python = free_port(), carbon()
        self._root = Path(tempfile.mkdtemp(prefix="carbon-"))
        (self._root / "conf").mkdir()
        (self._root / "conf" / "storage-schemas.conf").write_text("[all]\npattern = .*\nretentions = 1s:10m\n")
        (self._root / "conf" / "carbon.conf").write_text(
            "[cache]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_INTERFACE = 127.0.0.1\n"
            f"CACHE_QUERY_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {self.port}\n"
            f"PICKLE_RECEIVER_PORT = {free_port()}\nCACHE_QUERY_PORT = {free_port()}\n"
            "MAX_CREATES_PER_MINUTE = inf\nMAX_UPDATES_PER_SECOND = inf\n"
        )
        super().__init__(
            str(self._python),
            str(self._python.parent / "carbon-cache.py"),
            "--nodaemon",
            f"--config={self._root}/conf/carbon.conf",
            "start",
            ready=lambda: _listens(self.port),
            env={"GRAPHITE_ROOT": str(self._root)},
        )

    def value(self, metric: str) -> float | None:
        """The last number of a metric in Graphite's own file; None while there is none."""
        path = self._root / "storage" / "whisper" / f"{metric.replace('.', '/')}.wsp"
        if not path.exists():
            return None
        script = (
            "import whisper, sys, json; _, numbers = whisper.fetch(sys.argv[1], 0); "
            "print(json.dumps([n for n in numbers if n is not None][-1:]))"
        )
        done = subprocess.run([str(self._python), "-c", script, str(path)], capture_output=True, text=True, timeout=60)
        found: list[float] = json.loads(done.stdout or "[]")
        return found[0] if found else None

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._root, ignore_errors=True)


if __name__ == "__main__":
    failed = 0
    for name, fetch in FETCHED.items():
        try:
            print(f"{name}: {fetch()}")
        except RuntimeError as error:
            failed += 1
            print(error, file=sys.stderr)
    sys.exit(1 if failed else 0)
