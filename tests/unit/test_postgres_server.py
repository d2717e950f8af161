"""The server that the tests with PostgreSQL run on."""

from __future__ import annotations

from pathlib import Path

import postgreskit
import pytest
from postgres_server import PostgresServer
from postgreskit import Database

pytest_plugins = ["pytester"]


def test_it_can_prepare_transactions(database: Database) -> None:
    assert int(database.execute("SHOW max_prepared_transactions")[0][0]) > 0
    database.execute("CREATE TABLE t (n int)")
    assert database.execute("SELECT count(*) FROM t") == [(0,)]
    assert database.prepared() == []


def test_a_crash_loses_nothing_that_was_committed_or_prepared() -> None:
    if (missing := postgreskit.why_not()) is not None:
        pytest.skip(f"no PostgreSQL to test with: {missing}")
    with PostgresServer() as server:
        server.execute("CREATE TABLE t (n int)")
        server.execute("BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'later'")
        before = server.pid
        server.crash()
        assert server.pid != before
        server.execute("COMMIT PREPARED 'later'")
        assert server.execute("SELECT n FROM t") == [(1,)]


@pytest.mark.parametrize("ci", ["true", None])
def test_without_it_tests_skip_visibly_but_fail_in_ci(
    ci: str | None, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    monkeypatch.setattr(postgreskit, "binaries", lambda: None)
    if ci:
        monkeypatch.setenv("CI", ci)
    else:
        monkeypatch.delenv("CI", raising=False)
    pytester.makeconftest((Path(postgreskit.__file__).parent / "conftest.py").read_text())
    pytester.makepyfile("def test_it(database): pass")
    result = pytester.runpytest_inprocess()
    if ci:
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*CI must test with PostgreSQL: *apt-get install postgresql*"])
    else:
        result.assert_outcomes(skipped=1)
        result.stdout.fnmatch_lines(["1 tests skipped: PostgreSQL's programs were not found*"])
