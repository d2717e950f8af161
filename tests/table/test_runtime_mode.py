"""``execution.runtime-mode`` of tables: an environment keeps its mode, as in PyFlink; at a prompt the setting changes
it, as in Flink's SQL client."""

import io

import pytest
from conftest import environment

from firesteel.common import Configuration
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.table import StreamTableEnvironment, TableEnvironment
from firesteel.table.client.session import SqlSession
from firesteel.table.client.submitted_script import run_statements

MODE = "execution.runtime-mode"
COUNT = "SELECT k, COUNT(*) AS n FROM (VALUES ('a'), ('a')) AS t (k) GROUP BY k"


def kinds(env: TableEnvironment, query: str = COUNT) -> list[str]:
    with env.execute_sql(query).collect() as rows:
        return [str(row.get_row_kind()) for row in rows]


STREAM, FINAL = ["+I", "-U", "+U"], ["+I"]


@pytest.mark.parametrize(("made_for", "given"), [("STREAMING", "streaming"), ("BATCH", "batch"), ("BATCH", "BATCH")])
def test_the_mode_that_it_has_may_be_set(made_for: str, given: str) -> None:
    env = environment(**{MODE: made_for})
    env.get_config().set(MODE, given)
    assert kinds(env) == (STREAM if made_for == "STREAMING" else FINAL)


@pytest.mark.parametrize(("made_for", "given"), [("STREAMING", "batch"), ("BATCH", "streaming")])
def test_a_program_does_not_change_its_mode(made_for: str, given: str) -> None:
    env = environment(**{MODE: made_for})
    env.get_config().set(MODE, given)
    # What runs nothing goes on.
    env.execute_sql("CREATE TABLE nowhere (k STRING, n BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql(f"CREATE VIEW counted AS {COUNT}")
    env.sql_query(COUNT).print_schema()
    said = f"execution.runtime-mode is '{given}' now, and the environment was made for"
    for run in (
        lambda: env.execute_sql(COUNT),
        lambda: env.sql_query(COUNT).execute(),
        lambda: env.execute_sql(f"INSERT INTO nowhere {COUNT}"),
        lambda: env.explain_sql(COUNT),
        lambda: env.execute_sql(f"EXPLAIN {COUNT}"),
    ):
        with pytest.raises(ProgramError, match=said):
            run()
    env.get_config().set(MODE, made_for)
    assert kinds(env) == (STREAM if made_for == "STREAMING" else FINAL)


@pytest.mark.parametrize("given", ["AUTOMATIC", "automatic", "wrong"])
def test_tables_know_two_modes(given: str) -> None:
    env = environment()
    env.get_config().set(MODE, given)
    with pytest.raises(ConfigurationError, match=f"of tables must be STREAMING or BATCH, got '{given}'"):
        env.execute_sql(COUNT)
    with pytest.raises(ConfigurationError, match="of tables must be STREAMING or BATCH"):
        environment(**{MODE: given})


def test_over_streams_the_mode_is_theirs() -> None:
    settings = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
    streams = StreamExecutionEnvironment.get_execution_environment(settings)
    tables = StreamTableEnvironment.create(streams)
    assert kinds(tables) == STREAM
    tables.get_config().set(MODE, "batch")
    with pytest.raises(ProgramError, match="the environment was made for streams mode"):
        tables.execute_sql(COUNT)
    tables.get_config().set(MODE, "streaming")
    streams.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(
        ProgramError, match=r"is BATCH now, and it was STREAMING when .* set_runtime_mode\(\) comes first"
    ):
        tables.execute_sql(COUNT)
    assert kinds(StreamTableEnvironment.create(streams)) == FINAL


def session() -> tuple[SqlSession, io.StringIO]:
    out = io.StringIO()
    return SqlSession(environment(), out), out


def test_at_a_prompt_the_setting_changes_the_mode() -> None:
    prompt, out = session()
    prompt.run(f"SET '{MODE}' = 'batch'; {COUNT};")
    assert "\n|                              a |                    2 |\n+--" in out.getvalue()
    prompt.run(f"SET '{MODE}' = 'streaming'; {COUNT};")
    assert "| +U |                              a |                    2 |" in out.getvalue()
    prompt.run(f"SET '{MODE}' = 'batch'; RESET '{MODE}';")
    assert kinds(prompt.env) == STREAM


def test_a_wrong_mode_at_a_prompt_changes_nothing() -> None:
    prompt, _ = session()
    prompt.run(f"SET '{MODE}' = 'batch'")
    with pytest.raises(ConfigurationError, match="must be STREAMING or BATCH, got 'bath'"):
        prompt.run(f"SET '{MODE}' = 'bath'")
    assert kinds(prompt.env) == FINAL


def test_views_of_a_prompt_mean_the_same_in_both_modes() -> None:
    prompt, _ = session()
    over = "SELECT n, SUM(n) OVER (ORDER BY n) AS total FROM (VALUES (1), (2), (3)) AS t (n)"
    prompt.run(
        f"CREATE DATABASE d; USE d; CREATE VIEW base AS {over}; CREATE VIEW totals (a, b) AS SELECT * FROM base;"
    )
    prompt.run(f"SET '{MODE}' = 'batch'; USE `default_database`;")
    with prompt.env.execute_sql("SELECT a, b FROM d.totals").collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(1, 1), (2, 3), (3, 6)]
    prompt.run(f"USE d; CREATE VIEW last AS {over}; SET '{MODE}' = 'streaming'")
    for view in ("totals", "last"):
        assert sorted(map(tuple, prompt.env.sql_query(f"SELECT * FROM {view}").to_pandas().to_numpy())) == [
            (1, 1),
            (2, 3),
            (3, 6),
        ]


def test_a_job_of_a_session_has_its_mode(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    run_statements(
        [
            f"SET '{MODE}' = 'batch'",
            "CREATE TABLE console (k STRING, n BIGINT) WITH ('connector' = 'print')",
            f"INSERT INTO console {COUNT}",
        ]
    )
    assert capsys.readouterr().out.endswith("+I[a, 2]\n")
