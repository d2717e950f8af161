"""The rows of a state as a table: which columns a row has, by the state's kind and scope.

| part | columns |
|---|---|
| place | ``key``; of windows also ``window_start``, ``window_end`` (or ``window_pickle``); of others ``place_pickle`` |
| value | ``value``, with a time to live also ``last_used`` |
| list | ``position``, ``value`` |
| map, broadcast | ``map_key``, ``value`` |
| timers | ``time`` |
| split, union, raw | ``value`` |
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.durable.cells import PROTOCOL
from firesteel.engine.savepoints.columns import Column, column
from firesteel.runtime.snapshots.saved import Rows, StateId

__all__ = ["RowFormat"]


class RowFormat:
    """Rows of one state to Arrow and back.

    >>> from firesteel.common.typeinfo import Types
    >>> from firesteel.durable.headers import StateSchema
    >>> counts = StateId("count", "count", "value", "key", StateSchema("value", Types.LONG()), Types.STRING())
    >>> format = RowFormat(counts)
    >>> batch = format.batch(["a", "b"], [1, 2])
    >>> batch.to_pydict()
    {'key': ['a', 'b'], 'value': [1, 2]}
    >>> format.rows(batch)
    (['a', 'b'], [1, 2])
    """

    def __init__(self, state: StateId, loads: Callable[[bytes], Any] = pickle.loads) -> None:
        """``loads``: how what is pickled is loaded."""
        self._loads = loads
        self._state = state
        types = state.schema.columns if state.kind not in ("timers", "raw") else (None,)
        self._key = None if state.scope == "operator" else column("key", state.key_type, readable=True, loads=loads)
        self._value: Column = column("value", types[-1], loads=loads)
        self._map_key = column("map_key", types[0], loads=loads) if state.kind in ("map", "broadcast") else None
        self.schema = pa.schema([*self._place_fields(), *self._content_fields()])

    # Columns

    def _place_fields(self) -> list[pa.Field]:
        if self._key is None:
            return []
        fields = self._key.fields()
        if self._state.scope == "window":
            fields += [pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64())]
            fields += [pa.field("window_pickle", pa.binary())]
        elif self._state.scope == "place":
            fields += [pa.field("place_pickle", pa.binary())]
        return fields

    def _content_fields(self) -> list[pa.Field]:
        kind = self._state.kind
        if kind == "timers":
            return [pa.field("time", pa.int64())]
        if kind == "raw":
            return [pa.field("value", pa.binary())]
        fields = [pa.field("position", pa.int64())] if kind == "list" else []
        if self._map_key is not None:
            fields += self._map_key.fields()
        fields += self._value.fields()
        if self._state.schema.expires:
            fields.append(pa.field("last_used", pa.int64()))
        return fields

    # Out

    def batch(self, places: list[Any], contents: list[Any]) -> pa.RecordBatch:
        arrays = [*self._place_arrays(places), *self._content_arrays(contents)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _place_arrays(self, places: list[Any]) -> list[pa.Array]:
        if self._key is None:
            return []
        arrays = self._key.arrays(self._state.user_keys(places))
        if self._state.scope == "window":
            tokens = [place[1] for place in places]
            timed = [token if token.__class__ is tuple else (None, None) for token in tokens]
            arrays += [
                pa.array([start for start, _ in timed], pa.int64()),
                pa.array([end for _, end in timed], pa.int64()),
            ]
            others = [None if token.__class__ is tuple else _pickled(token) for token in tokens]
            arrays.append(pa.array(others, pa.binary()))
        elif self._state.scope == "place":
            arrays.append(pa.array([_pickled(place[1:]) for place in places], pa.binary()))
        return arrays

    def _content_arrays(self, contents: list[Any]) -> list[pa.Array]:
        kind = self._state.kind
        if kind == "timers":
            return [pa.array(contents, pa.int64())]
        if kind == "raw":
            return [pa.array(contents, pa.binary())]
        arrays: list[pa.Array] = []
        if kind == "list":
            arrays.append(pa.array([position for position, _ in contents], pa.int64()))
            contents = [element for _, element in contents]
        elif self._map_key is not None:
            arrays += self._map_key.arrays([key for key, _ in contents])
            contents = [value for _, value in contents]
        if not self._state.schema.expires:
            return arrays + self._value.arrays(contents)
        stamps = pa.array([stamp for stamp, _ in contents], pa.int64())
        return [*arrays, *self._value.arrays([value for _, value in contents]), stamps]

    # In

    def rows(self, batch: pa.RecordBatch) -> Rows:
        return self._places(batch), self._contents(batch)

    def _places(self, batch: pa.RecordBatch) -> list[Any]:
        if self._key is None:
            return [None] * batch.num_rows
        keys = self._key.values(batch)
        if self._state.scope == "window":
            starts, ends, others = (
                batch.column(name).to_pylist() for name in ("window_start", "window_end", "window_pickle")
            )
            tokens = [
                (start, end) if other is None else self._loads(other)
                for start, end, other in zip(starts, ends, others, strict=True)
            ]
            return list(zip(keys, tokens, strict=True))
        if self._state.scope == "place":
            rests = map(self._loads, batch.column("place_pickle").to_pylist())
            return [(key, *rest) for key, rest in zip(keys, rests, strict=True)]
        return keys

    def _contents(self, batch: pa.RecordBatch) -> list[Any]:
        kind = self._state.kind
        if kind in ("timers", "raw"):
            plain: list[Any] = batch.column("time" if kind == "timers" else "value").to_pylist()
            return plain
        values = self._value.values(batch)
        if self._state.schema.expires:
            values = list(zip(batch.column("last_used").to_pylist(), values, strict=True))
        if kind == "list":
            return list(zip(batch.column("position").to_pylist(), values, strict=True))
        if self._map_key is not None:
            return list(zip(self._map_key.values(batch), values, strict=True))
        return values


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, PROTOCOL)
