"""Sources read the columns that a statement asks for, and no others: a wrong value in those goes unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from firesteel.connectors.table.formats.csv_format import CsvFormat
from firesteel.connectors.table.formats.json_format import JsonFormat
from firesteel.connectors.table.formats.message_format import BadMessage, MessageFormat
from firesteel.errors import JobExecutionError
from firesteel.table import TableEnvironment

ROWS = [(1, "a", "x", 10), (2, "b", "y", 20), (3, "a", "z", 30)]
"""``third`` is declared as a number."""


def written(folder: Path, form: str) -> None:
    folder.mkdir()
    if form == "csv":
        (folder / "part").write_text("".join(f"{a},{b},{c},{d}\n" for a, b, c, d in ROWS))
    elif form == "json":
        lines = [f'{{"n": {a}, "second": "{b}", "third": "{c}", "at": {d}}}\n' for a, b, c, d in ROWS]
        (folder / "part").write_text("".join(lines))
    else:
        n, second, third, at = zip(*ROWS, strict=True)
        table = pa.table(
            {"n": pa.array(n, pa.int64()), "second": second, "third": third, "at": pa.array(at, pa.int64())}
        )
        write = pyarrow.parquet.write_table if form == "parquet" else pyarrow.orc.write_table
        write(table, str(folder / "part"))


def declare(env: TableEnvironment, folder: Path, form: str, name: str = "t1") -> None:
    env.execute_sql(f"""
        CREATE TABLE {name} (
            n BIGINT, second STRING, third BIGINT, `at` BIGINT, file STRING METADATA FROM 'file.name' VIRTUAL,
            moment AS TO_TIMESTAMP_LTZ(`at`, 0), WATERMARK FOR moment AS moment
        ) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = '{form}')
    """)


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


FORMATS = ["csv", "json", "parquet", "orc"]


@pytest.mark.parametrize("form", FORMATS)
def test_only_columns_that_are_asked_for_are_read(form: str, env: TableEnvironment, tmp_path: Path) -> None:
    written(tmp_path / "t", form)
    declare(env, tmp_path / "t", form)
    assert rows(env, "SELECT n, second FROM t1") == [(1, "a"), (2, "b"), (3, "a")]
    assert rows(env, "SELECT second FROM t1 WHERE n > 1") == [("b",), ("a",)]
    assert rows(env, "SELECT COUNT(*) FROM t1")[-1] == (3,)
    assert rows(env, "SELECT file FROM t1") == [("part",)] * 3
    assert rows(env, "SELECT n FROM t1 AS o WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.n = o.n + 1)") == [(1,), (2,)]
    for query in ("SELECT third FROM t1", "SELECT n FROM t1 WHERE third > 0", "SELECT * FROM t1"):
        with pytest.raises(JobExecutionError, match="third"):
            rows(env, query)


@pytest.mark.parametrize("form", FORMATS)
def test_the_time_of_watermarks_is_read_though_nobody_selects_it(
    form: str, env: TableEnvironment, tmp_path: Path
) -> None:
    written(tmp_path / "t", form)
    declare(env, tmp_path / "t", form)
    windows = "TABLE(TUMBLE(TABLE t1, DESCRIPTOR(moment), INTERVAL '15' SECOND))"
    assert rows(env, f"SELECT COUNT(*) FROM {windows} GROUP BY window_start, window_end") == [(1,), (1,), (1,)]
    assert rows(env, "SELECT n FROM t1 WHERE CURRENT_WATERMARK(moment) IS NULL") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("form", FORMATS)
def test_statements_of_one_job_each_get_their_columns(form: str, env: TableEnvironment, tmp_path: Path) -> None:
    written(tmp_path / "t", form)
    declare(env, tmp_path / "t", form)
    for name, kind in (("numbers", "n BIGINT"), ("texts", "second STRING")):
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'csv'"
        env.execute_sql(f"CREATE TABLE {name} ({kind}) WITH ({options})")
    statements = env.create_statement_set()
    statements.add_insert_sql("INSERT INTO numbers SELECT n FROM t1")
    statements.add_insert_sql("INSERT INTO texts SELECT second FROM t1 WHERE `at` > 10")
    statements.execute().wait()
    assert sorted(rows(env, "SELECT * FROM numbers")) == [(1,), (2,), (3,)]
    assert sorted(rows(env, "SELECT * FROM texts")) == [("a",), ("b",)]


SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64())), ("c", pa.string())])
MESSAGES = {
    JsonFormat: [b'{"a": 1, "b": [1], "c": "x"}', b'{"a": "no", "b": {"d": 1}, "c": "y"}', None, b'{"b": 2}'],
    CsvFormat: [b"1,1;2,x", b"no,no,y", None, b',no,""'],
}


@pytest.mark.parametrize("form", [JsonFormat(SCHEMA), CsvFormat(SCHEMA)], ids=["json", "csv"])
def test_messages(form: MessageFormat) -> None:
    narrow = form.narrowed({"c"})
    found = narrow.decode(MESSAGES[type(form)])
    assert found.batch.schema == SCHEMA
    last = None if isinstance(form, JsonFormat) else ""
    assert found.batch.to_pydict() == {"a": [None] * 3, "b": [None] * 3, "c": ["x", "y", last]}
    assert found.origins is not None
    assert found.origins.tolist() == [0, 1, 3]
    with pytest.raises(BadMessage):
        form.decode(MESSAGES[type(form)])
    # Without any column there are rows all the same.
    assert form.narrowed(set()).decode(MESSAGES[type(form)][:1]).batch.num_rows == 1


def test_missing_fields_that_nobody_asks_for_are_no_mistake(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "part").write_text('{"n": 1}\n')
    options = (
        f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json', 'json.fail-on-missing-field' = 'true'"
    )
    env.execute_sql(f"CREATE TABLE t2 (n INT, s STRING) WITH ({options})")
    assert rows(env, "SELECT n FROM t2") == [(1,)]
    with pytest.raises(JobExecutionError, match="'s'"):
        rows(env, "SELECT s FROM t2")
