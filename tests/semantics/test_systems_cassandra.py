"""Rows with the timestamps of their micro-batch, with a driver that answers as a real cluster's does.

A real Cassandra is too heavy for the suite: ``tests/servers`` has the same sink on one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.connectors.cassandra.connecting import CassandraAddress, as_connector_error
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.cassandra import (
    CassandraCommitter,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from firesteel.errors import FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

cassandra = pytest.importorskip("cassandra")
QUERY = "INSERT INTO shop.counts (word, count) VALUES (?, ?)"


class FakeCluster:
    """Cells with timestamps: of two writes the later one stays."""

    cells: dict[str, tuple[int, Any]]
    written: list[tuple[int, str, Any]]
    failures: list[Exception]

    def __init__(self) -> None:
        self.timestamp_generator: Any = None

    def connect(self) -> FakeCluster:
        return self

    def prepare(self, query: str) -> FakeStatement:
        if "nowhere" in query:
            raise cassandra.InvalidRequest(
                'Error from server: code=2200 [Invalid query] message="unconfigured table nowhere"'
            )
        return FakeStatement()

    def execute_async(self, bound: Any) -> FakeAnswer:
        kind = type(self)
        if kind.failures:
            return FakeAnswer(kind.failures.pop(0))
        timestamp = self.timestamp_generator()
        word, count = bound
        kind.written.append((timestamp, word, count))
        if word not in kind.cells or kind.cells[word][0] <= timestamp:
            kind.cells[word] = (timestamp, count)
        return FakeAnswer(None)

    def shutdown(self) -> None:
        pass


class FakeStatement:
    consistency_level: Any = None

    def bind(self, values: Any) -> Any:
        if len(values) != 2 or not isinstance(values[1], int | type(None)):
            raise TypeError('Received an argument of invalid type for column "count". Expected: int, Got: str')
        return values


class FakeAnswer:
    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def result(self) -> None:
        if self._error is not None:
            raise self._error


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    FakeCluster.cells, FakeCluster.written, FakeCluster.failures = {}, [], []
    return


def build(values: list[Any], query: str = QUERY) -> Any:
    def program(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection(values)
        made = CassandraSink.add_sink(stream).set_query(query).set_cluster_builder(ClusterBuilder(FakeCluster))
        made.set_max_concurrent_requests(3).build().name("to cassandra").uid("to-cassandra")

    return program


def test_a_batch_that_comes_again_has_its_timestamps_and_undoes_nothing() -> None:
    values = [(f"w{n % 4}", n) for n in range(40)]
    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        run_pipeline(build(values), config={"firesteel.batch.max-records": "10", **crashes.config}, restarts=1)
    assert {word: count for word, (_, count) in FakeCluster.cells.items()} == {f"w{n % 4}": n for n in range(36, 40)}
    written = FakeCluster.written
    assert len(written) > 40, "the batch came again"
    # With the same timestamps; and what is newer has a later one.
    assert len(set(written)) == 40
    assert [count for _, _, count in sorted(set(written))] == list(range(40))


TRIES = itertools.count()


def tried(n: int) -> tuple[str, int]:
    """Another row each time."""
    return f"{n} of try {next(TRIES)}", n


def test_written_ahead_nothing_is_left_of_a_try_that_made_other_rows() -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection(list(range(30))).map(tried)
        made = CassandraSink.add_sink(stream).set_query(QUERY).set_cluster_builder(ClusterBuilder(FakeCluster))
        committer = CassandraCommitter.default_checkpoint_committer(ClusterBuilder(FakeCluster), "shop")
        made.enable_write_ahead_log(committer).build().uid("to-cassandra")

    points = {CrashPoint.PREPARED: ["pass", "error"], CrashPoint.COMMITTED: ["pass", "pass", "error"]}
    with CommitCrashes(points) as crashes:
        run_pipeline(program, config={"firesteel.batch.max-records": "10", **crashes.config}, restarts=2)
    assert next(TRIES) > 30, "a batch came again"
    assert sorted(count for _, count in FakeCluster.cells.values()) == list(range(30))
    assert len(FakeCluster.written) > 30, "a commit came again"
    assert len(set(FakeCluster.written)) == 30, "with the same timestamps"


def test_the_mapper_options_of_pyflinks_docstring() -> None:
    options = MapperOptions().ttl(1800).timestamp(3600).consistency_level(ConsistencyLevel.ANY).tracing(True)
    made = CassandraSink.add_sink(None).set_mapper_options(options.save_null_fields(True).if_not_exists(True))
    assert (made._writing.consistency, made._writing.ignore_nulls) == ("ANY", False)


def test_rows_and_nothing_where_nothing_is() -> None:
    run_pipeline(build([Row(word="a", count=1), Row(word="a", count=None)]))
    assert FakeCluster.cells["a"][1] is None


def failure(values: list[Any], query: str = QUERY) -> JobExecutionError:
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(build(values, query), restarts=2)
    return caught.value


def test_a_value_that_does_not_fit_and_a_table_that_is_missing() -> None:
    error = failure([("a", "one")])
    assert error.kind is FailureKind.PERMANENT
    assert 'invalid type for column "count". Expected: int, Got: str. The query is' in str(error)
    assert "the record ('a', 'one')" in str(error)
    error = failure([("a", 1)], QUERY.replace("counts", "nowhere"))
    assert error.kind is FailureKind.PERMANENT
    assert "unconfigured table nowhere" in str(error)
    assert "Create the table first." in str(error)
    assert "A record for Cassandra is a row or a tuple" in str(failure([5]))


def test_what_may_pass_is_tried_again() -> None:
    FakeCluster.failures = [cassandra.OperationTimedOut(), cassandra.Unavailable("not enough replicas")]
    run_pipeline(build([("a", 1), ("b", 2)]))
    assert {word: count for word, (_, count) in FakeCluster.cells.items()} == {"a": 1, "b": 2}


def test_errors_of_the_driver_in_a_line() -> None:
    from cassandra.cluster import NoHostAvailable

    address = CassandraAddress(("127.0.0.1",), 9042, "ada", None)
    refused = NoHostAvailable("all failed", {"127.0.0.1:9042": cassandra.AuthenticationFailed("bad credentials")})
    error = as_connector_error(address, refused, "the connection")
    assert error.kind is FailureKind.PERMANENT
    assert str(error).startswith("Cassandra at 127.0.0.1:9042 refused the login")
    away = NoHostAvailable("all failed", {"127.0.0.1:9042": ConnectionRefusedError("Connection refused")})
    error = as_connector_error(address, away, "the connection")
    assert error.kind is FailureKind.PASSING
    assert "cannot be reached (the connection): Connection refused. Check that it runs there." in str(error)


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    builder = CassandraSink.add_sink(None)
    with pytest.raises(ProgramError, match="needs set_query"):
        builder.build()
    with pytest.raises(ProgramError, match="needs set_host"):
        builder.set_query(QUERY).build()
    with pytest.raises(ProgramError, match="at least 1"):
        builder.set_max_concurrent_requests(0)
    secret = builder.set_host("db").set_login("ada", "hunter2")
    options = MapperOptions().consistency_level(ConsistencyLevel.QUORUM).save_null_fields(False)
    secret.set_mapper_options(options)
    assert secret._writing.consistency == "QUORUM"
    assert secret._writing.ignore_nulls
    assert "hunter2" not in repr(secret._address)


def test_a_host_that_nobody_knows() -> None:
    from cassandra import UnresolvableContactPoints

    found = as_connector_error(CassandraAddress(("nowhere",)), UnresolvableContactPoints({}), "the query 'q'")
    assert str(found) == "Cassandra at nowhere:9042 cannot be reached (the query 'q'): no such host. Check its name."
