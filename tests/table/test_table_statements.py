"""CREATE TABLE LIKE and AS, ALTER, SHOW: what a table is afterwards."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError

BASE = """CREATE TABLE base (
  id BIGINT, at TIMESTAMP(3), twice AS id * 2, WATERMARK FOR at AS at - INTERVAL '1' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"""


def shown(env: TableEnvironment, name: str) -> str:
    with env.execute_sql(f"SHOW CREATE TABLE {name}").collect() as found:
        (row,) = found
    return str(row[0])


def columns(env: TableEnvironment, name: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(f"DESCRIBE {name}").collect() as found:
        return [tuple(row)[:2] for row in found]


@pytest.fixture
def base(env: TableEnvironment) -> TableEnvironment:
    env.execute_sql(BASE)
    return env


def test_like_takes_all_and_overwrites_options(base: TableEnvironment) -> None:
    base.execute_sql("CREATE TABLE other (more STRING) COMMENT 'o' WITH ('number-of-rows' = '5') LIKE base")
    assert shown(base, "other") == (
        "CREATE TABLE `default_catalog`.`default_database`.`other` (\n  `id` BIGINT NOT NULL,\n  `at` TIMESTAMP(3),\n"
        "  `twice` AS id * 2,\n  `more` VARCHAR(2147483647),\n"
        "  WATERMARK FOR `at` AS at - INTERVAL '1' SECOND,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\nCOMMENT 'o'\n"
        "WITH (\n  'connector' = 'datagen',\n  'number-of-rows' = '5'\n)\n"
    )


def test_like_leaves_out_what_is_excluded(base: TableEnvironment) -> None:
    base.execute_sql("CREATE TABLE other WITH ('connector' = 'print') LIKE base (EXCLUDING ALL)")
    assert columns(base, "other") == [("id", "BIGINT"), ("at", "TIMESTAMP(3)")]
    base.execute_sql("CREATE TABLE third (twice AS id + 1) LIKE base (OVERWRITING GENERATED EXCLUDING WATERMARKS)")
    assert "AS id + 1" in shown(base, "third")
    assert "WATERMARK" not in shown(base, "third")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CREATE TABLE o (id INT) LIKE base", "The other table has a column id, too"),
        ("CREATE TABLE o (twice AS 3) LIKE base", "OVERWRITING GENERATED replaces it"),
        ("CREATE TABLE o LIKE base (OVERWRITING CONSTRAINTS)", "OVERWRITING is for GENERATED"),
        ("CREATE TABLE o LIKE base (INCLUDING KEYS)", "LIKE has no KEYS"),
        ("CREATE TABLE o WITH ('connector' = 'x') LIKE base (INCLUDING ALL)", "OVERWRITING OPTIONS replaces it"),
        ("CREATE TABLE o LIKE bse", "There is no table bse. Did you mean base"),
        ("ALTER TABLE base DROP id", "id is used by the computed column twice"),
        ("ALTER TABLE base DROP at", "at is used by the watermark of at"),
        ("ALTER TABLE base ADD id INT", "There is a column id already"),
        ("ALTER TABLE base MODIFY nme INT", "There is no column nme"),
        ("ALTER TABLE base RENAME id TO key", "id is used by the computed column twice"),
        ("ALTER TABLE base ADD WATERMARK FOR at AS at", "The table has a watermark already: MODIFY it"),
        ("ALTER TABLE base RESET ('connector')", "cannot be without its connector"),
        ("ALTER TABLE base RENAME TO t", "There is a temporary view|There is a table"),
        ("ALTER VIEW base AS SELECT 1", "There is no view base"),
    ],
)
def test_what_cannot_be_done_is_told(base: TableEnvironment, statement: str, told: str) -> None:
    base.execute_sql("CREATE VIEW other_view AS SELECT 1 AS x")
    if statement.endswith("RENAME TO t"):
        base.execute_sql("CREATE TABLE t (x INT) WITH ('connector' = 'print')")
    with pytest.raises(SqlError, match=told):
        base.execute_sql(statement)


def test_alter_table(base: TableEnvironment) -> None:
    for statement in (
        "ADD (name STRING FIRST, n INT COMMENT 'why' AFTER id, m AS n + 1)",
        "RENAME name TO title",
        "MODIFY title VARCHAR(10) AFTER at",
        "DROP WATERMARK",
        "DROP (twice)",
        "MODIFY PRIMARY KEY (id, n) NOT ENFORCED",
        "SET ('rows-per-second' = '1')",
        "RESET ('number-of-rows')",
        "RENAME TO renamed",
    ):
        base.execute_sql(f"ALTER TABLE {'base'} {statement}")
    assert shown(base, "renamed") == (
        "CREATE TABLE `default_catalog`.`default_database`.`renamed` (\n  `id` BIGINT NOT NULL,\n"
        "  `n` INT NOT NULL COMMENT 'why',\n  `at` TIMESTAMP(3),\n  `title` VARCHAR(10),\n  `m` AS n + 1,\n"
        "  CONSTRAINT `PK_id_n` PRIMARY KEY (`id`, `n`) NOT ENFORCED\n)\n"
        "WITH (\n  'connector' = 'datagen',\n  'rows-per-second' = '1'\n)\n"
    )
    base.execute_sql("ALTER TABLE IF EXISTS base SET ('a' = 'b')")


def test_a_table_of_a_query(env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    env.execute_sql(f"CREATE TABLE made WITH ({options}) AS SELECT k AS id, UPPER(s) AS name FROM t WHERE k = 1").wait()
    assert columns(env, "made") == [("id", "INT"), ("name", "STRING")]
    with env.execute_sql("SELECT name FROM made").collect() as found:
        assert sorted(row[0] for row in found) == ["A", "C"]
    # A second time nothing is written.
    env.execute_sql(f"CREATE TABLE IF NOT EXISTS made WITH ({options}) AS SELECT k AS id, s AS name FROM t").wait()
    assert len(list(tmp_path.iterdir())) == 1


def test_views_databases_and_lists(base: TableEnvironment) -> None:
    base.execute_sql("CREATE VIEW v AS SELECT 1 AS x")
    base.execute_sql("ALTER VIEW v AS SELECT 2 AS y")
    base.execute_sql("ALTER VIEW v RENAME TO w")
    with base.execute_sql("SHOW CREATE VIEW w").collect() as found:
        assert next(iter(found))[0].endswith("AS SELECT 2 AS y\n")
    base.execute_sql("ALTER DATABASE default_database SET ('owner' = 'ada', 'api.token' = 'hunter2')")
    with base.execute_sql("DESCRIBE DATABASE EXTENDED default_database").collect() as found:
        described = [tuple(row) for row in found]
    assert described[2] == ("properties", "((api.token,******), (owner,ada))")
    with base.execute_sql("SHOW COLUMNS FROM base LIKE 't%'").collect() as found:
        assert [row[0] for row in found] == ["twice"]
    with base.execute_sql("SHOW TABLES LIKE 'b%'").collect() as found:
        assert [row[0] for row in found] == ["base"]


def test_passwords_are_never_shown(env: TableEnvironment) -> None:
    env.execute_sql("""CREATE TABLE secret (id INT) WITH (
        'connector' = 'jdbc', 'url' = 'jdbc:mysql://ada:hunter2@db/shop', 'table-name' = 't', 'password' = 'hunter2',
        'properties.sasl.jaas.config' = 'username="ada" password="hunter2"', 'web' = 'http://ada:hunter2@host/x'
    )""")
    assert "hunter2" not in shown(env, "secret")
    assert "'table-name' = 't'" in shown(env, "secret")
    found = env._catalogs.find(("secret",))
    assert "hunter2" not in repr(found)
    with pytest.raises(SqlError) as told:
        env.execute_sql("SELECT * FROM secret")
    assert "hunter2" not in str(told.value)


def test_jdbc_reads_writes_and_overwrites(env: TableEnvironment, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE src (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
    database.executemany("INSERT INTO src VALUES (?, ?, ?)", [(n, f"n{n % 3}", n * 1.5) for n in range(1, 11)])
    database.execute("CREATE TABLE totals (name TEXT PRIMARY KEY, n INTEGER, total REAL)")
    database.execute("CREATE TABLE counts (n INTEGER PRIMARY KEY, name TEXT)")
    database.execute("INSERT INTO totals VALUES ('n1', 99, 0)")
    database.execute("CREATE TABLE log (id INTEGER, name TEXT)")
    database.commit()
    where = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{path}'"
    parts = "".join(
        f", 'scan.partition.{key}' = '{value}'"
        for key, value in (("column", "id"), ("num", "3"), ("lower-bound", "1"), ("upper-bound", "9"))
    )
    for statement in (
        f"CREATE TABLE src (id BIGINT, name STRING, price DOUBLE) WITH ({where}, 'table-name' = 'src'{parts})",
        "CREATE TABLE totals (name STRING, n BIGINT, total DOUBLE, PRIMARY KEY (name) NOT ENFORCED) "
        f"WITH ({where}, 'table-name' = 'totals')",
        f"CREATE TABLE counts (n BIGINT, name STRING, PRIMARY KEY (n) NOT ENFORCED) "
        f"WITH ({where}, 'table-name' = 'counts')",
        f"CREATE TABLE log (id BIGINT, name STRING) WITH ({where}, 'table-name' = 'log')",
    ):
        env.execute_sql(statement)
    env.execute_sql("INSERT INTO totals SELECT name, COUNT(*), SUM(price) FROM src GROUP BY name").wait()
    assert sorted(database.execute("SELECT * FROM totals")) == [("n0", 3, 27.0), ("n1", 3, 18.0), ("n2", 3, 22.5)]
    # By another key than the query's: counts that are over go away.
    twice = env.create_statement_set()
    for _ in range(2):
        twice.add_insert_sql("INSERT INTO counts SELECT COUNT(*), name FROM src GROUP BY name")
    twice.execute().wait()
    assert [n for n, _ in database.execute("SELECT * FROM counts")] == [3]
    env.execute_sql("INSERT INTO log SELECT id, name FROM src WHERE id > 7").wait()
    assert sorted(database.execute("SELECT * FROM log")) == [(8, "n2"), (9, "n0")]
    env.execute_sql("CREATE TEMPORARY VIEW asked AS SELECT k, PROCTIME() AS now FROM t WHERE k IS NOT NULL")
    joined = "SELECT a.k, s.name FROM asked AS a JOIN src FOR SYSTEM_TIME AS OF a.now AS s ON a.k = s.id"
    with env.execute_sql(joined).collect() as found:
        assert sorted(tuple(row) for row in found) == [(1, "n1"), (1, "n1"), (2, "n2")]
    with pytest.raises(SqlError, match="takes insertions only"):
        env.execute_sql("INSERT INTO log SELECT COUNT(*), name FROM src GROUP BY name")


def test_null_does_not_go_into_a_column_that_is_not_null(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE sink (k INT NOT NULL, s STRING) WITH ('connector' = 'blackhole')")
    env.execute_sql("INSERT INTO sink SELECT k, s FROM t WHERE k IS NOT NULL").wait()
    with pytest.raises(Exception, match=r"Column k of .*sink is NOT NULL, and a row has NULL in it"):
        env.execute_sql("INSERT INTO sink SELECT k, s FROM t").wait()
