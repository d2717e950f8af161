"""A real HDFS for the tests: Hadoop's mini cluster, one for all of them, with a folder for each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from hdfs_server import HdfsServer, why_not

from firesteel.filesystems import FileSystem, file_system_of

__all__ = ["HdfsFolder", "hdfs", "hdfs_server"]


class HdfsFolder:
    """A folder of one test."""

    def __init__(self, address: str) -> None:
        self._base = f"{address}/t{uuid.uuid4().hex}"

    def uri(self, path: str = "") -> str:
        return f"{self._base}/{path}".rstrip("/")

    @property
    def files(self) -> FileSystem:
        return file_system_of(self._base)

    def add(self, path: str, content: bytes) -> None:
        with self.files.open_output(self.uri(path)) as out:
            out.write(content)

    def names(self, below: str = "") -> list[str]:
        """All files, hidden ones too."""
        return sorted(path.removeprefix(self._base + "/") for path in self.files.names(self.uri(below)))

    def lines(self, below: str) -> list[str]:
        """What readers see: they pass over names that begin with a dot."""
        seen = [name for name in self.names(below) if not any(part.startswith(".") for part in name.split("/"))]
        return [line for name in seen for line in self.files.read(self.uri(name)).decode().splitlines()]


def _missing() -> str | None:
    try:
        import fsspec  # noqa: F401
        import hdfs_native  # noqa: F401
    except ImportError as error:
        return str(error)
    return why_not()


@pytest.fixture(scope="session")
def hdfs_server() -> Iterator[HdfsServer]:
    """Started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = _missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with HDFS: {missing}")
        pytest.skip(f"no HDFS to test with: {missing}")
    with HdfsServer() as server:
        yield server


@pytest.fixture
def hdfs(hdfs_server: HdfsServer) -> HdfsFolder:
    return HdfsFolder(hdfs_server.uri)
