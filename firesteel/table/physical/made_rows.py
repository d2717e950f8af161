"""What makes rows of rows: table functions and UNNEST, for a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.logical.expressions import Call, UserCall
from firesteel.table.physical.columns import Column, columns
from firesteel.table.types.data_types import ArrayType, MapType, MultisetType, RowType

__all__ = ["MadeRows", "made_rows"]

Places = npt.NDArray[np.int64]


class MadeRows:
    """A call over the columns of a batch, whose arguments may be any expressions."""

    def __init__(self, call: Call, arguments: tuple[Column, ...], time_zone: str) -> None:
        self._call = call
        self._arguments = arguments
        self._time_zone = time_zone

    @property
    def functions(self) -> list[Any]:
        """Users' functions, which are opened and closed with the operator."""
        own = [self._call.user] if isinstance(self._call, UserCall) else []
        return [*own, *(function for argument in self._arguments[:1] for function in argument.functions)]

    def rows(self, batch: pa.RecordBatch, now: int) -> tuple[Places, list[pa.Array]]:
        """Places and columns of what is made."""
        args = [argument.evaluate(batch, now) for argument in self._arguments]
        if isinstance(self._call, UserCall):
            kinds = [each.type for each in self._call.args]
            made: tuple[Places, list[pa.Array]] = self._call.user.rows(args, kinds, batch.num_rows, self._time_zone)
            return made
        return _unnested(self._call, args[0])

    def __repr__(self) -> str:
        return str(self._call)


def made_rows(call: Call, time_zone: str) -> MadeRows:
    """The call as the operator wants it."""
    return MadeRows(call, columns(call.args, time_zone), time_zone)


def _unnested(call: Call, collection: pa.Array) -> tuple[Places, list[pa.Array]]:
    kind = call.args[0].type
    if isinstance(kind, MapType | MultisetType):
        places, indices = _entries(collection)
        keys, items = collection.keys.take(indices), collection.items.take(indices)
        made = [keys, items]
        if isinstance(kind, MultisetType):
            counts = items.to_numpy()
            places = np.repeat(places, counts)
            repeated = keys.take(pa.array(np.repeat(np.arange(len(keys)), counts)))
            made = repeated.flatten() if isinstance(kind.element_type, RowType) else [repeated]
    else:
        assert isinstance(kind, ArrayType)
        places, elements = _elements(collection)
        made = elements.flatten() if isinstance(kind.element_type, RowType) else [elements]
    if call.function == "UNNEST WITH ORDINALITY":
        made = [*made, pa.array(_numbers(places))]
    return places, made


def _elements(lists: pa.ListArray) -> tuple[Places, pa.Array]:
    return pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists)


def _entries(maps: pa.MapArray) -> tuple[Places, pa.Array]:
    """For each entry of each map the map's place, and where its key and value are."""
    offsets = maps.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(offsets)
    if maps.null_count:
        lengths = np.where(pc.is_valid(maps).to_numpy(zero_copy_only=False), lengths, 0)
    places = np.repeat(np.arange(len(maps)), lengths)
    begins = np.cumsum(lengths) - lengths
    return places, pa.array(offsets[:-1][places] + np.arange(len(places)) - begins[places])


def _numbers(places: Places) -> npt.NDArray[np.int32]:
    """1, 2, 3 and so on among those with the same place."""
    if not len(places):
        return np.zeros(0, np.int32)
    begins = np.concatenate(([True], places[1:] != places[:-1]))
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(places)), 0))
    return (np.arange(len(places)) - starts + 1).astype(np.int32)
