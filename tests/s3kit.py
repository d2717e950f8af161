"""A real S3 server for the tests: moto's, in a process of its own, one for all of them, with a bucket for each."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator

import pytest
from local_server import free_ports

from firesteel.filesystems import FileSystem, StorageOptions, file_system_of

__all__ = ["Bucket", "bucket", "s3_server"]

KEY, SECRET = "the-access-key", "the-secret-key"


class Bucket:
    """A bucket of one test."""

    def __init__(self, endpoint: str) -> None:
        self.name = f"b{uuid.uuid4().hex}"
        self.settings = {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
        }
        self.options = StorageOptions.of(self.settings)
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{self.name}", method="PUT")).close()

    def uri(self, path: str = "", scheme: str = "s3") -> str:
        return f"{scheme}://{self.name}/{path}".rstrip("/")

    @property
    def files(self) -> FileSystem:
        return file_system_of(self.uri(), self.options)

    def names(self) -> list[str]:
        """All objects, hidden ones too."""
        return sorted(path.removeprefix(self.uri() + "/") for path in self.files.names(self.uri()))

    def lines(self, below: str = "") -> list[str]:
        """What readers see: they pass over names that begin with a dot."""
        names = [name for name in self.names() if name.startswith(below)]
        seen = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
        return [line for name in seen for line in self.files.read(self.uri(name)).decode().splitlines()]


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail("moto's server does not start")
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture
def bucket(s3_server: str) -> Bucket:
    return Bucket(s3_server)
