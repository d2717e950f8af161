"""The progress lines of several jobs at once."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from firesteel.engine import progress
from firesteel.engine.inbox import Progress
from firesteel.engine.progress import ProgressLine


@pytest.fixture
def handler() -> Iterator[logging.Handler]:
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("first", [0, 1])
def test_log_lines_get_lines_of_their_own_until_the_last_job_ends(first: int, handler: logging.Handler) -> None:
    lines = [ProgressLine(name, Progress(), wanted=True) for name in ("one", "two")]
    for line in lines:
        line.start("starting")
    assert handler.filters == [progress._make_room]
    lines[first].stop()
    assert handler.filters == [progress._make_room], "the other one is still there"
    lines[1 - first].stop()
    assert handler.filters == []
    assert handler not in progress._users
