"""A source inside a task of stage 0: reads its share of the batch and pushes it into the chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.connectors.source import Chunk
from firesteel.graph.specs import SourceSpec
from firesteel.runtime.operators.base import Operator, handles
from firesteel.runtime.watermarks import MAX_WATERMARK

__all__ = ["SourceOperator"]


@handles(SourceSpec)
class SourceOperator(Operator):
    def open(self) -> None:
        try:
            self.spec.source.open(self.context)
        except Exception as error:
            raise self.failure(error) from error

    def close(self) -> None:
        try:
            self.spec.source.close()
        except Exception as error:
            raise self.failure(error) from error

    def read(self, share: Any, ended: bool) -> Iterator[int]:
        """Reads one subtask's share of a batch chunk by chunk. Yields the number of records of each."""
        if share is not None:
            for chunk in self._chunks(share):
                if isinstance(chunk, int):
                    self.out.watermark(self.node.id, chunk)
                    continue
                values, timestamps = chunk
                self.out.emit(values, timestamps)
                yield len(values)
        if ended:
            # Said in every batch after the end, since stage 0 remembers nothing.
            self.out.watermark(self.node.id, MAX_WATERMARK)

    def _chunks(self, share: Any) -> Iterator[Chunk | int]:
        try:
            yield from self.spec.source.read(share)
        except Exception as error:
            raise self.failure(error) from error
