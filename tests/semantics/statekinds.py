"""Every kind of state: a model of it, and scripts that use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from kit import BATCH, STREAMING

from firesteel.common import Types
from firesteel.datastream import (
    AggregateFunction,
    RuntimeContext,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

BACKENDS = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb"},
    "tight": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"},
}
BACKEND = pytest.mark.parametrize("backend", list(BACKENDS))
MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
SUBTASKS = pytest.mark.parametrize("subtasks", [1, 3])
SIZES = pytest.mark.parametrize("size", [1, 3, 1000])


def settings(backend: str, size: int = 3) -> dict[str, str]:
    return {**BACKENDS[backend], "firesteel.batch.max-records": str(size)}


# Models: the least that behaves like a state


class Model:
    """What one key has; ``None`` or empty where nothing is stored."""

    def __init__(self) -> None:
        self.content: Any = None

    def value(self) -> Any:
        return self.content

    def update(self, value: Any) -> None:
        self.content = value

    def clear(self) -> None:
        self.content = None


class ListModel(Model):
    def get(self) -> list[Any]:
        return list(self.content or [])

    def add(self, value: Any) -> None:
        self.content = [*self.get(), value]

    def add_all(self, values: list[Any]) -> None:
        self.content = [*self.get(), *values]


class MapModel(Model):
    def __init__(self) -> None:
        self.content: dict[Any, Any] = {}
        self.put, self.put_all, self.get = self.content.__setitem__, self.content.update, self.content.get
        self.items, self.keys, self.values = self.content.items, self.content.keys, self.content.values
        self.contains, self.clear = self.content.__contains__, self.content.clear

    def remove(self, key: Any) -> None:
        self.content.pop(key, None)

    def is_empty(self) -> bool:
        return not self.content


class SumModel(Model):
    def add(self, value: int) -> None:
        self.content = (self.content or 0) + value

    def get(self) -> int | None:
        result: int | None = self.content
        return result


class MeanModel(ListModel):
    def get(self) -> Any:
        return sum(self.content) / len(self.content) if self.content else None

    def add(self, value: Any) -> None:
        self.content = [*(self.content or []), value]


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


# Scripts: what record number ``n`` does to a state, and what it is shown


def value_script(state: Any, n: int) -> Any:
    before = state.value()
    if n % 7 == 0:
        state.clear()
    elif n % 11 == 0:
        state.update(None)
    else:
        state.update((before or 0) + n)
    return before, state.value()


def list_script(state: Any, n: int) -> Any:
    if n % 7 == 0:
        state.clear()
    elif n % 5 == 0:
        state.update([n, -n])
    elif n % 3 == 0:
        state.add_all([n, n + 1, n + 2])
    else:
        state.add(n)
    return list(state.get())


def map_script(state: Any, n: int) -> Any:
    empty, known = state.is_empty(), state.contains(n % 4)
    if n % 13 == 0:
        state.clear()
    elif n % 5 == 0:
        state.remove(n % 4)
    elif n % 3 == 0:
        state.put_all({n % 4: n, n % 6: -n})
    else:
        state.put(n % 4, (state.get(n % 4) or 0) + n)
    return empty, known, sorted(state.items()), sorted(state.keys()), sorted(state.values()), state.get(99)


def adding_script(state: Any, n: int) -> Any:
    before = state.get()
    if n % 7 == 0:
        state.clear()
    else:
        state.add(n)
    return before, state.get()


def big_list_script(state: Any, n: int) -> Any:
    state.add_all(list(range(n * 100, n * 100 + 100)))
    state.add(-n)
    if n == 30:
        state.update(list(state.get())[::2])
    if n == 40:
        state.clear()
    shown = list(state.get())
    return len(shown), shown[:3], shown[-3:], sum(shown)


def big_map_script(state: Any, n: int) -> Any:
    state.put_all(dict.fromkeys(range(n * 50, n * 50 + 100), n))
    for gone in range(n * 50, n * 50 + 100, 7):
        state.remove(gone)
    if n == 40:
        state.clear()
    return len(list(state.keys())), sum(state.keys()), sum(state.values()), state.contains(n * 50 + 1), state.is_empty()


class Kind(NamedTuple):
    descriptor: Callable[[], StateDescriptor]
    model: type[Model]
    script: Callable[[Any, int], Any]


def added(a: int, b: int) -> int:
    return a + b


KINDS = {
    "value": Kind(lambda: ValueStateDescriptor("kept", Types.LONG()), Model, value_script),
    "list": Kind(lambda: ListStateDescriptor("kept", Types.LONG()), ListModel, list_script),
    "map": Kind(lambda: MapStateDescriptor("kept", Types.LONG(), Types.LONG()), MapModel, map_script),
    "reducing": Kind(lambda: ReducingStateDescriptor("kept", added, Types.LONG()), SumModel, adding_script),
    "aggregating": Kind(
        lambda: AggregatingStateDescriptor("kept", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()])),
        MeanModel,
        adding_script,
    ),
    "big list": Kind(lambda: ListStateDescriptor("kept", Types.LONG()), ListModel, big_list_script),
    "big map": Kind(lambda: MapStateDescriptor("kept", Types.LONG(), Types.LONG()), MapModel, big_map_script),
}
SMALL = ("value", "list", "map", "reducing", "aggregating")
RECORDS = [(f"key {n * n % 11}", n) for n in range(1, 50)]


def state_of(runtime_context: RuntimeContext, kind: str, name: str = "kept") -> Any:
    """Asks for the state as a user does, by the method of its kind."""
    descriptor: Any = KINDS[kind].descriptor()
    descriptor.name = name
    return {
        "value": runtime_context.get_state,
        "list": runtime_context.get_list_state,
        "map": runtime_context.get_map_state,
        "reducing": runtime_context.get_reducing_state,
        "aggregating": runtime_context.get_aggregating_state,
    }[kind.removeprefix("big ")](descriptor)


def told_by_model(kind: str, records: list[Any] = RECORDS) -> list[Any]:
    """What each record is shown if state is a plain Python value per key."""
    states: dict[Any, Model] = {}
    shown = []
    for key, n in records:
        state = states.setdefault(key, KINDS[kind].model())
        shown.append((key, n, KINDS[kind].script(state, n)))
    return sorted(shown)
