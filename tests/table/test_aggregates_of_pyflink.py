"""PERCENTILE, GROUP_ID, CURRENT_DATABASE, CURRENT_WATERMARK; arrays, maps and rows in multisets and as keys of maps.
PyFlink 2.3 gave the same for these programs (``tools/record_queries.py``)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import environment
from recordedkit import final
from sparkkit import spark_env
from test_joins_of_pyflink import by_key, run, shown

from firesteel.common import Configuration, Row
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.expressions import array, col, current_database, current_watermark
from firesteel.table.sql import SqlError
from firesteel.table.udf import udf

HERE = Path(__file__).parent
AGGREGATES = json.loads((HERE / "aggregates_by_pyflink.json").read_text())
WATERMARKS = json.loads((HERE / "watermarks_by_pyflink.json").read_text())
PROGRAMS = {program["name"]: program for program in AGGREGATES["programs"]}
GIVEN = [name for name, program in PROGRAMS.items() if "rows" in program]


def filled(batch: bool = False, **settings: str) -> TableEnvironment:
    config = {"firesteel.master": "memory", "parallelism.default": "1", "table.local-time-zone": "UTC", **settings}
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(config))
    env = TableEnvironment.create((builder.in_batch_mode() if batch else builder.in_streaming_mode()).build())
    for statement in AGGREGATES["setup"]:
        env.execute_sql(statement)
    return env


@pytest.fixture(scope="module")
def stream() -> TableEnvironment:
    return filled()


@pytest.fixture(scope="module")
def batch() -> TableEnvironment:
    return filled(batch=True)


@pytest.mark.parametrize("name", GIVEN)
def test_changes_are_flinks(name: str, stream: TableEnvironment) -> None:
    program = PROGRAMS[name]
    columns, rows = run(stream, program["sql"])
    assert columns == program["columns"]
    if program["compare"] == "changelog":
        assert rows == program["rows"]
    elif program["compare"] == "by key":
        assert by_key(rows) == by_key(program["rows"])
    else:
        assert final(rows) == final(program["rows"])


def in_the_end(program: dict[str, Any]) -> Counter[str]:
    """An aggregate without groups has a row in batch mode also where nothing came."""
    return final(program["rows"]) or Counter([json.dumps([None])])


@pytest.mark.parametrize("name", GIVEN)
def test_batch_mode_gives_the_rows_that_are_left(name: str, batch: TableEnvironment) -> None:
    _, rows = run(batch, PROGRAMS[name]["sql"])
    assert final(rows) == in_the_end(PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in GIVEN])
@pytest.mark.parametrize("mode", ["stream", "batch"])
def test_what_flink_refuses_is_refused(name: str, mode: str, request: pytest.FixtureRequest) -> None:
    with pytest.raises(SqlError):
        run(request.getfixturevalue(mode), PROGRAMS[name]["sql"])


ON_SPARK = ["percentiles", "percentile with frequencies", "group_id of equal sets", "unnested multisets of rows"]


def test_on_spark() -> None:
    spark_env()
    env = filled(True, **{"firesteel.master": "local", "spark.sql.shuffle.partitions": "1"})
    for name in ON_SPARK:
        _, rows = run(env, PROGRAMS[name]["sql"])
        assert final(rows) == in_the_end(PROGRAMS[name]), name


@pytest.mark.parametrize("program", WATERMARKS["programs"], ids=lambda program: str(program["name"]))
def test_watermarks_are_flinks(program: dict[str, Any]) -> None:
    env = environment(**{"table.local-time-zone": "UTC"}, **WATERMARKS["settings"])
    for statement in WATERMARKS["setup"]:
        env.execute_sql(statement)
    columns, rows = run(env, program["sql"])
    assert columns == program["columns"]
    assert rows == program["rows"]


def test_watermarks_move_on_when_a_batch_of_rows_ends(env: TableEnvironment) -> None:
    # Else also after 200 ms, which seven rows take on a busy machine now and then.
    env.get_config().set("pipeline.auto-watermark-interval", "1 h")
    env.execute_sql(WATERMARKS["setup"][0])
    # So fast that all rows are there at once, however slow the machine is.
    at_once = "clicks /*+ OPTIONS('rows-per-second' = '100000000') */"
    assert run(env, f"SELECT CURRENT_WATERMARK(ts) FROM {at_once}")[1] == [["+I", None]] * 7


def test_watermarks_inside_choices_and_queries() -> None:
    env = environment(**WATERMARKS["settings"])
    env.execute_sql(WATERMARKS["setup"][0])
    chosen = "CASE WHEN n > 1 THEN CURRENT_WATERMARK(ts) ELSE TO_TIMESTAMP(CAST(10 / n AS STRING)) END"
    rows = run(env, f"SELECT w, {chosen} FROM (SELECT *, CURRENT_WATERMARK(ts) AS w FROM clicks)")[1]
    assert rows == [["+I", row[3], row[3]] for row in WATERMARKS["programs"][0]["rows"]]


def test_batch_mode_has_no_watermarks(batch: TableEnvironment) -> None:
    batch.execute_sql(WATERMARKS["setup"][0])
    with pytest.raises(SqlError, match="CURRENT_WATERMARK is for streams: batch mode has no watermarks"):
        run(batch, "SELECT CURRENT_WATERMARK(ts) FROM clicks")


def test_percentile_over_rows_in_batch_mode(batch: TableEnvironment) -> None:
    """As PyFlink gives it."""
    _, rows = run(batch, "SELECT k, PERCENTILE(n, 0.5) OVER (PARTITION BY k ORDER BY n) AS p FROM t")
    middles = [("a", 1.0), ("a", 1.5), ("a", 2.0), ("b", 3.0), ("b", 4.0), ("b", 5.0)]
    assert sorted(rows) == [["+I", key, middle] for key, middle in middles]


def test_expressions_of_the_table_api(stream: TableEnvironment) -> None:
    made = (
        stream.from_path("t")
        .group_by(col("k"))
        .select(
            col("k"),
            col("n").percentile(0.5).alias("middle"),
            col("n").percentile(array(0, 1), col("f")).alias("ends"),
            current_database().alias("db"),
        )
    )
    _, expected = run(
        stream, "SELECT k, PERCENTILE(n, 0.5), PERCENTILE(n, ARRAY[0, 1], f), CURRENT_DATABASE() FROM t GROUP BY k"
    )
    with made.execute().collect() as rows:
        assert [[str(row.get_row_kind()), *map(shown, row)] for row in rows] == expected
    stream.execute_sql(WATERMARKS["setup"][0].replace("clicks", "more_clicks"))
    table = stream.from_path("more_clicks").select(current_watermark(col("ts")))
    assert [str(kind) for kind in table.get_resolved_schema().get_column_data_types()] == ["TIMESTAMP(3)"]


def test_the_current_database_is_that_of_the_statement(env: TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE other")
    env.execute_sql("CREATE VIEW here AS SELECT CURRENT_DATABASE() AS d")
    env.use_database("other")
    # A view's, too, as in Flink: it is resolved where it is used.
    assert run(env, "SELECT CURRENT_DATABASE(), d FROM default_database.here")[1] == [["+I", "other", "other"]]


def test_programs_have_nested_keys_as_tuples_and_rows(stream: TableEnvironment) -> None:
    _, rows = run(stream, "SELECT COLLECT(a), COLLECT(r), COLLECT(m) FROM nested WHERE k = 'p'")
    arrays, pairs, maps = rows[-1][1:]
    assert arrays == {("u", "x"): 2, ("v", "x"): 1}
    assert pairs == {Row(1, "u"): 2, Row(2, "v"): 1}
    assert maps == {(("u", 1),): 2, (("v", 2),): 1}
    assert run(stream, "SELECT MAP[a, 1], MAP[ROW(1, a), 2] FROM nested WHERE k = 'p' AND a[1] = 'v'")[1] == [
        ["+I", {("v", "x"): 1}, {Row(1, ("v", "x")): 2}]
    ]


def test_functions_get_and_give_such_maps(env: TableEnvironment) -> None:
    kind = DataTypes.MAP(DataTypes.ARRAY(DataTypes.STRING()), DataTypes.INT())
    twice = udf(lambda found: {key: 2 * value for key, value in found.items()}, result_type=kind)
    env.create_temporary_function("twice", twice)
    _, rows = run(env, "SELECT twice(MAP[ARRAY['a', 'b'], 1, ARRAY['c'], 2])[ARRAY['a', 'b']]")
    assert rows == [["+I", 2]]


def test_values_with_nan_are_taken_back() -> None:
    env = filled()
    env.execute_sql(
        "CREATE TEMPORARY VIEW odd AS SELECT k, LAST_VALUE(v) AS v FROM (SELECT n, k, ARRAY[IF(n = 1, CAST('NaN' AS "
        "DOUBLE), 1.0E0)] AS v FROM t WHERE k = 'a') GROUP BY k"
    )
    _, rows = run(env, "SELECT COLLECT(v) FROM odd")
    assert rows[-1][1] == {(1.0,): 1}


def test_group_id_counts_equal_grouping_sets(stream: TableEnvironment) -> None:
    """Flink refuses sets that come so often."""
    _, rows = run(
        stream, "SELECT k, GROUP_ID() FROM t WHERE n = 1 GROUP BY GROUPING SETS ((k), (n, k), (k), (k), (k, n))"
    )
    assert sorted(rows) == [["+I", "a", 0], ["+I", "a", 0], ["+I", "a", 1], ["+I", "a", 1], ["+I", "a", 2]]
