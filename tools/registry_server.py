"""A schema registry of one's own: Apicurio Registry, which speaks Confluent's API, in memory, on loopback.

Tests use it. It is fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_SCHEMA_REGISTRY`` set::

    .venv/bin/python tools/registry_server.py .venv/bin/python program.py
"""

from __future__ import annotations

import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

import local_server
from local_server import LocalServer, fetched, free_ports, maven, run_with, why_no_java_server

__all__ = ["VERSION", "RegistryServer", "cache", "installed", "why_not"]

VERSION = "3.0.9"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"


def cache() -> Path:
    """Where the registry is, or will be."""
    return local_server.cache(f"apicurio-{VERSION}")


def why_not() -> str | None:
    """What is missing to run a registry here; None if nothing is."""
    return why_no_java_server("schema registry", cache())


def installed() -> Path:
    """The folder with the registry's jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        maven("copy", f"-Dartifact={_ARTIFACT}", into=folder, what="the schema registry")
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        archive.unlink()

    return fetched(cache(), fetch)


class RegistryServer(LocalServer):
    """A registry between ``with`` and its end."""

    name = "schema registry"

    def __init__(self) -> None:
        self._port = 0
        super().__init__()

    @property
    def url(self) -> str:
        """The address of Confluent's API."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def _set_up(self) -> None:
        (self._port,) = free_ports(1)
        settings = {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self._port),
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
        }
        (jar,) = installed().glob("*-runner.jar")
        self._process = self._java("-Xmx256m", "-jar", str(jar), env=settings)
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


if __name__ == "__main__":
    sys.exit(run_with(RegistryServer, installed, "FIRESTEEL_SCHEMA_REGISTRY", "url"))
