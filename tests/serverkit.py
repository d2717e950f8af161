"""Servers that single tests start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest


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
