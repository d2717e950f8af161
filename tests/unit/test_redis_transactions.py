"""Commands of Redis exactly once, without a server: what cannot be known is not guessed."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.connectors.redis.transactions import send_once
from firesteel.errors import ConnectorError, FailureKind


class Pipeline:
    """A pipeline that may be asked for the marker, and for nothing else."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker

    def pipeline(self, transaction: bool) -> Pipeline:
        assert transaction
        return self

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *given: Any) -> None:
        """Nothing is left open."""

    def watch(self, key: str) -> None:
        assert key == "marker"

    def get(self, key: str) -> bytes:
        return self._marker


@pytest.mark.parametrize("marker", [b"somebody else's", b"", b"7 x"])
def test_a_marker_that_somebody_else_has_written(marker: bytes) -> None:
    with pytest.raises(ConnectorError, match="The key 'marker' should have the number of the last batch") as caught:
        send_once(Pipeline(marker), "marker", 8, [("SET", "a", "b")])
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_batch_that_is_done_is_not_sent_again() -> None:
    assert send_once(Pipeline(b"8"), "marker", 8, [("SET", "a", "b")]) == []
