"""The sink for Cassandra on a real one, which is killed in the middle. ``make servers`` runs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra_server import PASSWORD, USER, CassandraServer, why_not

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.cassandra import CassandraSink
from firesteel.errors import FailureKind, JobExecutionError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

SMALL = {"firesteel.batch.max-records": "10"}
ACTIONS: dict[int, Any] = {}
"""What is done once when a number comes by."""


def acting(n: int) -> int:
    ACTIONS.pop(n, lambda: None)()
    return n


EXPECTED = {f"k{n % 7}": n for n in range(53, 60)}


@pytest.fixture(scope="module")
def server() -> Iterator[CassandraServer]:
    missing = why_not()
    if missing is not None:
        pytest.skip(f"no Cassandra to test with: {missing}")
    with CassandraServer() as made:
        made.execute(
            "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE shop.counts (word text PRIMARY KEY, count bigint)",
        )
        yield made


def table(server: CassandraServer, name: str) -> str:
    server.execute(f"CREATE TABLE shop.{name} (word text PRIMARY KEY, n bigint)")
    return name


def numbers(server: CassandraServer, name: str) -> dict[str, int]:
    return {row.word: row.n for row in server.execute(f"SELECT word, n FROM shop.{name}")}


def program(port: int, name: str, function: Any = None, password: str = PASSWORD, value: Any = None) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        values = env.from_collection(list(range(60))).map(function or (lambda n: n))
        stream = values.map(lambda n: (f"k{n % 7}", value or n))
        made = CassandraSink.add_sink(stream).set_query(f"INSERT INTO shop.{name} (word, n) VALUES (?, ?)")
        made.set_host("127.0.0.1", port).set_login(USER, password).build()

    return build


def test_a_batch_that_comes_again_undoes_nothing(server: CassandraServer) -> None:
    name = table(server, "crash")
    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        run_pipeline(program(server.port, name), config=SMALL | crashes.config, restarts=1)
    assert numbers(server, name) == EXPECTED


def test_an_older_write_that_comes_late_loses(server: CassandraServer) -> None:
    from firesteel.common import Secret
    from firesteel.connectors.cassandra.connecting import CassandraAddress
    from firesteel.connectors.cassandra.writing import CassandraWriting, Writing
    from firesteel.datastream.connectors.base import WriterContext
    from firesteel.datastream.connectors.batch_sink import SinkBatch

    name = table(server, "late")
    address = CassandraAddress(("127.0.0.1",), server.port, USER, Secret(PASSWORD))
    now = [1_700_000_001_000]
    made = CassandraWriting(address, Writing(f"INSERT INTO shop.{name} (word, n) VALUES (?, ?)"))
    made.open(WriterContext(clock=lambda: now[0]))
    newer = SinkBatch([made.convert(("a", 2))])
    now[0] -= 1000
    older = SinkBatch([made.convert(("a", 1)), made.convert(("b", 1))])
    made.write(newer)
    made.write(older)
    made.close()
    assert numbers(server, name) == {"a": 2, "b": 1}


def test_a_process_is_killed_and_the_server_is(server: CassandraServer) -> None:
    name = table(server, "killed")
    script = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from firesteel.testing import run_pipeline
        from test_cassandra import SMALL, program
        killed = lambda n: os.kill(os.getpid(), 9) if n == 45 else n
        run_pipeline(program({server.port}, {name!r}, killed), config=SMALL)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert numbers(server, name) == {f"k{n % 7}": n for n in range(33, 40)}

    ACTIONS[35] = server.crash
    run_pipeline(program(server.port, name, acting), config=SMALL)
    assert numbers(server, name) == EXPECTED


def failure(build: Any) -> JobExecutionError:
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(build, restarts=2)
    return caught.value


def test_what_is_refused_is_told(server: CassandraServer) -> None:
    error = failure(program(server.port, "nowhere"))
    assert error.kind is FailureKind.PERMANENT
    assert "nowhere" in str(error)
    assert "Create the table first." in str(error)
    error = failure(program(server.port, "counts", password="wr0ng-but-s3cret"))
    assert error.kind is FailureKind.PERMANENT
    assert "refused the login" in str(error)
    assert "wr0ng-but-s3cret" not in f"{error} {error.cause_text}"
    name = table(server, "typed")
    error = failure(program(server.port, name, value="two"))
    assert error.kind is FailureKind.PERMANENT
    assert "'two'" in str(error)


def test_the_program_of_the_page_runs(server: CassandraServer, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "cassandra.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("FIRESTEEL_CASSANDRA_PORT", str(server.port))
    monkeypatch.setenv("FIRESTEEL_CASSANDRA_PASSWORD", PASSWORD)
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    exec(code, {"__name__": "docs.cassandra"})
    found = {row.word: row.count for row in server.execute("SELECT word, count FROM shop.counts")}
    assert found == {"to": 2, "be": 2, "or": 1, "not": 1}
