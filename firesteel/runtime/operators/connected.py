"""Operators with two inputs: the functions of connected streams.

An operator of this kind has a port per input, bound to the function's method for it, so that a chunk knows where it
belongs and records carry nothing. A new operator with two inputs gives its methods' names, or its own ``port``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, ClassVar

from firesteel.graph.specs import CoFlatMapSpec, CoMapSpec, CoProcessSpec, KeyedCoProcessSpec
from firesteel.runtime.context import ElementContext, TimerlessService
from firesteel.runtime.grouping import KeyGroups
from firesteel.runtime.operators.base import Operator, Placement, Port, handles
from firesteel.runtime.operators.keyed import KeyedCalls, KeyedOperator, KeyedProcessOperator, either
from firesteel.runtime.operators.stateless import FlatMapCalls, ProcessCalls
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["Input", "KeyedTwoInputs", "TwoInputs"]


@dataclass(frozen=True, slots=True)
class Input:
    """A port of an operator with several: what to call with a chunk, without and with keys."""

    process: Callable[[list[Any], list[int] | None], None]
    process_keyed: Callable[[list[Any], list[Any], list[int] | None], None]


class TwoInputs(Operator):
    """Two inputs without keys. Where one of them is keyed all the same, its keys have done their work: they routed."""

    METHODS: ClassVar[tuple[str, str]]

    def port(self, ordinal: int) -> Port:
        take = partial(self.call, getattr(self.spec.function, self.METHODS[ordinal]))
        return Input(take, lambda keys, values, timestamps: take(values, timestamps))

    def call(self, method: Callable[..., Any], values: list[Any], timestamps: list[int] | None) -> None:
        """Records of one input, for its method."""
        raise NotImplementedError(type(self).__name__)  # pragma: no cover - every operator of this kind overrides it


class KeyedTwoInputs(KeyedOperator):
    """Two inputs keyed alike, over one state."""

    METHODS: ClassVar[tuple[str, str]]

    def port(self, ordinal: int) -> Port:
        take = self._group if self._groups is not None else self._take
        return Input(self.process, partial(take, ordinal, self.method(ordinal)))

    def method(self, ordinal: int) -> Callable[..., Any]:
        """What is called for a record of an input."""
        found: Callable[..., Any] = getattr(self.spec.function, self.METHODS[ordinal])
        return found

    def _take(
        self,
        ordinal: int,
        method: Callable[..., Any],
        keys: list[Any],
        values: list[Any],
        timestamps: list[int] | None,
    ) -> None:
        self.backend.prepare(keys)
        self.call(method, keys, values, timestamps)

    def _group(
        self,
        ordinal: int,
        method: Callable[..., Any],
        keys: list[Any],
        values: list[Any],
        timestamps: list[int] | None,
    ) -> None:
        assert self._groups is not None
        self._groups.add(keys, values, timestamps, ordinal)

    def run_groups(self, groups: KeyGroups) -> None:
        methods = [self.method(0), self.method(1)]
        for key, ordinals, values, timestamps in groups.merged_groups():
            self.clock.watermark = MIN_TIMESTAMP
            self.backend.prepare((key,))
            turns = iter([methods[ordinal] for ordinal in ordinals])
            self.call(partial(_in_turn, turns), [key] * len(values), values, timestamps)
            self.end_group(key)

    def call(
        self, method: Callable[..., Any], keys: list[Any], values: list[Any], timestamps: list[int] | None
    ) -> None:
        """Records of one input, for its method; the state of their keys is in memory."""
        raise NotImplementedError(type(self).__name__)  # pragma: no cover - every operator of this kind overrides it


def _in_turn(methods: Any, *arguments: Any) -> Any:
    """Calls the next one of several methods: records of both inputs run as one chunk."""
    return next(methods)(*arguments)


class CoMapOperator(TwoInputs):
    METHODS = ("map1", "map2")

    def call(self, method: Callable[..., Any], values: list[Any], timestamps: list[int] | None) -> None:
        results = self.apply_to_all(method, values)
        there = [result is not None for result in results]
        if not all(there):
            # A None means "nothing for this record".
            results = list(compress(results, there))
            timestamps = None if timestamps is None else list(compress(timestamps, there))
        self.out.emit(results, timestamps)


class CoFlatMapOperator(FlatMapCalls, TwoInputs):
    METHODS = ("flat_map1", "flat_map2")


@handles(CoProcessSpec)
class CoProcessOperator(ProcessCalls, TwoInputs):
    METHODS = ("process_element1", "process_element2")


class KeyedCoMapOperator(KeyedCalls, KeyedTwoInputs):
    METHODS = ("map1", "map2")

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        if produced is not None:
            results.append(produced)


class KeyedCoFlatMapOperator(KeyedCalls, KeyedTwoInputs):
    METHODS = ("flat_map1", "flat_map2")

    @staticmethod
    def gather(value: Any, produced: Any, results: list[Any]) -> None:
        if produced is not None:
            results.extend(produced)


@handles(KeyedCoProcessSpec)
class KeyedCoProcessOperator(KeyedProcessOperator, KeyedTwoInputs):
    """Timers and their firing are those of one input; elements come from two."""

    METHODS = ("process_element1", "process_element2")

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        if not hasattr(self.spec.function, "on_timer"):
            # A CoProcessFunction: its state is the key's, but a timer would find nobody to call.
            self._context = ElementContext(self.clock, TimerlessService(self.clock), self.backend)


either(CoMapOperator, KeyedCoMapOperator, CoMapSpec)
either(CoFlatMapOperator, KeyedCoFlatMapOperator, CoFlatMapSpec)
