"""Records made by a function, for trials, demos and load tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.connectors.sequence import GeneratorReader, IndexEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.functions import as_map
from firesteel.errors import ProgramError

__all__ = ["DataGeneratorSource"]


class DataGeneratorSource(Source[None, Any]):
    """Calls a function (or a MapFunction, with its open() and close()) with 0, 1, 2, … and streams what it returns.

    ``count`` None means without end. ``records_per_second`` limits the rate of all subtasks together. The function
    must return the same record for the same index, or a replayed batch would differ.

    >>> DataGeneratorSource(lambda index: f"user-{index % 3}", count=5).create_enumerator().bounded
    True
    """

    def __init__(
        self,
        generator_function: Callable[[int], Any] | Any,
        count: int | None = None,
        records_per_second: float | None = None,
    ) -> None:
        function = as_map(generator_function)
        if count is not None and count < 0:
            raise ProgramError(f"count must be 0 or more (or None for no end), got {count}.")
        if records_per_second is not None and records_per_second <= 0:
            raise ProgramError(f"records_per_second must be above 0, got {records_per_second}.")
        self._function = function
        self._count = count
        self._per_second = records_per_second

    def create_enumerator(self) -> IndexEnumerator:
        return IndexEnumerator(self._count, self._per_second)

    def create_reader(self) -> GeneratorReader:
        # A plain callable without the wrapper around it: it is called for every record.
        call = getattr(self._function, "func", None) or self._function.map
        return GeneratorReader(call, self._function)
