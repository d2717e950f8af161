"""Tables of files: all formats, partitions, metadata, errors of wrong options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from firesteel.errors import FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.expressions import col
from firesteel.table.sql import SqlError, SqlValidationError

COLUMNS = "id BIGINT, name STRING, price DECIMAL(10, 2), at TIMESTAMP(3)"
ROWS = """(1, 'a b', 1.50, TIMESTAMP '2024-01-01 10:00:00.5', 'Rome', DATE '2024-01-01'),
(2, CAST(NULL AS STRING), 2.5, TIMESTAMP '2024-01-01 10:00:00', 'Os/lo', DATE '2024-01-02'),
(3, 'c', 0.01, TIMESTAMP '2024-01-01 10:00:00', CAST(NULL AS STRING), DATE '2024-01-02'),
(4, 'd', 0.02, TIMESTAMP '2024-01-01 10:00:00', '', DATE '2024-01-02')"""


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder).parent): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_partitions_are_folders(env: TableEnvironment, tmp_path: Path, form: str) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = '{form}', 'csv.null-literal' = 'NULL'"
    env.execute_sql(f"CREATE TABLE o ({COLUMNS}, city STRING, d DATE) PARTITIONED BY (city, d) WITH ({options})")
    env.execute_sql(f"INSERT INTO o VALUES {ROWS}").wait()
    written = files(tmp_path)
    assert sorted(written) == [
        "city=Os%2Flo/d=2024-01-02",
        "city=Rome/d=2024-01-01",
        "city=__DEFAULT_PARTITION__/d=2024-01-02",
    ]
    if form == "csv":
        assert written["city=Rome/d=2024-01-01"] == b'1,"a b",1.5,"2024-01-01 10:00:00.5"\n'
        assert written["city=Os%2Flo/d=2024-01-02"].startswith(b"2,NULL,2.5,")
    found = rows(env, "SELECT id, name, CAST(price AS STRING), city, CAST(d AS STRING) FROM o")
    assert found == [
        (1, "a b", "1.50", "Rome", "2024-01-01"),
        (2, None, "2.50", "Os/lo", "2024-01-02"),
        (3, "c", "0.01", None, "2024-01-02"),
        (4, "d", "0.02", None, "2024-01-02"),
    ]
    assert [name for (name,) in rows(env, "SHOW PARTITIONS o")] == sorted(written)
    assert rows(env, "SHOW PARTITIONS o PARTITION (city = 'Os/lo')") == [("city=Os%2Flo/d=2024-01-02",)]
    of_day = rows(env, "SHOW PARTITIONS o PARTITION (d = DATE '2024-01-02')")
    assert [name for (name,) in of_day] == [name for name in sorted(written) if name.endswith("d=2024-01-02")]
    with pytest.raises(SqlValidationError, match="o is not partitioned by id"):
        env.execute_sql("SHOW PARTITIONS o PARTITION (id = 1)")


def test_a_partition_that_the_statement_names(env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    env.execute_sql(f"CREATE TABLE o (city STRING, id INT, n INT) PARTITIONED BY (city) WITH ({options})")
    env.execute_sql("INSERT INTO o PARTITION (city = 'Rome') SELECT k, 5 FROM t WHERE k = 2").wait()
    env.execute_sql("INSERT INTO o PARTITION (city = 'Oslo') (n) SELECT k FROM t WHERE k = 2").wait()
    assert rows(env, "SELECT city, id, n FROM o") == [("Oslo", None, 2), ("Rome", 2, 5)]
    with pytest.raises(SqlValidationError, match=r"not partitioned by ctiy\. Did you mean city"):
        env.execute_sql("INSERT INTO o PARTITION (ctiy = 'Rome') SELECT k, 5 FROM t")


def test_metadata_of_files(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n\n{"id": 2}\n')
    (tmp_path / ".hidden").write_text("no")
    env.execute_sql(f"""CREATE TABLE f (
        file STRING METADATA FROM 'file.name' VIRTUAL, id INT,
        size STRING METADATA FROM 'file.size' VIRTUAL, twice AS id * 2
    ) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')""")
    assert rows(env, "SELECT * FROM f") == [("a.json", 1, "21", 2), ("a.json", 2, "21", 4)]
    env.execute_sql(f"""CREATE TABLE g (id INT, x STRING METADATA FROM 'file.nam' VIRTUAL)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')""")
    with pytest.raises(SqlValidationError, match=r"no metadata 'file\.nam'\. Did you mean file\.name"):
        env.execute_sql("SELECT * FROM g")


def test_columns_of_parquet_are_found_by_name(env: TableEnvironment, tmp_path: Path) -> None:
    import pyarrow as pa

    moments = pa.array([1_704_103_200_123_456_789], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": moments, "other": [1], "n": pa.array([3], pa.int32())}), tmp_path / "x.parquet")
    env.execute_sql(f"""CREATE TABLE p (n BIGINT, missing STRING, at TIMESTAMP(3))
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')""")
    assert rows(env, "SELECT n, missing, CAST(at AS STRING) FROM p") == [(3, None, "2024-01-01 10:00:00.123")]


def test_bad_lines_name_their_file(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\ntwo,y\n")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    env.execute_sql(f"CREATE TABLE c (id INT, s STRING) WITH ({options})")
    with pytest.raises(Exception, match=r"a\.csv, line 2: column 'id' should be int32, got 'two'"):
        rows(env, "SELECT * FROM c")
    env.execute_sql("CREATE TABLE lenient WITH ('csv.ignore-parse-errors' = 'true') LIKE c")
    assert rows(env, "SELECT * FROM lenient") == [(1, "x"), (None, "y")]


def test_updates_are_refused_with_a_reason(env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    env.execute_sql(f"CREATE TABLE c (k INT, n BIGINT) WITH ({options})")
    with pytest.raises(SqlValidationError, match=r"takes insertions only .*changes or takes back rows"):
        env.execute_sql("INSERT INTO c SELECT k, COUNT(*) FROM t GROUP BY k")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("'format' = 'csv', 'pth' = 'x'", "no option 'pth'. Did you mean path"),
        ("'path' = '/tmp', 'format' = 'csv', 'csv.null-litteral' = 'x'", "Did you mean csv.null-literal"),
        ("'path' = '/tmp', 'format' = 'csv', 'pth' = 'x'", "timestamp-formatter, and those of its formats."),
        ("'format' = 'csv'", "needs the option 'path'"),
        ("'path' = '/tmp'", "the option 'format' is missing"),
        ("'path' = '/tmp', 'format' = 'jsn'", "no format 'jsn' here. Did you mean json"),
        (
            "'path' = '/tmp', 'format' = 'json', 'json.ignore-parse-errors' = 'yes'",
            "should be true or false, got 'yes'",
        ),
        ("'path' = '/tmp', 'format' = 'csv', 'csv.field-delimiter' = '||'", "should be a single character"),
        ("'path' = '/tmp', 'format' = 'csv', 'source.monitor-interval' = 'soon'", "should be a duration"),
        ("'path' = '/tmp', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO'", "one of SQL, ISO-8601"),
    ],
)
def test_wrong_options_are_told(env: TableEnvironment, options: str, told: str) -> None:
    env.execute_sql(f"CREATE TABLE c (k INT) WITH ('connector' = 'filesystem', {options})")
    with pytest.raises(SqlError, match=told):
        env.execute_sql("SELECT * FROM c")


RECORDED = json.loads((Path(__file__).parent / "files_by_pyflink.json").read_text())


def _declared(env: TableEnvironment, folder: Path, columns: str, form: str, options: dict[str, str]) -> None:
    given = "".join(f", '{key}' = '{value.replace(chr(39), chr(39) * 2)}'" for key, value in options.items())
    env.execute_sql(
        f"CREATE TABLE f ({columns}) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = '{form}'{given})"
    )


@pytest.mark.parametrize("case", RECORDED["read"], ids=lambda case: str(case["text"])[:40])
def test_files_are_read_as_pyflink_reads_them(case: dict[str, Any], env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(case["text"])
    _declared(env, tmp_path, case["columns"], case["format"], case["options"])
    with env.execute_sql("SELECT * FROM f").collect() as found:
        plain = (int, str, bool, list, dict, type(None))
        read = [[value if isinstance(value, plain) else str(value) for value in row] for row in found]
    assert read == case["rows"]


@pytest.mark.parametrize("case", RECORDED["written"]["cases"], ids=lambda case: f"{case['format']} {case['options']}")
def test_files_are_written_as_pyflink_writes_them(case: dict[str, Any], env: TableEnvironment, tmp_path: Path) -> None:
    _declared(env, tmp_path, RECORDED["written"]["columns"], case["format"], case["options"])
    env.execute_sql(f"INSERT INTO f VALUES {RECORDED['written']['values']}").wait()
    (path,) = tmp_path.iterdir()
    assert path.read_text().splitlines() == case["lines"]


def batch_environment() -> TableEnvironment:
    batch = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in (("firesteel.master", "memory"), ("parallelism.default", "1")):
        batch.get_config().set(key, value)
    return batch


def test_a_batch_query_writes_its_final_rows(tmp_path: Path) -> None:
    batch = batch_environment()
    for name in ("a", "b"):
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'csv'"
        batch.execute_sql(f"CREATE TABLE {name} (word STRING, n BIGINT) WITH ({options})")
    batch.execute_sql("INSERT INTO a VALUES ('x', 1), ('y', 2), ('x', 3)").wait()
    batch.execute_sql("INSERT INTO b SELECT word, SUM(n) FROM a GROUP BY word").wait()
    assert rows(batch, "SELECT * FROM b") == [("x", 4), ("y", 2)]


def test_overwriting_replaces_all_rows_of_a_table_and_may_read_it(tmp_path: Path) -> None:
    batch = batch_environment()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    batch.execute_sql(f"CREATE TABLE a (word STRING, n BIGINT) WITH ({options})")
    batch.execute_sql("INSERT INTO a VALUES ('x', 1), ('y', 2)").wait()
    batch.execute_sql("INSERT OVERWRITE a SELECT word, n + 10 FROM a").wait()
    assert rows(batch, "SELECT * FROM a") == [("x", 11), ("y", 12)]
    batch.from_path("a").where(col("n") > 11).execute_insert("a", overwrite=True).wait()
    assert rows(batch, "SELECT * FROM a") == [("y", 12)]
    with pytest.raises(FiresteelError):
        batch.execute_sql("INSERT OVERWRITE a SELECT word, 1 / (n - 12) FROM a").wait()
    # A job that fails takes nothing away.
    assert rows(batch, "SELECT * FROM a") == [("y", 12)]
    batch.execute_sql("INSERT OVERWRITE a SELECT * FROM a WHERE n < 0").wait()
    assert rows(batch, "SELECT * FROM a") == []


def test_overwriting_replaces_the_partitions_that_get_rows(tmp_path: Path) -> None:
    batch = batch_environment()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    batch.execute_sql(f"CREATE TABLE a (n BIGINT, city STRING, d INT) PARTITIONED BY (city, d) WITH ({options})")
    batch.execute_sql("INSERT INTO a VALUES (1, 'Rome', 1), (2, 'Rome', 2), (3, 'Oslo', 1)").wait()
    batch.execute_sql("INSERT OVERWRITE a VALUES (4, 'Rome', 1)").wait()
    assert rows(batch, "SELECT n, city, d FROM a") == [(2, "Rome", 2), (3, "Oslo", 1), (4, "Rome", 1)]
    batch.execute_sql("INSERT OVERWRITE a PARTITION (city = 'Rome') SELECT n * 10, d FROM a WHERE n = 4").wait()
    assert rows(batch, "SELECT n, city, d FROM a") == [(2, "Rome", 2), (3, "Oslo", 1), (40, "Rome", 1)]
    # A partition that is named as a whole is emptied by a query without rows; others are not.
    batch.execute_sql("INSERT OVERWRITE a PARTITION (city = 'Rome', d = 2) SELECT n FROM a WHERE n < 0").wait()
    batch.execute_sql("INSERT OVERWRITE a SELECT * FROM a WHERE n < 0").wait()
    assert rows(batch, "SELECT n, city, d FROM a") == [(3, "Oslo", 1), (40, "Rome", 1)]


def test_streams_and_other_tables_are_not_overwritten(env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    env.execute_sql(f"CREATE TABLE a (n INT) WITH ({options})")
    with pytest.raises(SqlValidationError, match="Use batch mode"):
        env.execute_sql("INSERT OVERWRITE a VALUES (1)")
    batch = batch_environment()
    batch.execute_sql("CREATE TABLE p (n INT) WITH ('connector' = 'print')")
    with pytest.raises(SqlValidationError, match="only tables of files"):
        batch.execute_sql("INSERT OVERWRITE p VALUES (1)")


PATTERNS = json.loads((Path(__file__).parent / "path_patterns_by_pyflink.json").read_text())


@pytest.mark.parametrize("case", PATTERNS["cases"], ids=lambda case: f"{case['path']} {case['pattern']}")
def test_patterns_of_paths_are_flinks(env: TableEnvironment, tmp_path: Path, case: dict[str, Any]) -> None:
    """What PyFlink 2.3 read: ``tools/record_path_patterns.py``."""
    for name in PATTERNS["files"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    path, pattern = (case[key].replace("FOLDER", str(tmp_path)) for key in ("path", "pattern"))
    env.execute_sql(
        f"CREATE TABLE found (x STRING) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', "
        f"'source.path.regex-pattern' = '{pattern}')"
    )
    if "refused" in case:
        with pytest.raises(
            SqlError, match=r"'source\.path\.regex-pattern' should be a regular expression .*, got '\('"
        ):
            env.execute_sql("SELECT x FROM found")
        return
    assert [name for (name,) in rows(env, "SELECT x FROM found")] == case["read"]
