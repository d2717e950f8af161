"""Cassandra as a sink."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.common.secret import Secret
from firesteel.connectors.cassandra.connecting import CassandraAddress
from firesteel.connectors.cassandra.writing import CassandraWriting, Writing
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
]

Text = str | Secret | Callable[[], str]


class ConsistencyLevel(enum.Enum):
    """How many replicas must have a write before it counts."""

    ANY = 0
    ONE = 1
    TWO = 2
    THREE = 3
    QUORUM = 4
    ALL = 5
    LOCAL_QUORUM = 6
    EACH_QUORUM = 7
    SERIAL = 8
    LOCAL_SERIAL = 9
    LOCAL_ONE = 10


class MapperOptions:
    """How rows are written. What has a place in the query has no effect here, as in PyFlink, whose mapper is for Java
    objects: write ``USING TTL``, ``USING TIMESTAMP`` and ``IF NOT EXISTS`` into the query.

    >>> options = MapperOptions().consistency_level(ConsistencyLevel.QUORUM).save_null_fields(False)
    """

    def __init__(self) -> None:
        self._consistency: ConsistencyLevel | None = None
        self._save_nulls = True

    def ttl(self, ttl: int) -> MapperOptions:
        """Accepted, without effect: ``USING TTL`` stands in the query."""
        return self

    def timestamp(self, timestamp: int) -> MapperOptions:
        """Accepted, without effect: rows have the timestamp of their batch, or that of ``USING TIMESTAMP``."""
        return self

    def tracing(self, enabled: bool) -> MapperOptions:
        """Accepted, without effect."""
        return self

    def if_not_exists(self, enabled: bool) -> MapperOptions:
        """Accepted, without effect: ``IF NOT EXISTS`` stands in the query."""
        return self

    def consistency_level(self, cl: ConsistencyLevel) -> MapperOptions:
        self._consistency = cl
        return self

    def save_null_fields(self, enabled: bool) -> MapperOptions:
        """Whether None deletes what is in the cell; if not, it is left."""
        self._save_nulls = enabled
        return self


class ClusterBuilder:
    """A function that makes a ``cassandra.cluster.Cluster`` of the driver, with all its settings. It is called in each
    task."""

    def __init__(self, function: Callable[[], Any]) -> None:
        if not callable(function):
            raise ProgramError(f"A ClusterBuilder takes a function, got {short_repr(function, 80)}.")
        self._function = function


class CassandraCommitter:
    """Where PyFlink keeps which checkpoints are complete. Here the checkpoint folder says it."""

    @staticmethod
    def default_checkpoint_committer(builder: ClusterBuilder, key_space: str | None = None) -> CassandraCommitter:
        """Accepted, without effect: no table is needed."""
        return CassandraCommitter()


class CassandraFailureHandler:
    """What happens to a record that cannot be written: the job fails."""

    @staticmethod
    def no_op() -> CassandraFailureHandler:
        """Fails the job, as Flink's does."""
        return CassandraFailureHandler()


class CassandraSink:
    """A stream that ends in a table. Made by :meth:`add_sink`.

    Each row is written with a timestamp that follows from its micro-batch. A batch that comes again after a failure
    changes nothing, and an older write cannot undo a newer one, in whatever order they arrive.
    """

    def __init__(self, ended: Any) -> None:
        self._ended = ended

    def name(self, name: str) -> CassandraSink:
        self._ended.name(name)
        return self

    def uid(self, uid: str) -> CassandraSink:
        self._ended.uid(uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> CassandraSink:
        self._ended.set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> CassandraSink:
        self._ended.set_parallelism(parallelism)
        return self

    def disable_chaining(self) -> CassandraSink:
        self._ended.disable_chaining()
        return self

    def slot_sharing_group(self, slot_sharing_group: str) -> CassandraSink:
        self._ended.slot_sharing_group(slot_sharing_group)
        return self

    @staticmethod
    def add_sink(input: Any) -> CassandraSink.CassandraSinkBuilder:
        """Ends a stream of rows or tuples in a table."""
        return CassandraSink.CassandraSinkBuilder(input)

    class CassandraSinkBuilder:
        """Takes what PyFlink's takes; ``set_login`` besides."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream
            self._address = CassandraAddress(())
            self._writing = Writing("")

        def set_query(self, query: str) -> CassandraSink.CassandraSinkBuilder:
            """The CQL statement for each record, with a ``?`` for each of its fields."""
            self._writing = replace(self._writing, query=query)
            return self

        def set_host(self, host: str, port: int = 9042) -> CassandraSink.CassandraSinkBuilder:
            """A node to begin with; the driver finds the others."""
            self._address = replace(self._address, hosts=(host,), port=port)
            return self

        def set_login(self, user_name: str, password: Text) -> CassandraSink.CassandraSinkBuilder:
            """User name and password, the latter as a text, or better as a :class:`~firesteel.common.Secret`."""
            self._address = replace(self._address, user=user_name, password=Secret.of(password))
            return self

        def set_cluster_builder(self, builder: ClusterBuilder) -> CassandraSink.CassandraSinkBuilder:
            """What makes the driver's cluster, in place of host and login."""
            self._address = replace(self._address, builder=builder._function)
            return self

        def enable_write_ahead_log(
            self, committer: CassandraCommitter | None = None
        ) -> CassandraSink.CassandraSinkBuilder:
            """Records wait in the checkpoint folder until their checkpoint is complete; then the driver writes them.
            So also a program that makes other rows when a batch comes again (random numbers, the clock, requests)
            leaves nothing of the first try. ``committer`` has no effect: the checkpoint folder says what is complete.
            """
            self._writing = replace(self._writing, ahead=True)
            return self

        def set_mapper_options(self, options: MapperOptions) -> CassandraSink.CassandraSinkBuilder:
            level = options._consistency
            self._writing = replace(
                self._writing,
                consistency=None if level is None else level.name,
                ignore_nulls=self._writing.ignore_nulls or not options._save_nulls,
            )
            return self

        def set_failure_handler(self, failure_handler: CassandraFailureHandler) -> CassandraSink.CassandraSinkBuilder:
            """There is one kind of handler: the job fails, and its restart strategy decides."""
            return self

        def set_max_concurrent_requests(
            self, max_concurrent_requests: int, duration: Any = None
        ) -> CassandraSink.CassandraSinkBuilder:
            """Requests of a subtask under way at once, 500 by default. ``duration`` has no meaning here: a subtask
            waits until there is room."""
            if max_concurrent_requests < 1:
                raise ProgramError(f"max_concurrent_requests must be at least 1, got {max_concurrent_requests}.")
            self._writing = replace(self._writing, concurrent=max_concurrent_requests)
            return self

        def enable_ignore_null_fields(self) -> CassandraSink.CassandraSinkBuilder:
            """None leaves what is in the cell, instead of deleting it."""
            self._writing = replace(self._writing, ignore_nulls=True)
            return self

        def build(self) -> CassandraSink:
            if not self._writing.query:
                raise ProgramError("A Cassandra sink needs set_query(…).")
            if not self._address.hosts and self._address.builder is None:
                raise ProgramError("A Cassandra sink needs set_host(…) or set_cluster_builder(…).")
            return CassandraSink(self._stream.sink_to(CassandraWriting(self._address, self._writing)))
