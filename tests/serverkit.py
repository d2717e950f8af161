"""Servers that single tests start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest


def cannot_run(why: str) -> NoReturn:
    """Ends a test for which something is missing here: skipped, but a failure under CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have what its tests need: {why}")
    pytest.skip(why)


@contextlib.contextmanager
def started(make: Callable[[], Any]) -> Iterator[Any]:
    """A server until the end of the block; a test is skipped where there is none, but never under CI."""
    try:
        server = make()
    except RuntimeError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.close()
