"""A generator that gives its records in portions: the next one when another kill is done.

So the job is never over before its last kill, however slow the machine is, and always has something to do after one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firesteel.connectors.sequence import IndexEnumerator
from firesteel.datastream.connectors.datagen import DataGeneratorSource

__all__ = ["PortionedSource", "let_go"]


def let_go(folder: Path, kill: int) -> None:
    """A kill is done, the first one has number 0."""
    folder.mkdir(exist_ok=True)
    (folder / str(kill)).touch()


class PortionedSource(DataGeneratorSource):
    """One portion more than there are kills. ``folder`` has a file for each kill that is done."""

    def __init__(
        self, function: Callable[[int], Any], count: int, rate: float | None, folder: str, portions: int
    ) -> None:
        super().__init__(function, count, rate)
        self._records, self._folder, self._portions = count, folder, portions

    def create_enumerator(self) -> IndexEnumerator:
        return _PortionedEnumerator(self._records, self._per_second, self._folder, self._portions)


class _PortionedEnumerator(IndexEnumerator):
    def __init__(self, count: int, rate: float | None, folder: str, portions: int) -> None:
        super().__init__(count, rate)
        self._folder, self._portions = folder, portions

    def latest(self, position: int, max_records: int) -> int:
        done = len(os.listdir(self._folder)) if os.path.isdir(self._folder) else 0
        end = self._size * min(done + 1, self._portions) // self._portions
        return super().latest(position, max(0, min(max_records, end - position)))
