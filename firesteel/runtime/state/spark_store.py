"""The state store port on Spark: one map state of bytes to bytes, with pipelined requests.

A call of PySpark's map state is one request and one response over a socket, 65 µs and more of waiting. The protocol
allows requests to be sent ahead, so a window of them costs one wait. This is the only module that touches PySpark's
private state client; where that client looks different than expected, the public calls are used instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import islice
from typing import Any

__all__ = ["SparkStore"]

WINDOW = 64
WINDOW_BYTES = 16 << 20
"""So much is sent ahead at most, apart from a single request that is larger."""


class SparkStore:
    """A subtask's state during one batch, around a ``MapState`` of PySpark."""

    def __init__(self, map_state: Any, pipelined: bool = True) -> None:
        self._map = map_state
        self._client: Any = None
        self._owed = 0
        """Requests whose answers were not read yet."""
        if pipelined:
            self._client = _private_client(map_state)
        if self._client is not None:
            self._requests = _requests_of(map_state._stateName)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self._client is None or len(keys) < 2:
            return [self._get(key) for key in keys]
        self._collect()
        found: list[bytes | None] = []
        for window in _windows(keys):
            self._send([self._requests.get(key) for key in window])
            found += map(_cell, self._collect(but=len(window)))
        found += map(_cell, self._collect())
        return found

    def _get(self, key: bytes) -> bytes | None:
        self._collect()
        row = self._map.getValue((key,))
        return None if row is None else bytes(row[0])

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Puts and removes. Whoever gives the changes may read in between."""
        if self._client is None:
            for key, value in changes:
                if value is None:
                    self._map.removeKey((key,))
                else:
                    self._map.updateValue((key,), (value,))
            return
        put, remove = self._requests.put, self._requests.remove
        messages: list[bytes] = []
        size = 0
        for key, value in changes:
            message = remove(key) if value is None else put(key, value)
            messages.append(message)
            size += len(message)
            if len(messages) >= WINDOW or size >= WINDOW_BYTES:
                self._send(messages)
                self._collect(but=len(messages))
                messages, size = [], 0
        self._send(messages)
        self._collect()

    # One window of requests is ahead of the answers that are waited for, so that neither side idles. It cannot block:
    # requests to read are small, and so are the answers to requests to write.

    def _send(self, messages: list[bytes]) -> None:
        # Version 0, length, message: what the client's own send writes, but flushed once per window.
        out = self._client.sockfile
        for message in messages:
            out.write(b"\0\0\0\0" + len(message).to_bytes(4, "big") + message)
        out.flush()
        self._owed += len(messages)

    def _collect(self, but: int = 0) -> list[bytes]:
        """The answers that are owed, all but the last so many."""
        answers = []
        while self._owed > but:
            status, error, value = self._client._receive_proto_message()
            self._owed -= 1
            if status != 0:
                raise RuntimeError(f"Spark's state store refused a request: {error}")
            answers.append(value)
        return answers


def _windows(items: Iterable[Any]) -> Iterator[list[Any]]:
    source = iter(items)
    while window := list(islice(source, WINDOW)):
        yield window


def _private_client(map_state: Any) -> Any:
    """PySpark's client if it has all that pipelining needs, else None."""
    client = getattr(getattr(map_state, "_mapStateClient", None), "_stateful_processor_api_client", None)
    wanted = ("sockfile", "_receive_proto_message")
    if not hasattr(map_state, "_stateName") or not all(hasattr(client, name) for name in wanted):
        return None
    try:
        _requests_of(map_state._stateName)
    except Exception:
        return None
    return client


@cache
def _requests_of(name: str) -> _Requests:
    """What a worker makes once for all its batches. Raises an error if PySpark would understand something else."""
    from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

    made = _Requests(name)
    understood = messages.StateRequest.FromString(made.put(b"key", b"value")).stateVariableRequest.mapStateCall
    if (understood.stateName, understood.updateValue.value) != (name, _row(b"value")):
        raise RuntimeError("PySpark's messages are not those that are known")
    return made


def _cell(answer: bytes) -> bytes | None:
    found: bytes | None = _Answer(BytesIO(answer)).load()[0] if answer else None
    return found


class _Answer(pickle.Unpickler):
    """A row of one column of bytes, as Spark pickles it: with its schema as JSON, which need not be parsed for each."""

    def find_class(self, module: str, name: str) -> Any:
        return _SHORT_CUTS.get(name) or super().find_class(module, name)


_SHORT_CUTS: dict[str, Callable[..., Any]] = {
    "_parse_datatype_json_string": lambda schema: None,
    "_create_row_inbound_converter": lambda schema: lambda *values: values,
    # Of bytes there is nothing to convert afterwards.
    "bytearray": lambda text, encoding: text.encode(encoding),
}


class _Requests:
    """Encoded requests to the map state of a name.

    They are put together here because a message object for each of their four levels would cost more than all else
    that Python does for a request. The numbers of the fields are those of PySpark's own messages.
    """

    def __init__(self, name: str) -> None:
        from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

        def tag(message: str, field: str) -> bytes:
            number: int = getattr(messages, message).DESCRIPTOR.fields_by_name[field].number
            return bytes([number << 3 | 2])  # a field of bytes with their length before them

        self._outer = tag("StateRequest", "stateVariableRequest")
        self._middle = tag("StateVariableRequest", "mapStateCall")
        self._name = tag("MapStateCall", "stateName") + _size(len(name.encode())) + name.encode()
        self._get, self._get_key = tag("MapStateCall", "getValue"), tag("GetValue", "userKey")
        self._put, self._put_key = tag("MapStateCall", "updateValue"), tag("UpdateValue", "userKey")
        self._put_value = tag("UpdateValue", "value")
        self._remove, self._remove_key = tag("MapStateCall", "removeKey"), tag("RemoveKey", "userKey")

    def get(self, key: bytes) -> bytes:
        return self._call(self._get, self._get_key, _row(key))

    def put(self, key: bytes, value: bytes) -> bytes:
        row = _row(value)
        return self._call(self._put, self._put_key, _row(key), self._put_value + _size(len(row)) + row)

    def remove(self, key: bytes) -> bytes:
        return self._call(self._remove, self._remove_key, _row(key))

    def _call(self, kind: bytes, key_tag: bytes, key: bytes, rest: bytes = b"") -> bytes:
        key_head = key_tag + _size(len(key))
        length = len(key_head) + len(key) + len(rest)
        call = self._name + kind + _size(length)
        length += len(call)
        middle = self._middle + _size(length)
        # Values are large: one copy of them is enough.
        return b"".join((self._outer, _size(length + len(middle)), middle, call, key_head, key, rest))


def _size(length: int) -> bytes:
    """A length as these messages have it: seven bits a byte, the lowest first."""
    encoded = b""
    while length > 127:
        encoded += bytes((length & 127 | 128,))
        length >>= 7
    return encoded + bytes((length,))


def _row(value: bytes) -> bytes:
    return pickle.dumps((value,), 4)
