"""A real Redis for the tests: one server for all of them, emptied for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from redis_server import PASSWORD, RedisServer, why_not

__all__ = ["RedisDb", "redis", "redis_server"]


class RedisDb:
    """The server as a test sees it."""

    password = PASSWORD

    def __init__(self, server: RedisServer) -> None:
        self.server, self.url, self.client = server, server.url, server.client()

    def add(self, stream: str, numbers: Any) -> list[str]:
        """Adds an entry for each number; returns the ids."""
        with self.client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                pipeline.xadd(stream, {"n": number})
            return list(pipeline.execute())

    def numbers(self, stream: str) -> list[int]:
        return [int(fields["n"]) for _, fields in self.client.xrange(stream)]


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The server, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with Redis: {missing}")
        pytest.skip(f"no Redis to test with: {missing}")
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisDb:
    made = RedisDb(redis_server)
    made.client.flushall()
    return made
