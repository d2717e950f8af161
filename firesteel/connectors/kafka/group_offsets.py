"""The offsets of a group, committed while the job goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from firesteel.connectors.kafka.offsets import Cluster, TopicPartition
from firesteel.errors import ConnectorError

__all__ = ["GroupOffsets"]

logger = logging.getLogger("firesteel")

_LAST_SECONDS = 10.0


class GroupOffsets:
    """Commits the latest offsets that it was given, one commit at a time. Nobody waits for it before the end. If it
    does not succeed there is a warning: the job's own positions are in its checkpoint."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._committed: dict[TopicPartition, int] = {}
        self._wanted: dict[TopicPartition, int] = {}
        self._going: Callable[[float], bool] | None = None
        self._sent: dict[TopicPartition, int] = {}
        self._warned = False

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits these, now or when an earlier commit is done."""
        self._wanted = {one: offset for one, offset in offsets.items() if self._committed.get(one) != offset}
        self._go_on(0.0)

    def go_on(self) -> None:
        """Sends what has waited for an earlier commit, if that is done. Does not wait."""
        if self._going is not None:
            self._go_on(0.0)

    def _go_on(self, seconds: float) -> None:
        if self._going is not None:
            try:
                if not self._going(seconds):
                    return
                self._committed.update(self._sent)
                self._warned = False
            except ConnectorError as error:
                if not self._warned:
                    self._warned = True
                    logger.warning("%s The job goes on; its own positions are in its checkpoint.", error)
            self._going = None
        new = {one: offset for one, offset in self._wanted.items() if self._committed.get(one) != offset}
        self._wanted = {}
        if new:
            self._sent, self._going = new, self._cluster.begin_commit(new)

    def close(self) -> None:
        """Waits for the last commit."""
        # The one that is on its way, and the one behind it.
        self._go_on(_LAST_SECONDS)
        self._go_on(_LAST_SECONDS)
