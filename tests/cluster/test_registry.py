"""The registry in PostgreSQL: the same rows as in the file, epochs, leases, and a connection that breaks."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clusterkit import settings_for
from postgreskit import Database
from sparkkit import eventually
from tcp_proxy import TcpProxy

from firesteel.cluster import postgres
from firesteel.cluster.driver_lease import DriverLease
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.postgres import PostgresAddress
from firesteel.cluster.postgres_election import PostgresElection
from firesteel.cluster.postgres_registry import PostgresRegistry
from firesteel.cluster.registry import (
    AttemptRow,
    JobRow,
    Leader,
    OperationRow,
    Registry,
    RegistryUnreachableError,
    StaleEpochError,
)
from firesteel.cluster.server import assemble
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.common.lease_clock import lease_clock
from firesteel.errors import ConfigurationError, SetupError


def address_of(database: Database, port: int | None = None) -> PostgresAddress:
    port = port or database.server.port
    return PostgresAddress.of(f"postgresql://{database.user}@127.0.0.1:{port}/{database.name}", database.password)


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Registry]]:
    """Makes one more registry of the same rows."""
    made: list[Registry] = []
    if request.param == "postgresql":
        address = address_of(request.getfixturevalue("database"))

    def one() -> Registry:
        made.append(SqliteRegistry(tmp_path / "r") if request.param == "sqlite" else PostgresRegistry(address))
        return made[-1]

    yield one
    for registry in made:
        registry.close()


def test_rows_are_what_they_were(make: Callable[[], Registry]) -> None:
    registry = make()
    assert registry.claim("http://one:1") == registry.epoch == 1
    job = JobRow(
        "a" * 32, "orders\0é", "p.py", arguments=("x",), settings={"k": "v"}, plan={"nodes": [1]}, record={"s": 1}
    )
    registry.add_job(job)
    registry.add_job(JobRow("b" * 32, "second", "p.py"))
    assert registry.job(job.id) == job
    assert [(row.name, row.record) for row in registry.jobs()] == [("orders\0é", {}), ("second", {})]
    changed = registry.update_job(job.id, state="FINISHED", record={"s": 2}, times={"FINISHED": 3})
    assert registry.job(job.id) == changed
    assert (changed.state, changed.record, changed.name) == ("FINISHED", {"s": 2}, job.name)
    registry.put_attempt(AttemptRow(job.id, 0, 7))
    registry.put_attempt(AttemptRow(job.id, 1, 8))
    registry.put_attempt(AttemptRow(job.id, 0, 7, outcome="crashed"))
    assert [(one.number, one.outcome) for one in registry.attempts(job.id)] == [(0, "crashed"), (1, "")]
    operation = OperationRow("c" * 32, job.id, "savepoint", 5)
    registry.put_operation(operation)
    assert registry.open_operations() == [operation]
    registry.put_operation(OperationRow("c" * 32, job.id, "savepoint", 5, done=True, result="/s"))
    assert registry.open_operations() == []
    found = registry.operation("c" * 32)
    assert found is not None
    assert found.result == "/s"
    registry.forget_job(job.id)
    assert registry.job(job.id) is None
    assert registry.attempts(job.id) == []
    assert registry.operation("c" * 32) is None


def test_only_the_last_epoch_writes(make: Callable[[], Registry]) -> None:
    first, second = make(), make()
    assert first.claim("http://one:1") == 1
    first.add_job(JobRow("a" * 32, "one", "p"))
    first.check()
    assert second.claim("http://two:2") == 2
    assert first.leader() == second.leader() == Leader(2, "http://two:2")
    for write in (
        first.check,
        lambda: first.add_job(JobRow("b" * 32, "two", "p")),
        lambda: first.update_job("a" * 32, state="RUNNING"),
        lambda: first.put_attempt(AttemptRow("a" * 32, 0)),
        lambda: first.put_operation(OperationRow("c" * 32, "a" * 32, "stop", 0)),
        lambda: first.forget_job("a" * 32),
    ):
        with pytest.raises(StaleEpochError):
            write()
    assert [row.state for row in second.jobs()] == ["CREATED"]
    assert second.attempts("a" * 32) == []


# PostgreSQL alone


def test_a_claim_is_not_held_up_by_a_process_that_stands_still_in_a_write(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SECONDS_OF_STATEMENT", 1.0)
    first, second = PostgresRegistry(address_of(database)), PostgresRegistry(address_of(database), patience=60)
    first.claim()
    reached, go_on = threading.Event(), threading.Event()
    refused: list[Exception] = []

    def write() -> None:
        try:
            first._write(lambda cursor: (reached.set(), go_on.wait(120), cursor.execute("SELECT 1")))
        except Exception as error:
            refused.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert reached.wait(60)
    assert second.claim() == 2
    go_on.set()
    thread.join(120)
    # Its transaction was ended by the server; tried again, it is one of an epoch that is over.
    assert [type(error) for error in refused] == [StaleEpochError]
    first.close()
    second.close()


def test_a_broken_connection_is_made_anew(database: Database) -> None:
    registry = PostgresRegistry(address_of(database))
    registry.claim()
    registry.add_job(JobRow("a" * 32, "one", "p"))
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'firesteel-registry'"
    assert database.execute(end) == [(True,)]
    registry.update_job("a" * 32, state="RUNNING")
    assert [row.state for row in registry.jobs()] == ["RUNNING"]
    registry.close()
    with pytest.raises(RegistryUnreachableError, match="closed its connection"):
        registry.jobs()


def test_a_network_that_swallows_everything_is_noticed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with TcpProxy("127.0.0.1", database.server.port) as proxy:
        registry = PostgresRegistry(address_of(database, proxy.port), patience=60.0)
        registry.claim()
        proxy.swallow()
        registry._patience = 1.0
        with monkeypatch.context() as patch:
            patch.setattr(postgres, "SECONDS_TO_ANSWER", 0.5)
            with pytest.raises(RegistryUnreachableError):
                registry.check()
        proxy.reset()
        registry._patience = 60.0
        registry.check()
        registry.close()


def test_a_registry_of_a_newer_version_is_refused(database: Database) -> None:
    PostgresRegistry(address_of(database)).close()
    database.execute("UPDATE firesteel.cluster SET version = 99")
    with pytest.raises(
        SetupError,
        match=r"^The registry of a job manager has format 99, of a newer Firesteel; .* or a newer one \(",
    ):
        PostgresRegistry(address_of(database))


def test_several_clusters_share_a_database(database: Database) -> None:
    one = PostgresRegistry(address_of(database))
    other = PostgresRegistry(PostgresAddress.of(one._base.address.url, database.password, "another"))
    assert (one.claim(), other.claim(), one.claim()) == (1, 1, 2)
    one.close()
    other.close()


def test_the_password_is_not_shown(database: Database) -> None:
    address = address_of(database)
    assert database.password not in repr(address)
    with pytest.raises(ConfigurationError, match="holds a password") as caught:
        PostgresAddress.of("postgresql://me:hunter2@db/jobs")
    assert "hunter2" not in str(caught.value)
    assert PostgresAddress.of("postgresql://db:5432/jobs?user=me@here").url
    for url in (
        "postgresql+psycopg://me:hunter2@db/jobs",
        "postgresql://me:hun/ter2@db",
        "postgresql://me@db/jobs?sslpassword=hunter2",
    ):
        with pytest.raises(ConfigurationError, match="holds a password") as caught:
            PostgresAddress.of(url)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="is a database"):
        PostgresAddress.of("mysql://me@db:3306/jobs")
    with pytest.raises(ConfigurationError, match="names a schema"):
        PostgresAddress.of("postgresql://me@db/jobs", schema='x"; DROP')


# The election


@pytest.fixture
def candidates(database: Database) -> Iterator[tuple[PostgresElection, PostgresElection]]:
    PostgresRegistry(address_of(database)).close()
    pair = PostgresElection(address_of(database), 4.0), PostgresElection(address_of(database), 4.0)
    yield pair
    for one in pair:
        one.resign()
        one.close()


def test_one_of_two_is_elected(candidates: tuple[PostgresElection, PostgresElection], database: Database) -> None:
    first, second = candidates
    assert first.stand(0)
    assert not second.stand(0)
    ((expires,),) = database.execute("SELECT expires FROM firesteel.leadership")
    # It is renewed.
    renewed = f"SELECT 1 FROM firesteel.leadership WHERE expires > '{expires}'"
    assert eventually(lambda: database.execute(renewed))
    assert first.holds()
    first.resign()
    assert second.stand(60.0)
    assert second.holds()
    assert not first.holds()


def test_nobody_waits_for_the_lease_of_a_connection_that_is_gone(database: Database) -> None:
    registry = PostgresRegistry(address_of(database))
    first, second = PostgresElection(address_of(database), 600.0), PostgresElection(address_of(database), 600.0)
    assert first.stand(0)
    assert not second.stand(0)
    # As if its process had been killed.
    first._elected.clear()
    first._base.disconnect()
    assert second.stand(120.0)
    for one in (registry, first, second):
        one.close()


def test_one_that_is_elected_again_has_one_thread(database: Database) -> None:
    PostgresRegistry(address_of(database)).close()
    election = PostgresElection(address_of(database), 30.0)
    assert election.stand(0)
    first = election._elected
    election.resign()
    assert election.stand(60.0)
    assert election.holds()
    assert not first.is_set(), "whoever renewed the first term sees that it is over"
    election.resign()
    election.close()


def test_what_could_not_be_set_up_leaves_nothing(database: Database, tmp_path: Path) -> None:
    PostgresRegistry(address_of(database)).close()
    database.execute("UPDATE firesteel.cluster SET version = 99")

    def watching() -> int:
        return sum(thread.name == "firesteel-registry-watch" for thread in threading.enumerate())

    assert eventually(lambda: not watching())
    with pytest.raises(SetupError):
        PostgresRegistry(address_of(database))
    assert eventually(lambda: not watching())
    database.execute("UPDATE firesteel.cluster SET version = 1")
    settings = settings_for(tmp_path / "c", registry=address_of(database).url, registry_password=database.password)
    folder = ClusterFolder.make(tmp_path / "c")
    folder.token.write_text("x")
    with pytest.raises(SetupError, match="token"):
        assemble(settings, folder)
    assert eventually(lambda: not watching())


def test_a_database_that_was_restored_has_no_second_leader(database: Database) -> None:
    one, other = PostgresRegistry(address_of(database)), PostgresRegistry(address_of(database))
    assert one.claim("http://one:1") == 1
    database.execute("UPDATE firesteel.cluster SET epoch = 0")
    assert other.claim("http://other:1") == 1
    with pytest.raises(StaleEpochError):
        one.check()
    one.close()
    other.close()


def test_one_that_stands_still_is_not_elected_any_more(
    candidates: tuple[PostgresElection, PostgresElection], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = candidates
    monkeypatch.setattr(first, "_renew", lambda: time.sleep(60))
    assert first.stand(0)
    assert second.stand(120.0), "the lease has run out"
    assert not first.holds(), "it ran out there before"


# Leases of drivers


def test_a_driver_commits_while_it_has_its_lease(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PostgresRegistry(address_of(database), driver_seconds=600.0)
    registry.claim()
    killed = threading.Event()
    monkeypatch.setattr(DriverLease, "_end", lambda lease: killed.set())
    lease = DriverLease(registry.assign_driver("a" * 32, 0))
    assert lease.take()
    lease.check()
    held = registry.driver("a" * 32)
    assert held is not None
    assert held.alive
    assert not registry.close_driver("a" * 32, 0), "it is renewed"
    # It stands still: renewals end, and ten minutes go by, here and there.
    lease._over.set()
    for thread in threading.enumerate():
        if thread.name == "firesteel-driver-lease":
            thread.join()
    lease._valid_until = 0.0
    database.execute("UPDATE firesteel.drivers SET expires = clock_timestamp() - INTERVAL '1 s'")
    assert registry.close_driver("a" * 32, 0)
    done = threading.Event()
    threading.Thread(target=lambda: (lease.check(), done.set()), daemon=True).start()
    assert not done.wait(0.5), "a commit waits"
    # It wakes up.
    lease._over.clear()
    threading.Thread(target=lease._keep, daemon=True).start()
    assert killed.wait(60)
    assert not done.is_set()
    lease._over.set()
    registry.close()


def test_a_commit_goes_on_when_the_registry_is_back(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PostgresRegistry(address_of(database), driver_seconds=1.0)
    registry.claim()
    with TcpProxy("127.0.0.1", database.server.port) as proxy:
        known = registry.assign_driver("a" * 32, 0).replace(f":{database.server.port}/", f":{proxy.port}/")
        lease = DriverLease(known)
        assert lease.take()
        proxy.swallow()
        # Not before: on a busy machine what was set up would not be there in time.
        monkeypatch.setattr(postgres, "SECONDS_TO_ANSWER", 2.0)
        assert eventually(lambda: lease_clock() > lease._valid_until)
        done = threading.Event()
        threading.Thread(target=lambda: (lease.check(), done.set()), daemon=True).start()
        assert not done.wait(0.3)
        proxy.reset()
        assert done.wait(120)
        lease.release()
    held = registry.driver("a" * 32)
    assert held is not None
    assert not held.alive
    registry.close()


def test_only_the_driver_that_is_wanted_gets_the_lease(database: Database) -> None:
    registry = PostgresRegistry(address_of(database))
    registry.claim()
    first = DriverLease(registry.assign_driver("a" * 32, 0))
    second = DriverLease(registry.assign_driver("a" * 32, 1))
    assert not first.take()
    assert second.take()
    # A job manager of an earlier epoch cannot assign one.
    other = PostgresRegistry(address_of(database))
    other.claim()
    with pytest.raises(StaleEpochError):
        registry.assign_driver("a" * 32, 2)
    for one in (first, second):
        one.release()
    registry.close()
    other.close()


def test_a_lease_outlives_what_else_a_database_answers(database: Database) -> None:
    registry = PostgresRegistry(address_of(database), driver_seconds=1.0)
    registry.claim()
    lease = DriverLease(registry.assign_driver("a" * 32, 0))
    assert lease.take()

    def renewed() -> bool:
        before = lease._valid_until
        return eventually(lambda: lease._valid_until > before)

    # After a failover the address may lead to a server that reads only; then it is the right one again.
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'firesteel-driver'"
    database.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    database.execute(end)
    assert eventually(lambda: lease_clock() > lease._valid_until)
    database.server.execute(f"ALTER DATABASE {database.name} RESET default_transaction_read_only", "postgres")
    assert renewed()
    # A session that becomes read-only under way.
    lease._base.run(lambda cursor: cursor.connection.execute("SET default_transaction_read_only = on"))
    assert renewed()
    # Something is refused that was allowed, and is again.
    database.execute("ALTER TABLE firesteel.drivers RENAME TO away")
    assert eventually(lambda: lease_clock() > lease._valid_until)
    database.execute("ALTER TABLE firesteel.away RENAME TO drivers")
    assert renewed()
    lease.check()
    lease.release()
    registry.close()


def test_a_lease_runs_out_while_the_machine_sleeps(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PostgresRegistry(address_of(database))
    registry.claim()
    lease = DriverLease(registry.assign_driver("a" * 32, 0))
    election = PostgresElection(address_of(database), 600.0)
    assert lease._renew()
    assert election.stand(0)
    lease.check()
    assert election.holds()
    real = time.clock_gettime
    # Of a machine that slept the monotonic clock says nothing.
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + 3600 * (clock == time.CLOCK_BOOTTIME))
    assert not election.holds()
    done = threading.Event()
    threading.Thread(target=lambda: (lease.check(), done.set()), daemon=True).start()
    assert not done.wait(0.3)
    assert lease._renew()
    assert done.wait(60)
    election.resign()
    lease.release()
    election.close()
    registry.close()


def test_a_request_to_a_driver_is_made_once_and_answered_whatever_happens(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = PostgresRegistry(address_of(database), driver_seconds=2.0)
    registry.claim()
    lease = DriverLease(registry.assign_driver("a" * 32, 0))
    assert lease.take()
    real, lost = registry._base._connected, []

    class Lossy:
        """A connection that breaks once after a commit, before the answer to it has come."""

        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        @contextlib.contextmanager
        def transaction(self) -> Iterator[None]:
            with self._connection.transaction():
                yield
            if not lost:
                lost.append(1)
                raise psycopg.OperationalError("server closed the connection unexpectedly")

    def fails(request: dict[str, Any]) -> dict[str, Any]:
        raise OSError("no such socket")

    monkeypatch.setattr(registry._base, "_connected", lambda: Lossy(real()))
    monkeypatch.setattr(lease, "_answer", fails)
    answer = registry.ask_driver("a" * 32, 0, "{}", 120.0)
    assert lost
    assert answer is not None
    assert "no such socket" in json.loads(answer)["error"]
    assert database.execute("SELECT count(*) FROM firesteel.commands") == [(0,)]
    lease.release()
    registry.close()
