"""Columns as programs of the Table API write them: all of them, their elements and fields, texts put together."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.types import Row
from firesteel.errors import ProgramError
from firesteel.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from firesteel.table.expressions import (
    CURRENT_ROW,
    UNBOUNDED_ROW,
    call,
    call_sql,
    col,
    concat,
    lit,
    null_of,
    range_,
    with_columns,
    without_columns,
)
from firesteel.table.sql import SqlValidationError
from firesteel.table.udf import udf
from firesteel.table.window import Over

FIELD = DataTypes.FIELD


@udf(result_type=DataTypes.STRING())
def joined(*values: Any) -> str:
    return "/".join(map(str, values))


@pytest.fixture
def table(env: TableEnvironment) -> Table:
    row = DataTypes.ROW([FIELD("x", DataTypes.INT()), FIELD("y", DataTypes.STRING())])
    columns = [
        FIELD("id", DataTypes.INT()),
        FIELD("s", DataTypes.STRING()),
        FIELD("l", DataTypes.ARRAY(DataTypes.INT())),
        FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
        FIELD("r", row),
        FIELD("k", DataTypes.BIGINT()),
        FIELD("b", DataTypes.BOOLEAN()),
    ]
    return env.from_elements([(1, "ab", [10, 20], {"a": 5}, Row(7, "q"), 3, True)], DataTypes.ROW(columns))


def rows_of(table: Table) -> list[list[Any]]:
    with table.execute().collect() as rows:
        return [list(row) for row in rows]


def names_of(table: Table) -> list[str]:
    return table.get_schema().get_field_names()


def test_all_columns(table: Table) -> None:
    few = table.select(col("id"), col("s"), col("k"))
    assert names_of(few.select(col("*"))) == ["id", "s", "k"]
    assert names_of(few.select(col("*"), col("id").alias("z"))) == ["id", "s", "k", "z"]
    assert rows_of(few.select(joined(col("*")))) == [["1/ab/3"]]
    assert rows_of(few.where(joined(col("*")) == "1/ab/3").select(col("id"))) == [[1]]
    # Of groups they are the keys.
    assert names_of(few.group_by(col("id"), col("s").upper_case.alias("u")).select(col("*"))) == ["id", "u"]
    assert rows_of(few.group_by(col("*")).select(col("k"))) == [[3]]
    assert few.select(call_sql("COUNT(*)").alias("n")).get_schema().get_field_names() == ["n"]
    with pytest.raises(ProgramError, match="One value is needed, got 3 columns"):
        few.select(col("*").alias("x"))


def test_choices_of_columns_among_arguments(table: Table) -> None:
    assert rows_of(table.select(joined(with_columns(range_("id", "s")), col("k")))) == [["1/ab/3"]]
    assert rows_of(table.select(joined(without_columns(range_("s", "b"))))) == [["1"]]
    assert rows_of(table.select(concat(with_columns(col("s")), "x"))) == [["abx"]]
    assert rows_of(table.select(with_columns(col("id")) + 1)) == [[2]]
    assert rows_of(table.group_by(with_columns(range_("id", "s"))).select(col("s"), col("k").sum)) == [["ab", 3]]


def test_elements_and_fields(table: Table) -> None:
    fields = [table.r.x, col("r").y, col("r").get(0), table.l[1], col("m")["a"], table.l[col("id")]]
    chosen = table.select(*(field.alias(f"c{index}") for index, field in enumerate(fields)))
    assert rows_of(chosen) == [[7, "q", 7, 10, 5, 10]]
    assert names_of(table.select(table.r.x, col("r").get(1), table.r.get("x") + 1)) == ["r$x", "r$_1", "_c2"]
    assert names_of(table.select(col("id").cast(DataTypes.STRING()), table.r.x.cast(DataTypes.BIGINT()))) == [
        "id-STRING",
        "r$x-BIGINT",
    ]
    with pytest.raises(SqlValidationError, match="no field 5: its fields are 0 to 1"):
        table.select(col("r").get(5))
    with pytest.raises(SqlValidationError, match="counted from 1, got 0"):
        table.select(table.l[0])
    with pytest.raises(ProgramError, match="takes the name or the place of a field"):
        col("r").get(col("s"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not iterable"):
        list(col("l"))


def test_flattened_rows(table: Table) -> None:
    flat = table.select(col("id"), col("r").flatten, col("s").flatten)
    assert names_of(flat) == ["id", "r$x", "r$y", "s"]
    assert rows_of(flat) == [[1, 7, "q", "ab"]]
    assert rows_of(table.select(joined(col("r").flatten))) == [["7/q"]]
    assert rows_of(table.group_by(col("r")).select(col("r").flatten)) == [[7, "q"]]
    with pytest.raises(ProgramError, match="One value is needed, got 2 columns"):
        table.select(col("r").flatten + 1)


def test_texts_put_together(table: Table) -> None:
    s = col("s")
    sums = [s + "x", "x" + s, s + col("k"), s + s, s + 1.5, s + col("b"), s + 1 + 2]
    chosen = table.select(*(each.alias(f"c{index}") for index, each in enumerate(sums)))
    assert rows_of(chosen) == [["abx", "xab", "ab3", "abab", "ab1.5", "abTRUE", "ab12"]]
    assert rows_of(table.select(s + null_of(DataTypes.STRING()))) == [[None]]
    for refused in (col("k") + s, s + col("l"), s - "x"):
        with pytest.raises(SqlValidationError):
            table.select(refused)


def test_sql_puts_no_texts_together(env: TableEnvironment) -> None:
    with pytest.raises(SqlValidationError):
        env.sql_query("SELECT s + 'x' FROM t")


def test_powers_and_aliases(table: Table) -> None:
    assert rows_of(table.select(2 ** col("k"), col("k") ** 2)) == [[8.0, 9.0]]
    assert names_of(table.select(table.id.alias("x").alias("y"))) == ["y"]
    assert rows_of(table.select(table.id.alias("x") + 1)) == [[2]]
    assert names_of(table.group_by(table.id.alias("x").alias("y")).select(col("y"))) == ["y"]


def test_sums_of_nothing_over_rows() -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("firesteel.master", "memory").set("parallelism.default", "1")
    row = DataTypes.ROW([FIELD("k", DataTypes.INT()), FIELD("d", DataTypes.INT())])
    table = env.from_elements([(1, None), (2, 5)], row)
    window = Over.order_by(col("k")).preceding(UNBOUNDED_ROW).following(CURRENT_ROW).alias("w")
    chosen = table.over_window(window).select(col("k"), col("d").sum0.over(col("w")), col("d").sum.over(col("w")))
    assert sorted(rows_of(chosen)) == [[1, 0, None], [2, 5, 5]]


@pytest.mark.parametrize("batch", [False, True])
def test_sums_of_nothing(batch: bool) -> None:
    mode = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    env = TableEnvironment.create(mode)
    env.get_config().set("firesteel.master", "memory").set("parallelism.default", "1")
    row = DataTypes.ROW([FIELD("k", DataTypes.INT()), FIELD("d", DataTypes.DECIMAL(5, 2))])
    table = env.from_elements([(1, None), (2, None)], row)
    grouped = table.group_by(col("k")).select(col("k"), col("k").sum0, call("SUM0", col("d")), col("d").sum)
    assert sorted(rows_of(grouped)) == [[1, 1, 0, None], [2, 2, 0, None]]
    assert names_of(table.select(col("k").sum0)) == ["EXPR$0"]
    # Of no rows at all a stream gives nothing yet.
    assert rows_of(table.where(col("k") > lit(5)).select(col("k").sum0)) == ([[0]] if batch else [])
