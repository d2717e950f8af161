"""Smaller parts of the Table API, with PyFlink's names, numbers and refusals."""

from __future__ import annotations

import array
import datetime
import json
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from firesteel.common.types import Row
from firesteel.errors import ProgramError
from firesteel.table import DataTypes, ExplainDetail, ResultKind, SqlDialect, Table, TableEnvironment
from firesteel.table.catalog import ObjectPath
from firesteel.table.expression import TimeIntervalUnit, TimePointUnit
from firesteel.table.expressions import (
    and_,
    call,
    col,
    concat_ws,
    current_date,
    if_then_else,
    lit,
    map_,
    not_,
    null_of,
    or_,
    row,
    temporal_overlaps,
    timestamp_diff,
    to_timestamp_ltz,
)
from firesteel.table.sql import SqlValidationError
from firesteel.table.types import RowField, RowType
from firesteel.table.udf import udf


def values(table: Table) -> list[Any]:
    with table.execute().collect() as rows:
        (found,) = [list(each) for each in rows]
    return found


@pytest.fixture
def one(env: TableEnvironment) -> Table:
    return env.from_elements([(1, "a")], ["id", "s"])


def test_row_types_grow() -> None:
    kind = DataTypes.ROW().add("a", DataTypes.INT()).add(RowField("b", DataTypes.STRING()))
    assert isinstance(kind, RowType)
    assert kind.names == ["a", "b"]
    assert kind["b"] == kind[1] == RowField("b", DataTypes.STRING())
    assert kind[:1].names == ["a"]
    with pytest.raises(KeyError, match="No RowField named c"):
        kind["c"]
    with pytest.raises(TypeError, match="have names and places"):
        kind[1.5]  # type: ignore[index]
    with pytest.raises(ValueError, match="takes a RowField, or a name and its DataType"):
        kind.add("c")


def test_all_names_of_catalogs() -> None:
    found: dict[str, Any] = {}
    exec("from firesteel.table.catalog import *", found)
    assert {"Catalog", "CatalogBaseTable", "CatalogDatabase", "ObjectPath", "ResolvedSchema", "Column"} <= set(found)


@pytest.mark.parametrize(("code", "kind"), [("i", "BIGINT"), ("d", "DOUBLE")])
def test_arrays_of_python(env: TableEnvironment, code: str, kind: str) -> None:
    table = env.from_elements([(array.array(code, [1, 2]),)], ["a"])
    assert str(table.get_schema().get_field_data_type("a")) == f"ARRAY<{kind}>"
    assert values(table) == [[1, 2]]


def test_times_of_day_and_periods(one: Table) -> None:
    nine, ten = lit("9:00:00").to_time, lit("10:00:00").to_time
    chosen = one.select(
        lit("10:11:12").to_time.alias("a"),
        temporal_overlaps(nine, ten, lit("10:15:00").to_time, lit(3).hours).alias("b"),
        temporal_overlaps(nine, ten, lit("9:30:00").to_time, lit(3).hours).alias("c"),
        temporal_overlaps(ten, nine, lit("9:30:00").to_time, lit("9:40:00").to_time).alias("d"),
    )
    assert values(chosen) == [datetime.time(10, 11, 12), False, True, True]


@pytest.mark.parametrize(("unit", "expected"), [("YEAR", 1), ("MONTH", 14), ("QUARTER", 4), ("WEEK", 61), ("DAY", 429)])
def test_units_between_times(one: Table, unit: str, expected: int) -> None:
    begin, end = lit("2020-01-01 00:00:00").to_timestamp, lit("2021-03-05 10:11:12").to_timestamp
    assert values(one.select(timestamp_diff(TimePointUnit[unit], begin, end))) == [expected]


def test_the_python_of_functions(env: TableEnvironment) -> None:
    config = env.get_config()
    config.set_python_executable(sys.executable)
    assert config.get_python_executable() == sys.executable
    with pytest.raises(ProgramError, match="workers run with"):
        config.set_python_executable("/no/python")


def test_pandas_functions_of_rows_with_rows(env: TableEnvironment) -> None:
    FIELD, INT = DataTypes.FIELD, DataTypes.INT()
    kind = DataTypes.ROW([FIELD("a", INT), FIELD("b", DataTypes.ROW([FIELD("c", INT), FIELD("d", INT)]))])
    table = env.from_elements([(1, Row(2, 3))], kind)
    result = DataTypes.ROW([FIELD("x", INT), FIELD("y", INT)])

    @udf(result_type=result, func_type="pandas")
    def sums(rows: pd.DataFrame) -> pd.DataFrame:
        assert list(rows.columns) == ["a", "c", "d"]
        return pd.concat([rows.a, rows.c + rows.d], axis=1)

    assert values(table.map(sums)) == [1, 5]


def test_what_selects_nothing(one: Table) -> None:
    with pytest.raises(ProgramError, match="takes one column at least, got none"):
        one.select()
    with pytest.raises(ProgramError, match="takes one key or aggregate at least"):
        one.group_by(col("id")).select()
    for call_of, what in ((one.fetch, "fetch"), (one.limit, "fetch"), (one.offset, "offset")):
        with pytest.raises(ProgramError, match=f"{what} is a number of rows, 0 or more, got -1"):
            call_of(-1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2020-01-01", DataTypes.DATE().not_null()),
        ("1", DataTypes.INT()),
        (1.5, DataTypes.INT()),
        (2**40, DataTypes.INT()),
        (300, DataTypes.TINYINT()),
        (True, DataTypes.INT()),
        (1, DataTypes.BOOLEAN()),
        (1, DataTypes.STRING()),
        (b"a", DataTypes.STRING()),
        ("a", DataTypes.BYTES()),
        (datetime.datetime(2020, 1, 1), DataTypes.DATE()),
        (1, DataTypes.DATE()),
        (1.5, DataTypes.DECIMAL(3, 1)),
        ("10:00:00", DataTypes.TIME()),
    ],
)
def test_constants_of_another_type_are_refused_at_once(value: Any, kind: Any) -> None:
    with pytest.raises(ProgramError, match=r"takes a value of this type, got .* Cast it"):
        lit(value, kind)


def test_constants_of_a_type(one: Table) -> None:
    day = datetime.date(2020, 1, 1)
    chosen = [
        lit(day, DataTypes.DATE()),
        lit("abc", DataTypes.CHAR(2).not_null()),
        lit(3, DataTypes.TINYINT()),
        lit(1, DataTypes.DOUBLE()),
        lit(b"a", DataTypes.BYTES()),
        null_of(DataTypes.INT()),
    ]
    table = one.select(*(each.alias(f"c{index}") for index, each in enumerate(chosen)))
    assert values(table) == [day, "ab", 3, 1.0, b"a", None]
    with pytest.raises(ProgramError, match=r"use array\(\), map_\(\) or row\(\)"):
        lit([1, 2], DataTypes.ARRAY(DataTypes.INT()))
    with pytest.raises(ProgramError, match="None is no value of INT NOT NULL"):
        lit(None, DataTypes.INT().not_null())


@udf(result_type="BIGINT")
def plus1(value: int) -> int:
    return value + 1


# Recorded with PyFlink 2.3.
TEXTS: dict[str, Callable[[], Any]] = {
    "plus(id, 1)": lambda: col("id") + 1,
    "plus(1, id)": lambda: 1 + col("id"),
    "times(plus(a, 1), minus(b, 2))": lambda: (col("a") + 1) * (col("b") - 2),
    "greaterThan(id, 1)": lambda: col("id") > 1,
    "notEquals(id, 1)": lambda: col("id") != 1,
    "and(a, b)": lambda: col("a") & col("b"),
    "and(a, b, c)": lambda: and_(col("a"), col("b"), col("c")),
    "or(a, and(b, c), d)": lambda: or_(col("a"), col("b") & col("c"), col("d")),
    "not(b)": lambda: not_(col("b")),
    "isNotTrue(c)": lambda: ~col("c"),
    "abs(a)": lambda: abs(col("a")),
    "cast(d, DATE)": lambda: col("d").to_date,
    "cast(d, TIMESTAMP(3))": lambda: col("d").to_timestamp,
    "plus(d, 7200000)": lambda: col("d") + lit(2).hours,
    "concat_ws('-', a, b)": lambda: concat_ws("-", col("a"), col("b")),
    "TO_TIMESTAMP_LTZ(a, 3)": lambda: to_timestamp_ltz(col("a"), 3),
    "initCap(s)": lambda: col("s").init_cap,
    "minusPrefix(id)": lambda: -col("id"),
    "power(id, 2)": lambda: col("id") ** 2,
    "cast(id, STRING)": lambda: col("id").cast(DataTypes.STRING()),
    "TRY_CAST(id, STRING)": lambda: col("id").try_cast(DataTypes.STRING()),
    "as(id, 'x', 'y')": lambda: col("id").alias("x", "y"),
    "'a''b'": lambda: lit("a'b"),
    "1.5": lambda: lit(1.5),
    "true": lambda: lit(True),
    "null": lambda: null_of(DataTypes.INT()),
    "desc(id)": lambda: col("id").desc,
    "isNotNull(id)": lambda: col("id").is_not_null,
    "isNotTrue(b)": lambda: col("b").is_not_true,
    "notBetween(id, 1, 2)": lambda: col("id").not_between(1, 2),
    "in(id, 1, 2)": lambda: col("id").in_(1, 2),
    "ifThenElse(b, 1, 2)": lambda: if_then_else(col("b"), 1, 2),
    "IFNULL(id, 2)": lambda: col("id").if_null(2),
    "LIKE(s, 'a%')": lambda: col("s").like("a%"),
    "similar(s, 'a')": lambda: col("s").similar("a"),
    "distinct(count(id))": lambda: col("id").count.distinct,
    "over(sum(id), w)": lambda: col("id").sum.over(col("w")),
    "start(w)": lambda: col("w").start,
    "upper(s)": lambda: col("s").upper_case,
    "charLength(s)": lambda: col("s").char_length,
    "listAgg(s, ',')": lambda: col("s").list_agg(","),
    "*": lambda: col("*"),
    "row(1, 'a')": lambda: row(1, "a"),
    "map('a', 1)": lambda: map_("a", 1),
    "at(l, 1)": lambda: col("l").at(1),
    "get(r, 'x')": lambda: col("r").get("x"),
    "get(r, 0)": lambda: col("r").get(0),
    "foo(a)": lambda: call("foo", col("a")),
    "plus1(id)": lambda: plus1(col("id")),
    "extract(DAY, d)": lambda: col("d").extract(TimeIntervalUnit.DAY),
    "currentDate()": lambda: current_date(),
    "timestampDiff(DAY, a, b)": lambda: timestamp_diff(TimePointUnit.DAY, col("a"), col("b")),
}


@pytest.mark.parametrize("text", TEXTS)
def test_expressions_as_text(text: str) -> None:
    assert str(TEXTS[text]()) == text


def test_kinds_are_numbers(env: TableEnvironment) -> None:
    assert env.execute_sql("SHOW TABLES").get_result_kind() == 1
    assert env.execute_sql("CREATE DATABASE d").get_result_kind() == 0
    assert (ResultKind.SUCCESS, SqlDialect.DEFAULT, ExplainDetail.CHANGELOG_MODE) == (0, 0, 1)
    env.get_config().set_sql_dialect(0)  # type: ignore[arg-type]


def test_units_that_are_too_small(one: Table) -> None:
    now = lit("2020-01-01 00:00:00").to_timestamp
    with pytest.raises(SqlValidationError, match="TIMESTAMPDIFF"):
        one.select(timestamp_diff(TimePointUnit.MICROSECOND, now, now))


SUNK = """\
== Abstract Syntax Tree ==
LogicalSink(table=[default_catalog.default_database.nothing], fields=[id, s])
+- LogicalProject(id=[$0], s=[$1])
"""
RUNNING = "Sink(table=[default_catalog.default_database.nothing], fields=[id, s])\n+- "


def test_plans_with_sinks(env: TableEnvironment, one: Table) -> None:
    env.execute_sql("CREATE TABLE nothing (id BIGINT, s STRING) WITH ('connector' = 'blackhole')")
    chosen = one.select(col("id"), col("s"))
    text = chosen.insert_into("nothing").explain()
    assert text.startswith(SUNK)
    assert text.count(RUNNING) == 3  # In the tree that was written, too.
    both = env.create_statement_set()
    both.add_insert("nothing", chosen).add_insert_sql("INSERT INTO nothing SELECT 1, 'a'")
    assert both.explain().count("LogicalSink(table=[default_catalog.default_database.nothing]") == 2
    for sql in ("INSERT INTO `nothing` SELECT 1, 'a'", "EXPLAIN INSERT INTO `nothing` SELECT 1, 'a'"):
        assert "LogicalSink(table=[default_catalog.default_database.nothing], fields=[EXPR$0, EXPR$1])" in (
            env.explain_sql(sql)
        )
    assert "Sink" not in chosen.explain()


def test_plans_of_jobs(one: Table) -> None:
    text = one.select(col("id") + 1).explain(ExplainDetail.JSON_EXECUTION_PLAN)
    _, plan = text.split("== Physical Execution Plan ==\n")
    assert len(json.loads(plan)["nodes"]) >= 2


def test_types_of_intervals(one: Table) -> None:
    table = one.select(lit(1).day.alias("a"), lit(2).hours.alias("b"), lit(3).months.alias("c"), lit(1).year.alias("d"))
    kinds = [str(kind) for kind in table.get_schema().get_field_data_types()]
    assert kinds == ["INTERVAL SECOND(3) NOT NULL"] * 2 + ["INTERVAL MONTH NOT NULL"] * 2


def test_paths_are_ordered_among_themselves() -> None:
    path = ObjectPath("shop", "orders")
    assert sorted([path, ObjectPath("shop", "items")])[0].get_object_name() == "items"
    for other in ("shop.orders", 1, None, ["shop", "orders"]):
        with pytest.raises(TypeError):
            path < other  # noqa: B015
        with pytest.raises(TypeError):
            path >= other  # type: ignore[operator] # noqa: B015


def test_the_row_of_a_schema_is_never_null(one: Table) -> None:
    assert str(one.get_schema().to_row_data_type()) == "ROW<`id` BIGINT, `s` STRING> NOT NULL"


def test_options_of_old_tables(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE old (n INT) WITH ('connector.type' = 'filesystem', 'format.type' = 'csv')")
    with pytest.raises(SqlValidationError, match=r"options of Flink before version 1\.11.*'connector' = 'filesystem'"):
        env.execute_sql("SELECT * FROM old")
