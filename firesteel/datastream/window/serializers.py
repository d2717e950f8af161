"""Serializers of windows. The runtime pickles windows; these are here for programs that name them."""

from __future__ import annotations

import pickle
import struct
from io import BytesIO
from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.datastream.window.windows import CountWindow, GlobalWindow, TimeWindow

__all__ = ["CountWindowSerializer", "GlobalWindowSerializer", "PickledWindowSerializer", "TimeWindowSerializer"]

_TWO_LONGS = struct.Struct(">qq")
_LONG = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a :class:`TimeWindow` as its start and end.

    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 5), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=0, end=5)
    """

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a :class:`CountWindow` as its number."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes the :class:`GlobalWindow` as one byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        stream.read(1)
        return GlobalWindow.get()


class PickledWindowSerializer(TypeSerializer[Any]):
    """Writes a window of any kind as its pickle."""

    def serialize(self, element: Any, stream: BytesIO) -> None:
        pickle.dump(element, stream)

    def deserialize(self, stream: BytesIO) -> Any:
        return pickle.load(stream)
