"""The state store port on Spark: one map state of bytes to bytes, with pipelined requests.

A call of PySpark's map state is one request and one response over a socket, 65 µs and more of waiting. The protocol
allows requests to be sent ahead, so a window of them costs one wait. This is the only module that touches PySpark's
private state client; where that client looks different than expected, the public calls are used instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

__all__ = ["SparkStore"]

WINDOW = 64


class SparkStore:
    """A subtask's state during one batch, around a ``MapState`` of PySpark."""

    def __init__(self, map_state: Any, pipelined: bool = True) -> None:
        self._map = map_state
        self._client: Any = None
        if pipelined:
            self._client = _private_client(map_state)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self._client is None or len(keys) < 2:
            return [self._get(key) for key in keys]
        found: list[bytes | None] = []
        for window in _windows(keys):
            self._send(_get_request(self._map._stateName, key) for key in window)
            for _ in window:
                status, error, value = self._client._receive_proto_message()
                if status != 0:
                    raise RuntimeError(f"Spark's state store refused a read: {error}")
                found.append(bytes(pickle.loads(value)[0]) if value else None)
        return found

    def _get(self, key: bytes) -> bytes | None:
        row = self._map.getValue((key,))
        return None if row is None else bytes(row[0])

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        if self._client is None:
            for key, value in changes:
                if value is None:
                    self._map.removeKey((key,))
                else:
                    self._map.updateValue((key,), (value,))
            return
        name = self._map._stateName
        for window in _windows(changes):
            self._send(
                _remove_request(name, key) if value is None else _put_request(name, key, value) for key, value in window
            )
            for _ in window:
                status, error, _ignored = self._client._receive_proto_message()
                if status != 0:
                    raise RuntimeError(f"Spark's state store refused a write: {error}")

    def _send(self, messages: Iterable[bytes]) -> None:
        # Version 0, length, message: what the client's own send writes, but flushed once per window.
        out = self._client.sockfile
        for message in messages:
            out.write(b"\0\0\0\0" + len(message).to_bytes(4, "big") + message)
        out.flush()


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
        _get_request("probe", b"")
    except Exception:
        return None
    return client


def _call(name: str, **call: Any) -> bytes:
    from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

    request = messages.StateVariableRequest(mapStateCall=messages.MapStateCall(stateName=name, **call))
    encoded: bytes = messages.StateRequest(stateVariableRequest=request).SerializeToString()
    return encoded


def _row(value: bytes) -> bytes:
    return pickle.dumps((value,), 4)


def _get_request(name: str, key: bytes) -> bytes:
    from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

    return _call(name, getValue=messages.GetValue(userKey=_row(key)))


def _put_request(name: str, key: bytes, value: bytes) -> bytes:
    from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

    return _call(name, updateValue=messages.UpdateValue(userKey=_row(key), value=_row(value)))


def _remove_request(name: str, key: bytes) -> bytes:
    from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

    return _call(name, removeKey=messages.RemoveKey(userKey=_row(key)))
