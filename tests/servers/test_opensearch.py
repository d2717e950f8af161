"""The sink for Elasticsearch on a real OpenSearch, which is killed in the middle. ``make servers`` runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from opensearch_server import OpenSearchServer, why_not

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
)
from firesteel.errors import FailureKind, JobExecutionError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline


@pytest.fixture(scope="module")
def server() -> Iterator[OpenSearchServer]:
    missing = why_not()
    if missing is not None:
        pytest.skip(f"no OpenSearch to test with: {missing}")
    with OpenSearchServer() as made:
        yield made


def call(server: OpenSearchServer, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://{server.host}/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def numbers(server: OpenSearchServer, index: str) -> dict[str, int]:
    call(server, "POST", f"{index}/_refresh")
    hits = call(server, "GET", f"{index}/_search?size=1000")["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["n"] for hit in hits}


def sink(host: str, index: str) -> ElasticsearchSink:
    emitter = ElasticsearchEmitter.static_index(index, "key")
    return Elasticsearch7SinkBuilder().set_hosts([host]).set_emitter(emitter).build()


def program(host: str, index: str, function: Any = None) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        values = env.from_collection(list(range(60))).map(function or (lambda n: n))
        values.map(lambda n: {"key": f"k{n % 7}", "n": n}).sink_to(sink(host, index))

    return build


EXPECTED = {f"k{n % 7}": n for n in range(53, 60)}
SMALL = {"firesteel.batch.max-records": "10"}
ACTIONS: dict[int, Any] = {}
"""What is done once when a number comes by."""


def acting(n: int) -> int:
    ACTIONS.pop(n, lambda: None)()
    return n


def test_a_batch_that_comes_again_changes_nothing(server: OpenSearchServer) -> None:
    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        run_pipeline(program(server.host, "crash"), config=SMALL | crashes.config, restarts=1)
    assert numbers(server, "crash") == EXPECTED


def test_a_process_is_killed_and_what_it_wrote_is_written_again(server: OpenSearchServer) -> None:
    script = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from firesteel.testing import run_pipeline
        from test_opensearch import SMALL, program
        killed = lambda n: os.kill(os.getpid(), 9) if n == 45 else n
        run_pipeline(program({server.host!r}, "killed", killed), config=SMALL)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert numbers(server, "killed") == {f"k{n % 7}": n for n in range(33, 40)}
    run_pipeline(program(server.host, "killed"), config=SMALL)
    assert numbers(server, "killed") == EXPECTED


def test_the_server_is_killed(server: OpenSearchServer) -> None:
    ACTIONS[35] = server.crash
    run_pipeline(program(server.host, "server", acting), config=SMALL)
    assert numbers(server, "server") == EXPECTED


def test_what_is_refused_is_told(server: OpenSearchServer) -> None:
    call(server, "PUT", "typed", {"mappings": {"properties": {"n": {"type": "long"}}}})

    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection([{"key": "a", "n": 1}, {"key": "b", "n": "two"}]).sink_to(sink(server.host, "typed"))

    with pytest.raises(JobExecutionError, match=r"refused 1 of 2 documents\. The first one: mapper_pars") as caught:
        run_pipeline(build, restarts=2)
    assert caught.value.kind is FailureKind.PERMANENT
    assert "{'key': 'b', 'n': 'two'}" in str(caught.value)
    assert numbers(server, "typed") == {"a": 1}
    call(server, "PUT", "_cluster/settings", {"transient": {"action.auto_create_index": "false"}})
    with pytest.raises(JobExecutionError, match=r"no such index \[nowhere\].*Create the index first"):
        run_pipeline(program(server.host, "nowhere"))
