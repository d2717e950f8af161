"""Answers of Spark's state server that are read together, with PySpark's own client and a server of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType
from statekit import StateServer

from firesteel.engine.spark.state_calls import defer_answers
from firesteel.runtime.state.spark_store import SparkStore

KEY = StructType([StructField("k", IntegerType())])
CELL = StructType([StructField("c", BinaryType())])


@pytest.fixture
def server() -> Iterator[StateServer]:
    server = StateServer()
    yield server
    server.close()


def client_of(server: StateServer) -> Any:
    return StatefulProcessorApiClient(server.port, KEY)


def begun(server: StateServer) -> tuple[Any, SparkStore]:
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


def test_nothing_is_waited_for_before_something_is_asked(server: StateServer) -> None:
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
def test_what_was_refused_fails_the_task_before_it_reads(server: StateServer, refused: str) -> None:
    server.refused = refused
    _, store = begun(server)
    with pytest.raises(RuntimeError, match=r"state server refused .*: no"):
        store.get_many([b"header"])


def test_what_was_refused_at_the_end_fails_the_task_too(server: StateServer) -> None:
    client, store = begun(server)
    store.get_many([b"header"])
    server.refused = "removeImplicitKey"
    server.answering.set()
    with pytest.raises(RuntimeError, match="refused remove_implicit_key: no"):
        end(client)


def test_other_clients_are_left_alone(server: StateServer) -> None:
    planning = client_of(server)
    planning.handle_state = StatefulProcessorHandleState.PRE_INIT
    assert not defer_answers(StatefulProcessorHandle(planning))
    assert not defer_answers(object())
    assert "_receive_proto_message" not in vars(planning)
