"""A real schema registry for the tests: one for all of them, subjects of their own for each."""

from __future__ import annotations

import json
import os
import urllib.request
import uuid
from collections.abc import Iterator

import pytest
from registry_server import RegistryServer, why_not


class Registry:
    """A registry as a test sees it."""

    def __init__(self, server: RegistryServer) -> None:
        self.url = server.url
        self._names = f"t{uuid.uuid4().hex[:10]}"
        self._made = 0

    def subject(self) -> str:
        """A new subject, for which nothing is registered."""
        self._made += 1
        return f"{self._names}-{self._made}-value"

    def ask(self, method: str, path: str, content: object = None) -> object:
        """What the registry answers to somebody who does not use Firesteel."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="session")
def registry_server() -> Iterator[RegistryServer]:
    """The registry, started by the first test that asks for it. Where there is none they skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with a schema registry: {missing}")
        pytest.skip(missing)
    with RegistryServer() as server:
        yield server


@pytest.fixture
def registry(registry_server: RegistryServer) -> Registry:
    return Registry(registry_server)
