"""How far sources were read, as tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

__all__ = ["position_table"]

_FILES = pa.schema(
    [("file", pa.string()), ("from", pa.int64()), ("to", pa.int64()), ("size", pa.int64()), ("modified", pa.int64())]
)
_SPLITS = pa.schema([("split", pa.string()), ("begun_at", pa.int64()), ("read_to", pa.int64())])


def position_table(position: Any) -> pa.Table:
    """One row for each split of a source that consists of them (partitions of topics, tables), or for each file, or
    part of one, that the last batch has read; else one row with the position.

    >>> position_table({"orders-0": [[0, None, "x"], [17, None, "x"]]}).to_pylist()
    [{'split': 'orders-0', 'begun_at': 0, 'read_to': 17}]
    >>> position_table({"row": 17, "seed": 5}).to_pylist()
    [{'row': 17, 'seed': 5}]
    >>> position_table(17).to_pylist(), position_table(["a"]).to_pylist()
    ([{'position': 17}], [{'position': '["a"]'}])
    """
    if isinstance(position, int):
        return pa.table({"position": pa.array([position], pa.int64())})
    if isinstance(position, dict):
        if position and all(isinstance(each, int) for each in position.values()):
            return pa.table({name: pa.array([each], pa.int64()) for name, each in position.items()})
        pieces = position.get("pieces")
        if isinstance(pieces, list):
            rows = [(path, start, end, size, modified) for path, size, modified, _, start, end, *_ in pieces]
            return _table(rows, _FILES)
        places = {name: [_offset(place) for place in known] for name, known in position.items() if _is_pair(known)}
        if len(places) == len(position) and all(None not in known for known in places.values()):
            return _table([(name, *known) for name, known in places.items()], _SPLITS)
    return pa.table({"position": pa.array([json.dumps(position)], pa.string())})


def _is_pair(known: Any) -> bool:
    return isinstance(known, list) and len(known) == 2


def _offset(place: Any) -> int | None:
    """The number of a place: of one with several parts, as Kafka's, the first."""
    first = place[0] if isinstance(place, list) and place else place
    return first if isinstance(first, int) else None


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
