"""Which tables a configured state backend gives."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    StateBackend,
    StreamExecutionEnvironment,
)
from firesteel.engine.backends import table_factory
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.graph.job_graph import JobGraph, build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables

MB = 1024 * 1024


def graph(reduces: int = 1) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1])
    for _ in range(reduces):
        stream = stream.key_by(lambda n: n).reduce(max)
    stream.print()
    return build_job_graph(build_stream_graph(env.program, 1))


def tables(chosen: StateBackend | None = None, reduces: int = 1, **settings: str) -> Any:
    configuration = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
    return table_factory(configuration, chosen, graph(reduces))


@pytest.fixture(autouse=True)
def _little_memory() -> None:
    """Here the defaults are tested."""


def test_hashmap_is_the_default_and_the_program_wins() -> None:
    assert tables() == tables(state_backend_type="hashmap") == HashMapTables()
    assert tables(state_backend_type="rocksdb") == RocksDBTables(768 * MB)
    assert tables(EmbeddedRocksDBStateBackend(), state_backend_type="hashmap") == RocksDBTables(768 * MB)
    assert tables(HashMapStateBackend(), state_backend_type="rocksdb") == HashMapTables()


def test_the_memory_of_a_slot_is_shared() -> None:
    configuration = Configuration.from_dict(
        {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "30 mb"}
    )
    assert table_factory(configuration, None, graph(3)) == RocksDBTables(10 * MB)


def test_without_processes_that_stay_nothing_is_read_whole() -> None:
    for settings in ({}, {"state.backend.type": "rocksdb"}):
        found = table_factory(Configuration.from_dict(settings), None, graph(), resident=False)
        assert isinstance(found, RocksDBTables)
        assert not found.resident


class Mine(RocksDBTables):
    """A backend of a user's."""


def my_backend(configuration: Configuration) -> Mine:
    return Mine(configuration.get_integer("my.memory", 5))


def test_a_backend_of_ones_own() -> None:
    path = f"{__name__}.my_backend"
    assert type(tables(state_backend_type=path)) is Mine
    assert tables(CustomStateBackend(path), my_memory="7").memory == 7
    assert type(tables(CustomStateBackend(my_backend))) is Mine


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "rocks",
            r"'rocks': it must be hashmap, rocksdb, or the import path of a backend \(package\.module\.Name\)\.$",
        ),
        ("no.such.Module", "No module named 'no'"),
        ("collections.Nothing", "cannot be imported"),
        ("filesystem", r"\(package\.module\.Name\)\. Set hashmap instead of Flink's filesystem\.$"),
        ("jobmanager", r"Set hashmap instead of Flink's jobmanager\.$"),
        ("ForSt", r"Set rocksdb instead of Flink's ForSt\.$"),
        (
            "org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackendFactory",
            r"a class in Java, which Firesteel does not run: it must be hashmap, rocksdb, .*"
            r"Set rocksdb instead of Flink's EmbeddedRocksDBStateBackendFactory\.$",
        ),
        ("org.apache.flink.runtime.state.filesystem.FsStateBackendFactory", "Set hashmap instead"),
        ("org.apache.flink.shop.OurOwn", r"a class in Java, .*\(package\.module\.Name\)\.$"),
        ("builtins.repr", "gave str, which lacks memory, table, blocks, scan, swept"),
    ],
)
def test_what_is_no_backend_is_told(path: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        tables(state_backend_type=path)


def test_the_environment_takes_backends_only() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_state_backend() is None
    backend = HashMapStateBackend()
    assert env.set_state_backend(backend).get_state_backend() is backend
    with pytest.raises(
        ProgramError, match=r"takes a StateBackend such as EmbeddedRocksDBStateBackend\(\), got 'rocks'"
    ):
        env.set_state_backend("rocks")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="takes a factory or its import path"):
        CustomStateBackend(7)  # type: ignore[arg-type]
