"""OpenSearch and Cassandra, whose jars Maven fetches, for the group ``connectors``."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import cassandra_server
import opensearch_server

from firesteel.datastream.connectors.cassandra import CassandraSink
from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder, ElasticsearchEmitter

Work = Callable[[], None]
Portions = Callable[[], Iterator[list[tuple[int, str]]]]


class Skipped(Exception):
    """A server that cannot be had here."""


def provided(server: Any) -> None:
    """Fetches the jars of a server that is no package of the system."""
    missing = server.why_not()
    if missing is not None:
        raise Skipped(missing)
    try:
        server.jars()
    except RuntimeError as error:
        raise Skipped(str(error).splitlines()[0].rstrip(":")) from error


def opensearch(stack: ExitStack, portions: Portions) -> tuple[Work, Work, Any]:
    """What clears the index, what fills it in a bare loop, and a sink for it."""
    provided(opensearch_server)
    server = stack.enter_context(opensearch_server.OpenSearchServer())
    request = 1000  # documents of a request, as the sink has them by default

    def call(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> Any:
        connection.request(method, path, body, {"Content-Type": "application/x-ndjson"})
        return json.loads(connection.getresponse().read())

    def clear() -> None:
        connection = http.client.HTTPConnection(server.host, timeout=60)
        call(connection, "DELETE", "/bench?ignore_unavailable=true")
        call(connection, "PUT", "/bench")
        connection.close()

    def bare_in() -> None:
        connection = http.client.HTTPConnection(server.host, timeout=60)
        for rows in portions():
            for start in range(0, len(rows), request):
                lines = []
                for n, text in rows[start : start + request]:
                    lines += [json.dumps({"index": {"_id": str(n)}}), json.dumps({"n": n, "text": text})]
                answer = call(connection, "POST", "/bench/_bulk", "\n".join([*lines, ""]).encode())
                assert not answer["errors"]
        connection.close()

    emitter = ElasticsearchEmitter.static_index("bench", "n")
    sink = Elasticsearch7SinkBuilder().set_hosts([server.host]).set_emitter(emitter).build()
    return clear, bare_in, sink


def cassandra(stack: ExitStack, portions: Portions) -> tuple[Work, Work, Callable[[Any], None]]:
    """What clears the table, what fills it in a bare loop, and what writes a stream to it."""
    try:
        from cassandra.concurrent import execute_concurrent_with_args
    except ImportError as error:
        raise Skipped(f"no Cassandra: {error}") from error
    provided(cassandra_server)
    server = stack.enter_context(cassandra_server.CassandraServer())
    insert = "INSERT INTO bench.bench (n, text) VALUES (?, ?)"
    placed = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    server.execute(
        f"CREATE KEYSPACE bench WITH replication = {placed}",
        "CREATE TABLE bench.bench (n bigint PRIMARY KEY, text text)",
    )

    def bare_in() -> None:
        with server.cluster() as cluster:
            session = cluster.connect()
            prepared = session.prepare(insert)
            for rows in portions():
                execute_concurrent_with_args(session, prepared, rows, concurrency=500)

    def clear() -> None:
        server.execute("TRUNCATE bench.bench")

    def add_sink(stream: Any) -> None:
        sink = CassandraSink.add_sink(stream).set_query(insert).set_host("127.0.0.1", server.port)
        sink.set_login(cassandra_server.USER, cassandra_server.PASSWORD).build()

    return clear, bare_in, add_sink
