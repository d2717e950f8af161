"""The SQL client: where statements end, what is shown, the prompt and the screen."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from firesteel.cli import main
from firesteel.errors import FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.client.screen import ResultScreen
from firesteel.table.client.scripts import split
from firesteel.table.client.session import ScriptError, SqlSession
from firesteel.table.client.shell import SqlCompleter, SqlShell, is_complete
from firesteel.table.client.views import ResultView, TableView
from firesteel.table.table_result import TableResult

SEQUENCE = """
    CREATE TABLE numbers (n BIGINT, k AS MOD(n, 2)) WITH (
        'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '4'
    );
"""
ENDLESS = "CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');"
NOWHERE = "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole');"


def environment() -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("firesteel.master", "memory")
    env.get_config().set("parallelism.default", "1")
    return env


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def session(out: io.StringIO) -> SqlSession:
    return SqlSession(environment(), out)


# Where statements end.


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" ; ;", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT ';' AS `;`; -- not; here\nSELECT /* ; */ 2;", ["SELECT ';' AS `;`", "SELECT /* ; */ 2"], ""),
        ("SELECT 1; SELECT 'open; ", ["SELECT 1"], "SELECT 'open;"),
        ("SELECT 1; /* open; ", ["SELECT 1"], "/* open;"),
        ("SELECT § 1; SELECT 2;", ["SELECT § 1", "SELECT 2"], ""),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM b;"
            " INSERT INTO c VALUES (1); END; SELECT",
            [
                "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM b;"
                " INSERT INTO c VALUES (1); END"
            ],
            "SELECT",
        ),
        (
            "BEGIN STATEMENT SET; INSERT INTO a VALUES (1); END;",
            ["BEGIN STATEMENT SET; INSERT INTO a VALUES (1); END"],
            "",
        ),
    ],
)
def test_statements_end_at_semicolons_outside_of_strings_comments_and_sets(
    text: str, statements: list[str], rest: str
) -> None:
    script = split(text)
    assert [statement.text for statement in script.statements] == statements
    assert script.rest == rest


@given(st.text(alphabet="a1 ;'`\"/*-§\n", max_size=30))
def test_any_text_can_be_split_and_nothing_is_lost(text: str) -> None:
    script = split(text)
    pieces = [*(statement.text for statement in script.statements), script.rest]
    at = 0
    for piece in pieces:
        at = text.index(piece, at) + len(piece)


def test_lines_are_those_of_the_file() -> None:
    assert [statement.line for statement in split("\n-- one\nSELECT 1;\n\nSELECT\n2;").statements] == [3, 5]


# Views.

ROWS = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(st.booleans(), ROWS, ROWS), max_size=30))
def test_a_table_shows_what_the_changes_leave(steps: list[tuple[bool, str, str]]) -> None:
    view, expected = TableView(["x"], 1000), Counter[str]()
    for update, old, new in steps:
        if update and expected[old]:
            view.apply(("-U", old))
            view.apply(("+U", new))
            expected[old] -= 1
            expected[new] += 1
        elif expected[old] and not update:
            view.apply(("-D", old))
            expected[old] -= 1
        else:
            view.apply(("+I", new))
            expected[new] += 1
    assert Counter(row for (row,) in view.rows()) == +expected


def test_a_table_keeps_no_more_rows_than_it_may() -> None:
    view = TableView(["x"], 2)
    for row in "abc":
        view.apply(("+I", row))
    view.apply(("-D", "a"))
    assert view.rows() == [("b",), ("c",)]
    assert view.dropped == 1


def test_a_row_that_is_replaced_may_be_the_one_that_is_dropped() -> None:
    view = TableView(["x"], 1)
    view.apply(("+I", "a"))
    view.apply(("-U", "a"))
    view.apply(("+I", "b"))
    view.apply(("+U", "c"))
    assert view.rows() == [("c",)]


# Sessions.


def test_a_session_runs_statements_in_order(session: SqlSession, out: io.StringIO) -> None:
    assert session.run(SEQUENCE + "SHOW TABLES; SELECT k, COUNT(*) AS c FROM numbers GROUP BY k")
    text = out.getvalue()
    assert text.startswith("OK\n+------------+\n| table name |")
    assert "| +U |" in text
    assert text.endswith("6 rows in set\n")


def test_quit_ends_it(session: SqlSession, out: io.StringIO) -> None:
    assert not session.run("quit; SHOW TABLES;")
    assert out.getvalue() == ""


def test_an_insert_goes_on_beside_the_session(session: SqlSession, out: io.StringIO) -> None:
    session.run(ENDLESS + NOWHERE + "INSERT INTO nowhere SELECT n FROM endless; SHOW JOBS;")
    ((_, client),) = session.jobs
    job = str(client.get_job_id())
    assert f"Job ID: {job}\n{job}  RUNNING " in out.getvalue()
    with pytest.raises(FiresteelError, match=f"no job .* Did you mean {job}"):
        session.run(f"STOP JOB '{job[:-1]}';")
    session.run(f"STOP JOB '{job}';")
    assert client.get_job_status().result().is_terminal_state()


def test_a_session_may_wait_for_inserts(session: SqlSession) -> None:
    session.run(SEQUENCE + NOWHERE + "SET 'table.dml-sync' = 'true'; INSERT INTO nowhere SELECT n FROM numbers;")
    assert session.jobs[0][1].get_job_status().result().name == "FINISHED"


def test_an_error_in_a_file_names_the_line(session: SqlSession) -> None:
    with pytest.raises(ScriptError, match=r"(?s)^all.sql, statement in line 3: There is no table numbres.*line 2"):
        session.run_file("SHOW TABLES;\n\nSELECT *\nFROM numbres;", "all.sql")


def test_a_file_may_end_without_a_semicolon(session: SqlSession, out: io.StringIO) -> None:
    session.run_file("SHOW CATALOGS; SHOW VIEWS -- the last", "all.sql")
    assert out.getvalue().endswith("Empty set\n")


def test_the_result_mode_is_checked(out: io.StringIO) -> None:
    session = SqlSession(environment(), out, screen=lambda result, view: None)
    session.run("SET 'sql-client.execution.result-mode' = 'tabel'")
    with pytest.raises(FiresteelError, match="Did you mean table"):
        session.run("SELECT 1")


@pytest.mark.parametrize(
    ("mode", "names", "rows"),
    [("table", ["k", "c"], [("1", "2"), ("0", "2")]), ("changelog", ["op", "k", "c"], None)],
)
def test_a_screen_gets_the_rows_or_the_changes(mode: str, names: list[str], rows: Any) -> None:
    seen: list[ResultView] = []

    def screen(result: TableResult, view: ResultView) -> None:
        for change in result.changes():
            view.apply(change)
        seen.append(view)

    session = SqlSession(environment(), screen=screen)
    session.run(SEQUENCE)
    session.run(f"SET 'sql-client.execution.result-mode' = '{mode}'; SELECT k, COUNT(*) AS c FROM numbers GROUP BY k")
    (view,) = seen
    assert list(view.names) == names
    assert rows is None or view.rows() == rows


# The terminal.


@contextmanager
def terminal(keys: str) -> Iterator[dict[str, Any]]:
    with create_pipe_input() as typed:
        typed.send_text(keys)
        yield {"input": typed, "output": DummyOutput()}


def test_q_ends_a_query_that_would_go_on() -> None:
    env = environment()
    env.execute_sql(ENDLESS)
    result = env.execute_sql("SELECT n FROM endless")
    view = TableView(["n"], 100)
    with terminal("\x1b[B\x1b[Hq") as given:
        ResultScreen(result, view, **given).run()


def test_a_query_that_fails_ends_its_screen() -> None:
    env = environment()
    env.execute_sql(SEQUENCE)
    result = env.execute_sql("SELECT 10 / (n - 3) FROM numbers")
    with terminal("") as given, pytest.raises(FiresteelError, match="zero"):
        ResultScreen(result, TableView(["n"], 100), **given).run()


def test_the_prompt_takes_several_lines_and_goes_on_after_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = environment()
    history = InMemoryHistory()
    with terminal("SELEC 1;\nSHOW\nCATALOGS;\nquit\n") as given:
        assert SqlShell(env, history, **given).run() == 0
    shown = capsys.readouterr()
    assert "Did you mean SELECT?" in shown.err
    assert "default_catalog" in shown.out
    assert history.get_strings() == ["SELEC 1;", "SHOW\nCATALOGS;", "quit"]


def test_the_history_is_private_and_may_be_impossible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept = tmp_path / "firesteel" / "sql-history"
    kept.parent.mkdir()
    kept.touch(mode=0o644)
    with terminal("quit\n") as given:
        SqlShell(environment(), **given).run()
    assert "quit" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    # A file where a folder should be: nobody can write there, not even root.
    monkeypatch.setenv("XDG_STATE_HOME", str(kept))
    with terminal("quit\n") as given:
        assert SqlShell(environment(), **given).run() == 0
    assert "What you type is not kept" in capsys.readouterr().err


def test_the_end_of_the_prompt_ends_its_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal(ENDLESS + NOWHERE + "INSERT INTO nowhere SELECT n FROM endless;\n\x04") as given:
        shell = SqlShell(environment(), InMemoryHistory(), **given)
        shell.run()
    ((_, client),) = shell.session.jobs
    assert f"Ending job {client.get_job_id()}" in capsys.readouterr().out
    assert client.get_job_status().result().name == "CANCELED"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("SEL", "SELECT"),
        ("SELECT n FROM num", "numbers"),
        ("SELECT * FROM numbers WHERE kk", "kkk"),
        ("SELECT uppe", "UPPER"),
        ("SET 'sql-client.execution.r", "sql-client.execution.result-mode"),
    ],
)
def test_completion_knows_words_names_functions_and_keys(typed: str, expected: str) -> None:
    env = environment()
    env.execute_sql(SEQUENCE.replace("k AS", "kkk AS").rstrip().rstrip(";"))
    found = SqlCompleter(env).get_completions(Document(typed), None)  # type: ignore[arg-type]
    assert expected in [completion.text for completion in found]


def test_enter_runs_what_is_complete() -> None:
    assert is_complete("SELECT 1; SELECT 2;  -- both")
    assert not is_complete("SELECT 1; SELECT 2")
    assert not is_complete("EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1);")


# The command.


def test_the_command_runs_files_and_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables, queries = tmp_path / "tables.sql", tmp_path / "queries.sql"
    tables.write_text(SEQUENCE)
    queries.write_text("SELECT n FROM numbers WHERE n > 3;")
    common = ["sql", "-m", "memory", "-p", "1", "-i", str(tables)]
    assert main([*common, "-f", str(queries)]) == 0
    assert main([*common, "-e", "SELECT n FROM numbers WHERE n > 3"]) == 0
    first, second = capsys.readouterr().out.split("OK\n")[1:]
    assert first == second
    assert "|                    4 |" in first


def test_the_command_says_which_file_it_cannot_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-f", "/nowhere/all.sql"]) == 1
    assert "/nowhere/all.sql cannot be read" in capsys.readouterr().err
