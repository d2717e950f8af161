"""Answers of Spark's state server that are read together, with PySpark's own client and a server of ours."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.proto import StateMessage_pb2 as messages
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from firesteel.engine.spark.state_calls import defer_answers
from firesteel.runtime.state.spark_store import SparkStore

KEY = StructType([StructField("k", IntegerType())])
CELL = StructType([StructField("c", BinaryType())])


class Server:
    """Takes requests, and answers when it is told to: the n-th one with an error where that is wanted."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self.refused: str | None = None
        self.answering = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # The test may be over before anybody was let in.
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as line:
            waiting = 0
            while head := line.read(8):
                request = messages.StateRequest.FromString(line.read(int.from_bytes(head[4:], "big")))
                part = getattr(request, request.WhichOneof("method"))
                self.requests.append(part.WhichOneof("method"))
                waiting += 1
                # Those that ask for something come after those that do not: only then answers are sent.
                if not self.answering.is_set() and self.requests[-1] != "mapStateCall":
                    continue
                for place in range(len(self.requests) - waiting, len(self.requests)):
                    wrong = self.requests[place] == self.refused
                    answer = messages.StateResponse(statusCode=int(wrong), errorMessage="no" if wrong else "")
                    sent = answer.SerializeToString()
                    line.write(len(sent).to_bytes(4, "big") + sent)
                waiting = 0
                line.flush()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def client_of(server: Server) -> Any:
    return StatefulProcessorApiClient(server.port, KEY)


def begun(server: Server) -> tuple[Any, SparkStore]:
    """What PySpark does at the beginning of a task."""
    client = client_of(server)
    handle = StatefulProcessorHandle(client)
    assert defer_answers(handle)
    state = handle.getMapState("state", CELL, CELL)
    client.set_handle_state(StatefulProcessorHandleState.INITIALIZED)
    client.set_implicit_key((1,))
    return client, SparkStore(state)


def end(client: Any) -> None:
    """And at its end."""
    client.set_handle_state(StatefulProcessorHandleState.DATA_PROCESSED)
    client.set_handle_state(StatefulProcessorHandleState.TIMER_PROCESSED)
    client.remove_implicit_key()
    client.set_handle_state(StatefulProcessorHandleState.CLOSED)


def test_nothing_is_waited_for_before_something_is_asked(server: Server) -> None:
    """The server does not answer before the store is asked: waiting for one answer would be for ever."""
    client, store = begun(server)
    assert client.handle_state is StatefulProcessorHandleState.INITIALIZED
    assert store.get_many([b"header"]) == [None]
    store.write([(b"a", b"1"), (b"b", None)])
    server.answering.set()
    end(client)
    assert client.handle_state is StatefulProcessorHandleState.CLOSED
    order = ["getMapState", "setHandleState", "setImplicitKey", "mapStateCall", "mapStateCall", "mapStateCall"]
    assert server.requests == [*order, "setHandleState", "setHandleState", "removeImplicitKey", "setHandleState"]


@pytest.mark.parametrize("refused", ["getMapState", "setHandleState", "setImplicitKey"])
def test_what_was_refused_fails_the_task_before_it_reads(server: Server, refused: str) -> None:
    server.refused = refused
    _, store = begun(server)
    with pytest.raises(RuntimeError, match=r"state server refused .*: no"):
        store.get_many([b"header"])


def test_what_was_refused_at_the_end_fails_the_task_too(server: Server) -> None:
    client, store = begun(server)
    store.get_many([b"header"])
    server.refused = "removeImplicitKey"
    server.answering.set()
    with pytest.raises(RuntimeError, match="refused remove_implicit_key: no"):
        end(client)


def test_other_clients_are_left_alone(server: Server) -> None:
    planning = client_of(server)
    planning.handle_state = StatefulProcessorHandleState.PRE_INIT
    assert not defer_answers(StatefulProcessorHandle(planning))
    assert not defer_answers(object())
    assert "_receive_proto_message" not in vars(planning)
