"""The settings ``table.*``: all that Flink 2.3 knows are known, what they do, and the warnings for the others."""

import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import environment

from firesteel.common import Configuration
from firesteel.common.table_keys import TABLE_KEYS
from firesteel.errors import ConfigurationError, FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.client.session import SqlSession
from firesteel.table.physical.length_checks import SizedColumn
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.table_settings import WITHOUT_EFFECT
from firesteel.table.types.data_types import BinaryType, VarBinaryType

DOCS = Path(__file__).resolve().parents[2] / "docs"
KEYS = json.loads((Path(__file__).parent / "table_settings_of_flink.json").read_text())
TIMED = """
    CREATE TABLE timed (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts) WITH (
        'connector' = 'datagen', 'fields.n.min' = '0', 'fields.n.max' = '9', 'number-of-rows' = '3')
"""


def test_all_keys_of_flink_are_known() -> None:
    assert sorted({*TABLE_KEYS, *WITHOUT_EFFECT}) == KEYS
    assert not TABLE_KEYS & WITHOUT_EFFECT.keys()


def test_the_documentation_lists_them() -> None:
    lines = (DOCS / "settings.md").read_text().splitlines()
    for key, reason in WITHOUT_EFFECT.items():
        assert any(f"`{key}`" in line and reason in line for line in lines), key
    shortened = {key for key in TABLE_KEYS if "async-scalar" in key}
    assert [key for key in TABLE_KEYS - shortened if not any(line.startswith(f"| `{key}`") for line in lines)] == []


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]


def test_what_has_no_effect_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "firesteel")
    env = environment(**{"table.exec.mini-batch.size": "10", "table.exec.state.ttl": "1 h", "my.own": "x"})
    for _ in range(2):
        env.execute_sql("SELECT 1").collect().close()
    assert told(caplog) == [
        "the setting 'table.exec.mini-batch.size' has no effect: a mini-batch is a micro-batch "
        "(firesteel.batch.max-records)."
    ]
    env.get_config().set("table.exec.sort.default-limit", "5")
    env.explain_sql("SELECT 1")
    assert "'table.exec.sort.default-limit' has no effect: ORDER BY without a limit gives all rows." in told(caplog)[1]


def test_a_misspelt_key_is_told_with_the_right_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "firesteel")
    environment(**{"table.exec.stat.ttl": "1 h"}).execute_sql("SELECT 1").collect().close()
    (line,) = told(caplog)
    assert line.startswith(
        "the setting 'table.exec.stat.ttl' is not known and has no effect. Did you mean table.exec.st"
    )


def test_at_a_prompt_it_is_told_with_set(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "firesteel")
    SqlSession(environment()).run("SET 'table.exec.sink.upsert-materialise' = 'NONE'")
    assert "Did you mean table.exec.sink.upsert-materialize" in told(caplog)[0]


def sources(env: TableEnvironment) -> list[Any]:
    program, planner = env._planner()
    planner.stream(env.sql_query("SELECT * FROM timed")._plan)
    return [node for node in program.program.nodes() if getattr(node.spec, "enumerator", None)]


def test_a_source_without_rows_is_not_waited_for() -> None:
    env = environment(**{"table.exec.source.idle-timeout": "7 s"})
    env.execute_sql(TIMED)
    (source,) = sources(env)
    assert source.spec.strategy.idle_timeout_ms == 7000
    env.get_config().set("table.exec.source.idle-timeout", "0")
    assert sources(env)[0].spec.strategy.idle_timeout_ms is None
    env.get_config().set("table.exec.source.idle-timeout", "soon")
    with pytest.raises(ConfigurationError, match=r"table\.exec\.source\.idle-timeout"):
        env.execute_sql("SELECT * FROM timed")


def test_statements_may_have_a_parallelism_of_their_own() -> None:
    env = environment(**{"parallelism.default": "3"})
    assert env._planner()[0].get_parallelism() == 3
    env.get_config().set("table.exec.resource.default-parallelism", "2")
    assert env._planner()[0].get_parallelism() == 2
    env.get_config().set("table.exec.resource.default-parallelism", "-1")
    assert env._planner()[0].get_parallelism() == 3


def test_an_insert_is_waited_for(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "copy.db")
    database.execute("CREATE TABLE copy (n INTEGER)")
    env = environment(**{"table.dml-sync": "true"})
    env.execute_sql(TIMED)
    env.execute_sql(f"""
        CREATE TABLE copy (n BIGINT) WITH (
            'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "copy.db"}', 'table-name' = 'copy')
    """)
    result = env.execute_sql("INSERT INTO copy SELECT n FROM timed")
    assert database.execute("SELECT COUNT(*) FROM copy").fetchone() == (3,)
    client = result.get_job_client()
    assert client is not None
    assert client.get_job_status().result().name == "FINISHED"


def test_options_of_a_query_may_be_forbidden() -> None:
    env = environment()
    env.execute_sql(TIMED)
    query = "SELECT n FROM timed /*+ OPTIONS('number-of-rows' = '5') */"
    with env.execute_sql(query).collect() as rows:
        assert len(list(rows)) == 5
    env.get_config().set("table.dynamic-table-options.enabled", "false")
    with pytest.raises(SqlValidationError, match=r"refused where table\.dynamic-table-options\.enabled"):
        env.execute_sql(query)
    with env.execute_sql("SELECT n FROM timed").collect() as rows:
        assert len(list(rows)) == 3


def test_other_dialects_are_refused() -> None:
    env = environment(**{"table.sql-dialect": "DEFAULT"})
    env.execute_sql("SELECT 1").collect().close()
    env.get_config().set("table.sql-dialect", "hive")
    with pytest.raises(ConfigurationError, match=r"table\.sql-dialect should be default, got 'hive'"):
        env.execute_sql("SELECT 1")
    env.execute_sql("SET 'table.sql-dialect' = 'default'")
    env.execute_sql("SELECT 1").collect().close()


def test_the_first_catalog_has_the_name_that_is_set() -> None:
    names = {"table.builtin-catalog-name": "mine", "table.builtin-database-name": "own"}
    settings = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(names))
    env = TableEnvironment.create(settings.build())
    assert (env.get_current_catalog(), env.get_current_database()) == ("mine", "own")


def test_changes_that_come_twice_count_once(tmp_path: Path) -> None:
    changes = [("c", None, 1), ("c", None, 1), ("u", 1, 2), ("u", 1, 2), ("d", 2, None), ("d", 2, None), ("c", None, 5)]
    lines = [
        json.dumps({"op": kind, **{side: None if v is None else {"k": "a", "v": v} for side, v in pairs}})
        for kind, before, after in changes
        for pairs in [(("before", before), ("after", after))]
    ]
    (tmp_path / "changes").write_text("".join(f"{line}\n" for line in lines))
    declared = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'debezium-json')"
    env = environment(**{"table.exec.source.cdc-events-duplicate": "true"})
    env.execute_sql(f"CREATE TABLE keyed (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED) {declared}")
    env.execute_sql(f"CREATE TABLE unkeyed (k STRING, v INT) {declared}")
    with env.execute_sql("SELECT k, v FROM keyed").collect() as rows:
        found = [f"{row.get_row_kind()}{row[1]}" for row in rows]
    assert found == ["+I1", "-U1", "+U2", "-D2", "+I5"]
    with pytest.raises(FiresteelError, match="has no key that tells: declare PRIMARY KEY"):
        env.execute_sql("SELECT k, v FROM unkeyed")
    env.get_config().set("table.exec.source.cdc-events-duplicate", "false")
    with env.execute_sql("SELECT k, v FROM unkeyed").collect() as rows:
        assert len(list(rows)) == 9


def lengths(tmp_path: Path, how: str, capfd: pytest.CaptureFixture[str], where: str = "TRUE") -> list[str]:
    """What is printed. Of the first two rows PyFlink 2.3 printed the same in all three ways."""
    (tmp_path / "rows").write_text("abc,abcd,ab\nx,y,z\n\u00df,\u00df\u20ac\u00df,\u00df\n")
    env = environment(**{"table.exec.sink.type-length-enforcer": how})
    columns = "(a CHAR(2), b VARCHAR(2), c VARCHAR(5))"
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    env.execute_sql(f"CREATE TABLE given {columns} WITH ({files})")
    env.execute_sql(f"CREATE TABLE console {columns} WITH ('connector' = 'print')")
    env.execute_sql(f"INSERT INTO console SELECT * FROM given WHERE {where}").wait()
    return capfd.readouterr().out.splitlines()


def test_values_get_the_length_of_their_column(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert lengths(tmp_path, "IGNORE", capfd)[:2] == ["+I[abc, abcd, ab]", "+I[x, y, z]"]
    found = lengths(tmp_path, "trim_pad", capfd)
    assert found == ["+I[ab, ab, ab]", "+I[x , y, z]", "+I[\u00df , \u00df\u20ac, \u00df]"]
    for where, said in (("c = 'ab'", "length 3"), ("c = 'z'", "length 1")):
        with pytest.raises(FiresteelError, match=rf"Column a of .*console is CHAR\(2\), and a value has the {said}\."):
            lengths(tmp_path, "ERROR", capfd, where)
    with pytest.raises(ConfigurationError, match=r"or ERROR .*, got 'TRIM'\."):
        lengths(tmp_path, "TRIM", capfd)


def test_bytes_get_the_length_of_their_column() -> None:
    for kind, expected in (
        (BinaryType(2), [b"a\0", b"ab", b"ab", None]),
        (VarBinaryType(2), [b"a", b"ab", b"ab", None]),
    ):
        batch = pa.record_batch({"x": pa.array([b"a", b"ab", b"abc", None], pa.binary())})
        assert SizedColumn(0, "x", "t", kind, False).evaluate(batch, 0).to_pylist() == expected
