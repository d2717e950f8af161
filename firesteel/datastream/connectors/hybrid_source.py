"""Sources one after the other, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.hybrid import HybridEnumerator, HybridReader, NumberedSplit
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ProgramError, short_repr
from firesteel.filesystems import StorageOptions

__all__ = ["HybridSource", "HybridSourceBuilder"]


class HybridSource(Source[NumberedSplit, Any]):
    """Reads one source to its end, then the next: files with the history first, then Kafka.

    All but the last must be bounded. Made by :meth:`builder`.

    >>> from firesteel.common import WatermarkStrategy
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> from firesteel.testing import memory_environment
    >>> source = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(7, 8)).build()
    >>> stream = memory_environment().from_source(source, WatermarkStrategy.no_watermarks(), "both")
    >>> with stream.execute_and_collect() as numbers:
    ...     list(numbers)
    [1, 2, 3, 7, 8]
    """

    def __init__(self, sources: tuple[Source[Any, Any], ...]) -> None:
        self._sources = sources

    @staticmethod
    def builder(first_source: Source[Any, Any]) -> HybridSourceBuilder:
        """A builder that begins with this source."""
        return HybridSourceBuilder().add_source(first_source)

    def create_enumerator(self) -> SplitEnumerator[NumberedSplit]:
        enumerators = [source.create_enumerator() for source in self._sources]
        for number, enumerator in enumerate(enumerators[:-1]):
            if not enumerator.bounded:
                raise ProgramError(
                    f"Source {number + 1} of a HybridSource, {type(self._sources[number]).__name__}, has no end, so "
                    "the next one would never begin. All but the last must be bounded."
                )
        return HybridEnumerator(enumerators)

    def create_reader(self) -> SourceReader[NumberedSplit, Any]:
        return HybridReader([source.create_reader() for source in self._sources])

    def get_produced_type(self) -> TypeInformation | None:
        kinds = [source.get_produced_type() for source in self._sources]
        return kinds[0] if all(kind == kinds[0] for kind in kinds) else None

    def with_storage(self, options: StorageOptions) -> Source[NumberedSplit, Any]:
        return HybridSource(tuple(source.with_storage(options) for source in self._sources))


class HybridSourceBuilder:
    """Makes a :class:`HybridSource`."""

    def __init__(self) -> None:
        self._sources: tuple[Source[Any, Any], ...] = ()

    def add_source(self, source: Source[Any, Any]) -> HybridSourceBuilder:
        """The source that is read when those before have ended."""
        if not isinstance(source, Source):
            raise ProgramError(f"A HybridSource is made of instances of Source, got {short_repr(source, 80)}.")
        self._sources = (*self._sources, source)
        return self

    def build(self) -> HybridSource:
        """The source."""
        return HybridSource(self._sources)
