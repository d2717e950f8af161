"""The election by a real ZooKeeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakit import Members
from postgreskit import Database
from sparkkit import eventually
from tcp_proxy import TcpProxy
from zookeeper_server import ZookeeperServer, why_not

from firesteel.cluster.rest.standby import LEADER
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.zookeeper_election import ZookeeperElection
from firesteel.common import Configuration
from firesteel.errors import ConfigurationError

PATH = "/firesteel/test/leader"
SECONDS = 10.0
"""How long a session lasts without a sign of life: longer than a busy machine holds a process up."""


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with ZooKeeper: {missing}")
        pytest.skip(f"no ZooKeeper to test with: {missing}")
    with ZookeeperServer() as found:
        yield found


@pytest.fixture
def candidate(server: ZookeeperServer) -> Iterator[ZookeeperElection]:
    found = ZookeeperElection(server.hosts, PATH, "here", SECONDS)
    yield found
    found.resign()
    found.close()


# A candidate that is a process, so that it can be stopped. It says what it believes when it is asked.
OTHER = f"""
import sys
from firesteel.cluster.zookeeper_election import ZookeeperElection
election = ZookeeperElection(sys.argv[1], {PATH!r}, "other", {SECONDS})
print(election.stand(120.0), flush=True)
for line in sys.stdin:
    print(election.holds(), flush=True)
"""


@pytest.fixture
def other(server: ZookeeperServer) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, server.hosts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def said(process: subprocess.Popen[str], ask: bool = True) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if ask:
        process.stdin.write("?\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def test_one_that_is_killed_or_stands_still_is_replaced(
    candidate: ZookeeperElection, other: subprocess.Popen[str]
) -> None:
    assert said(other, ask=False) == "True"
    assert eventually(lambda: not candidate.stand(0.5) and candidate._client is not None)
    session = candidate._client
    assert not candidate.stand(0.5)
    assert candidate._client is session, "nothing is wrong with the session of one that was not elected"
    other.send_signal(signal.SIGSTOP)
    assert eventually(lambda: candidate.stand(1.0))
    assert candidate.holds()
    other.send_signal(signal.SIGCONT)
    # It learns so from ZooKeeper. Until then the epoch of the registry keeps it from acting.
    assert eventually(lambda: said(other) == "False")
    assert candidate.holds()


def test_a_connection_that_is_cut_ends_the_term(server: ZookeeperServer, candidate: ZookeeperElection) -> None:
    with TcpProxy("127.0.0.1", server.port) as proxy:
        first = ZookeeperElection(f"127.0.0.1:{proxy.port}", PATH, "first", SECONDS)
        assert eventually(lambda: first.stand(1.0))
        assert not candidate.stand(0.3)
        proxy.swallow()
        assert eventually(lambda: not first.holds())
        assert eventually(lambda: candidate.stand(1.0))
        proxy.reset()
        assert not first.holds()
        first.resign()
        candidate.resign()
        assert eventually(lambda: first.stand(1.0)), "and it can be elected again"
        first.resign()
        first.close()


def test_job_managers_elect_by_zookeeper(server: ZookeeperServer, database: Database, tmp_path: Path) -> None:
    members = Members(tmp_path / "c", database)
    try:
        first = members.start(zookeeper=server.hosts)
        assert eventually(lambda: members.leads(first, 1))
        second = members.start(zookeeper=server.hosts)
        assert members.headers(second)[LEADER] == first.address
        os.kill(first.pid, signal.SIGSTOP)
        assert eventually(lambda: members.leads(second, 2))
        os.kill(first.pid, signal.SIGCONT)
        assert eventually(lambda: members.headers(first).get(LEADER) == second.address)
        assert members.leads(second, 2)
    finally:
        members.close()


def test_it_needs_a_registry() -> None:
    with pytest.raises(ConfigurationError, match="Name it with --registry"):
        ClusterSettings.of(Configuration(), zookeeper="zk1:2181")
    nobody = ZookeeperElection("127.0.0.1:1", PATH, "here", 1.0)
    assert not nobody.stand(0.1)
    nobody.close()
