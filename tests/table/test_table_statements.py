"""CREATE TABLE LIKE and AS, ALTER, SHOW: what a table is afterwards."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.errors import ConfigurationError
from firesteel.table import TableEnvironment
from firesteel.table.catalog import CatalogDescriptor
from firesteel.table.client.submitted_script import SessionScript
from firesteel.table.expression_layout import quoted_columns
from firesteel.table.sql import SqlError
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.sql.parser import parse

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
        "  `twice` AS `id` * 2,\n  `more` VARCHAR(2147483647),\n"
        "  WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\nCOMMENT 'o'\n"
        "WITH (\n  'connector' = 'datagen',\n  'number-of-rows' = '5'\n)\n"
    )


def test_types_are_shown_without_their_short_names(env: TableEnvironment) -> None:
    env.execute_sql("""
        CREATE TABLE parcels (
            code VARCHAR, box BYTES NOT NULL, tags ARRAY<STRING>, sizes MAP<STRING, TIMESTAMP_LTZ(3)>,
            seen MULTISET<BYTES>, sender ROW<`full ``name` STRING NOT NULL, age INT>, sent TIMESTAMP_LTZ(0) NOT NULL
        ) WITH ('connector' = 'datagen')
    """)
    lines = [line.strip().rstrip(",") for line in shown(env, "parcels").splitlines()[1:8]]
    assert lines == [
        "`code` VARCHAR(2147483647)",
        "`box` VARBINARY(2147483647) NOT NULL",
        "`tags` ARRAY<VARCHAR(2147483647)>",
        "`sizes` MAP<VARCHAR(2147483647), TIMESTAMP(3) WITH LOCAL TIME ZONE>",
        "`seen` MULTISET<VARBINARY(2147483647)>",
        "`sender` ROW<`full ``name` VARCHAR(2147483647) NOT NULL, `age` INT>",
        "`sent` TIMESTAMP(0) WITH LOCAL TIME ZONE NOT NULL",
    ]
    again = shown(env, "parcels")
    env.execute_sql("DROP TABLE parcels")
    env.execute_sql(again)
    assert shown(env, "parcels") == again


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("upper ( name )", "UPPER(`name`)"),
        ("case when id > 1 then 'One' else name end", "CASE WHEN `id` > 1 THEN 'One' ELSE `name` END"),
        ("id is not null and not id in (1,2)", "`id` IS NOT NULL AND NOT `id` IN (1, 2)"),
        ("extract(year from at)", "EXTRACT(YEAR FROM `at`)"),
        ("at - interval '2' hours", "`at` - INTERVAL '2' HOUR"),
        ("tools.clean_up(name)", "tools.`clean_up`(`name`)"),
    ],
)
def test_expressions_are_shown_as_flink_shows_them(written: str, printed: str) -> None:
    assert quoted_columns(written, ["id", "name", "at"]) == printed


def test_built_in_functions_are_described(env: TableEnvironment) -> None:
    for name in ("upper", "SUM", "rank"):
        with env.execute_sql(f"DESCRIBE FUNCTION `{name}`").collect() as found:
            assert [tuple(row) for row in found] == [("is system function", "true"), ("is temporary", "false")]
    with env.execute_sql("SHOW FUNCTIONS LIKE 'su%'").collect() as found:
        assert ["sum"] in [list(row) for row in found]


def test_like_leaves_out_what_is_excluded(base: TableEnvironment) -> None:
    base.execute_sql("CREATE TABLE other WITH ('connector' = 'print') LIKE base (EXCLUDING ALL)")
    assert columns(base, "other") == [("id", "BIGINT"), ("at", "TIMESTAMP(3)")]
    base.execute_sql("CREATE TABLE third (twice AS id + 1) LIKE base (OVERWRITING GENERATED EXCLUDING WATERMARKS)")
    assert "AS `id` + 1" in shown(base, "third")
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
        "  `n` INT NOT NULL COMMENT 'why',\n  `at` TIMESTAMP(3),\n  `title` VARCHAR(10),\n  `m` AS `n` + 1,\n"
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


def test_a_table_of_a_query_with_columns_of_its_own(env: TableEnvironment, capsys: Any) -> None:
    query = "AS SELECT s, k FROM t WHERE k = 2"
    env.execute_sql(f"CREATE TABLE more (n2 DOUBLE, s STRING, e AS n2 * 2) WITH ('connector' = 'print') {query}").wait()
    assert columns(env, "more") == [("n2", "DOUBLE"), ("e", "DOUBLE"), ("s", "STRING"), ("k", "INT")]
    env.execute_sql(f"CREATE TABLE wide (k BIGINT) WITH ('connector' = 'print') {query}").wait()
    assert columns(env, "wide") == [("s", "STRING"), ("k", "BIGINT")]
    env.execute_sql(f"CREATE TABLE turned (k, s) WITH ('connector' = 'print') {query}").wait()
    assert columns(env, "turned") == [("k", "INT"), ("s", "STRING")]
    assert capsys.readouterr().out.splitlines() == ["+I[null, b, 2]", "+I[b, 2]", "+I[2, b]"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("(k, x)", "The query has no column x."),
        ("(k)", "All columns of the query have to be named, s is missing."),
        ("(k, k)", "Two columns are called k."),
        ("(x INT NOT NULL)", "The query has no column x, which is NOT NULL"),
    ],
)
def test_columns_that_a_query_does_not_have(env: TableEnvironment, columns: str, told: str) -> None:
    with pytest.raises(SqlError, match=told):
        env.execute_sql(f"CREATE TABLE made {columns} WITH ('connector' = 'print') AS SELECT s, k FROM t")
    with pytest.raises(SqlError, match="Columns without types need a query"):
        env.execute_sql("CREATE TABLE made (k, s) WITH ('connector' = 'print')")


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
        twice.add_insert_sql(
            "INSERT INTO counts SELECT COUNT(*), name FROM src GROUP BY name ON CONFLICT DO DEDUPLICATE"
        )
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


def test_a_column_that_is_named_twice(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE twice (a INT, b INT) WITH ('connector' = 'blackhole')")
    with pytest.raises(SqlError, match=r"Column a gets two values. \(line 1, column 20\)"):
        env.execute_sql("INSERT INTO twice (a, a) VALUES (1, 2)")


def test_a_plan_is_printed_as_it_is(env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    result = env.execute_sql("EXPLAIN SELECT 1")
    result.print()
    with result.collect() as rows:
        assert capsys.readouterr().out == f"{next(rows)[0]}\n"


def test_columns_are_printed_as_wide_as_asked(env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    env.get_config().set("table.display.max-column-width", "12")
    env.execute_sql("SELECT 'abcdefghijklmnopqrstuvwxyz' AS s").print()
    assert "\n| +I | abcdefghi... |\n" in capsys.readouterr().out


def test_rows_with_null_are_dropped_where_the_settings_say_so(capsys: Any) -> None:
    for mode in ("streaming", "batch"):
        settings = Configuration.from_dict({"firesteel.master": "memory", "execution.runtime-mode": mode})
        env = TableEnvironment.create(settings)
        env.execute_sql("CREATE TABLE sink (k INT NOT NULL, s STRING NOT NULL, v INT) WITH ('connector' = 'print')")
        insert = (
            "INSERT INTO sink VALUES (1, 'a', CAST(NULL AS INT)), (CAST(NULL AS INT), 'b', 2), "
            "(3, CAST(NULL AS STRING), 3), (4, 'd', 4)"
        )
        env.execute_sql("SET 'table.exec.sink.not-null-enforcer' = 'DROP'")
        env.execute_sql(insert).wait()
        assert capsys.readouterr().out.splitlines() == ["+I[1, a, null]", "+I[4, d, 4]"]
        env.execute_sql("SET 'table.exec.sink.not-null-enforcer' = 'ERROR'")
        with pytest.raises(Exception, match="is NOT NULL, and a row has NULL in it"):
            env.execute_sql(insert).wait()
        env.execute_sql("SET 'table.exec.sink.not-null-enforcer' = 'IGNORE'")
        with pytest.raises(ConfigurationError, match=r"ERROR .* or DROP .*, got 'IGNORE'"):
            env.execute_sql(insert)


def test_describe_shows_expressions_and_types_as_flink_does(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE ty (a DEC(10,2), b NUMERIC(5), c DOUBLE PRECISION, d INT ARRAY, e INT MULTISET, f DEC, "
        "g INT NOT NULL ARRAY, h INT ARRAY ARRAY NOT NULL, up AS UPPER(z), z STRING, ts TIMESTAMP(3), "
        "nn AS d[1]+1, half AS -a*2, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'print')"
    )
    for statement in ("DESCRIBE ty", "SHOW COLUMNS FROM ty"):
        with env.execute_sql(statement).collect() as found:
            shown = {row[0]: (row[1], row[4], row[5]) for row in found}
        assert shown == {
            "a": ("DECIMAL(10, 2)", None, None),
            "b": ("DECIMAL(5, 0)", None, None),
            "c": ("DOUBLE", None, None),
            "d": ("ARRAY<INT>", None, None),
            "e": ("MULTISET<INT>", None, None),
            "f": ("DECIMAL(10, 0)", None, None),
            "g": ("ARRAY<INT NOT NULL>", None, None),
            "h": ("ARRAY<ARRAY<INT>>", None, None),
            "up": ("STRING", "AS UPPER(`z`)", None),
            "z": ("STRING", None, None),
            "ts": ("TIMESTAMP(3) *ROWTIME*", None, "`ts` - INTERVAL '5' SECOND"),
            "nn": ("INT", "AS `d`[1] + 1", None),
            "half": ("DECIMAL(21, 2)", "AS -`a` * 2", None),
        }


def test_functions_are_altered_and_described(env: TableEnvironment) -> None:
    def described(name: str) -> list[tuple[Any, ...]]:
        with env.execute_sql(f"DESCRIBE FUNCTION {name}").collect() as found:
            return [tuple(row) for row in found]

    env.execute_sql("CREATE FUNCTION f AS 'user_function_module.shout' LANGUAGE PYTHON")
    env.execute_sql("ALTER FUNCTION f AS 'user_function_module.letters' LANGUAGE PYTHON")
    env.execute_sql("ALTER FUNCTION IF EXISTS g AS 'user_function_module.letters' LANGUAGE PYTHON")
    env.execute_sql("CREATE TEMPORARY FUNCTION h AS 'user_function_module.shout' LANGUAGE PYTHON")
    assert described("f") == [
        ("is system function", "false"),
        ("is temporary", "false"),
        ("class name", "user_function_module.letters"),
        ("function language", "PYTHON"),
        ("resource uris", "[]"),
    ]
    # A job of the session has the same function.
    script, altered = SessionScript(), "ALTER FUNCTION f AS 'm.f' LANGUAGE PYTHON"
    script.note(parse(altered), altered)
    assert script.texts() == [altered]
    assert described("h")[1] == ("is temporary", "true")
    assert described("`upper`") == [("is system function", "true"), ("is temporary", "false")]
    for statement, told in (
        ("ALTER FUNCTION g AS 'm.f' LANGUAGE PYTHON", r"There is no function .*\.g\."),
        ("ALTER FUNCTION h AS 'm.f' LANGUAGE PYTHON", "It is temporary"),
        ("ALTER TEMPORARY FUNCTION h AS 'm.f' LANGUAGE PYTHON", "Temporary functions are not altered"),
        ("DESCRIBE FUNCTION nope", "There is no function nope"),
    ):
        with pytest.raises(SqlError, match=told):
            env.execute_sql(statement)


def test_catalogs_and_modules_are_shown(env: TableEnvironment) -> None:
    def first(statement: str) -> tuple[Any, ...]:
        with env.execute_sql(statement).collect() as found:
            return tuple(next(found))

    env.execute_sql("CREATE CATALOG c COMMENT 'hey' WITH ('type' = 'generic_in_memory', 'default-database' = 'dd')")
    expected = (
        "CREATE CATALOG `c`\nCOMMENT 'hey'\nWITH (\n  'default-database' = 'dd',\n  'type' = 'generic_in_memory'\n)\n"
    )
    assert first("SHOW CREATE CATALOG c") == (expected,)
    assert first("SHOW FULL MODULES") == ("core", True)
    env.execute_sql("USE MODULES core")
    for statement, told in (
        ("SHOW CREATE CATALOG nope", "There is no catalog nope"),
        ("SHOW CREATE CATALOG default_catalog", "default_catalog was not made by CREATE CATALOG"),
        ("USE MODULES core, hive", "there is core alone, got hive"),
        ("ALTER CATALOG c SET ('default-databse' = 'x')", "no option 'default-databse'. Did you mean default-database"),
        ("ALTER CATALOG c SET ('type' = 'jdbc')", "A catalog keeps its 'type'"),
        ("ALTER CATALOG c RENAME TO d", "Expected SET or RESET or COMMENT, got RENAME"),
        ("ALTER CATALOG cc COMMENT 'x'", "There is no catalog cc"),
        ("CREATE CATALOG d WITH ('type' = 'jdbc')", "a catalog with 'jdbc'"),
        ("CREATE CATALOG d WITH ('type' = 'generic_in_memory', 'k' = 'v')", "no option 'k'"),
    ):
        with pytest.raises(SqlError, match=told):
            env.execute_sql(statement)


def test_the_default_database_of_a_catalog_changes(env: TableEnvironment) -> None:
    options = {"type": "generic_in_memory", "default-database": "first"}
    env.create_catalog("c", CatalogDescriptor.of("c", Configuration.from_dict(options), "hey"))
    env.execute_sql("ALTER CATALOG c SET ('default-database' = 'second')")
    env.use_catalog("c")
    assert (env.get_current_database(), env.list_databases()) == ("second", ["first", "second"])
    env.execute_sql("ALTER CATALOG c RESET ('default-database')")
    env.use_catalog("c")
    assert env.get_current_database() == "default"
    with env.execute_sql("DESCRIBE CATALOG EXTENDED c").collect() as rows:
        assert [tuple(row) for row in rows] == [("name", "c"), ("type", "generic_in_memory"), ("comment", "hey")]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("LOAD MODULE hive WITH ('a' = 'b')", "LOAD: modules are Java's"),
        ("ADD JAR 'x.jar'", "ADD JAR: jars hold Java, and Firesteel runs Python"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", "ANALYZE TABLE: queries are planned without statistics"),
        ("TRUNCATE TABLE t", "TRUNCATE TABLE: no connector empties a table"),
        ("DELETE FROM t WHERE k = 1", "DELETE: no connector changes rows in place"),
        ("UPDATE t SET k = 1", "UPDATE: no connector changes rows in place"),
        ("CALL sys.compact('t')", "CALL: procedures belong to external catalogs"),
        ("SHOW PROCEDURES LIKE 'x%'", "SHOW PROCEDURES: procedures belong to external catalogs"),
        ("SHOW JOBS", "SHOW JOBS: an environment does not list jobs"),
        ("STOP JOB 'x' WITH SAVEPOINT", "STOP JOB: an environment does not list jobs"),
        ("DESCRIBE JOB 'x'", "DESCRIBE JOB: an environment does not list jobs"),
        ("COMPILE PLAN 'p' FOR SELECT 1", "COMPILE: a job is found again by its queries"),
        ("EXECUTE PLAN 'p'", "EXECUTE PLAN: a job is found again by its queries"),
        ("CREATE MODEL m INPUT (a INT) OUTPUT (b INT)", "CREATE MODEL: there is no provider of models"),
        ("DESCRIBE MODEL m", "DESCRIBE MODEL: there is no provider of models"),
        (
            "CREATE OR ALTER MATERIALIZED TABLE m AS SELECT 1",
            "CREATE OR ALTER MATERIALIZED TABLE: nothing would refresh",
        ),
        ("ALTER MATERIALIZED TABLE m SUSPEND", "ALTER MATERIALIZED TABLE: nothing would refresh it"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "CREATE OR REPLACE TABLE: drop the table first"),
        ("CREATE CONNECTION c", "CREATE CONNECTION: options of connections stand in the WITH"),
    ],
)
def test_what_has_no_meaning_here_is_refused_with_its_reason(env: TableEnvironment, statement: str, told: str) -> None:
    with pytest.raises(NotSupportedError, match=f"^Not supported: {told}"):
        env.execute_sql(f"{statement};")


def test_a_table_may_be_called_model(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE model (job INT) WITH ('connector' = 'print')")
    assert columns(env, "model") == [("job", "INT")]


def test_a_set_of_inserts_is_explained(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE sink (k INT, s STRING) WITH ('connector' = 'print')")
    plan = env.explain_sql("EXPLAIN STATEMENT SET BEGIN INSERT INTO sink SELECT k, s FROM t; END")
    assert plan == env.explain_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO sink SELECT k, s FROM t; END")
    with env.execute_sql("EXPLAIN STATEMENT SET BEGIN INSERT INTO sink SELECT k, s FROM t; END;").collect() as found:
        assert next(found)[0] == plan
