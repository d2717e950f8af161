"""Sources for which the driver has something to do: to run a query on its Spark session, say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from firesteel.common.path_names import path_name
from firesteel.connectors.source import SplitEnumerator
from firesteel.engine.clean_up import guarded
from firesteel.graph.stream_graph import StreamGraph, StreamNode
from firesteel.runtime.failures import describe

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore

__all__ = ["DriverSources"]


class DriverSources:
    """Those of a job. The enumerators are the program's own, not the copies that travel to the process that plans."""

    def __init__(self, graph: StreamGraph, directory: str, restore: Restore | None) -> None:
        """``directory`` is where sources keep their files."""
        self._found: list[tuple[StreamNode, SplitEnumerator[Any]]] = [
            (graph.nodes[node_id], enumerator)
            for node_id, enumerator in graph.enumerators.items()
            if enumerator.needs_driver
        ]
        self._directory, self._restore = directory, restore

    def begin(self) -> None:
        """Before an attempt."""
        if self._found and self._restore is not None:
            # Before the other process does it: what a source goes on from must be there.
            self._restore.bring_files(self._directory)
        for node, enumerator in self._found:
            try:
                enumerator.begin_in_driver(os.path.join(self._directory, path_name(node.uid)))
            except Exception as error:
                self.end()
                raise describe(error, node.name, node.built_at, 0) from error

    def end(self) -> None:
        """After an attempt, whether it was begun or not."""
        for _, enumerator in self._found:
            guarded(enumerator.end_in_driver)
