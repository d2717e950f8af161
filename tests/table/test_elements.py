"""Rows of a program as tables: what PyFlink 2.3 makes of the same elements."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pytest

from firesteel.common import Row
from firesteel.errors import ProgramError
from firesteel.table import DataTypes, Table, TableEnvironment
from firesteel.table.expressions import col


class Pair(NamedTuple):
    p: int
    q: str


class Thing:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def row_type(*fields: tuple[str, Any]) -> Any:
    return DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in fields])


INTS = row_type(("a", DataTypes.INT()), ("b", DataTypes.INT()))


def shown(table: Table) -> tuple[list[str], list[tuple[Any, ...]]]:
    with table.execute().collect() as found:
        return table.get_schema().get_field_names(), [tuple(row) for row in found]


@pytest.mark.parametrize(
    ("elements", "schema", "names", "rows"),
    [
        ([{"b": 1, "a": "x"}, {"a": "y", "b": 2}], None, ["a", "b"], [("x", 1), ("y", 2)]),
        ([{"b": 1, "a": 2}], INTS, ["a", "b"], [(2, 1)]),
        ([{"b": 1}], INTS, ["a", "b"], [(None, 1)]),
        ([{"b": 1, "a": 2, "z": 3}], INTS, ["a", "b"], [(2, 1)]),
        ([{"b": 1, "a": 2}], ["p", "q"], ["a", "b"], [(2, 1)]),
        ([({"b": 1, "a": 2},)], row_type(("r", INTS)), ["r"], [(Row(2, 1),)]),
        ([Pair(1, "x")], None, ["p", "q"], [(1, "x")]),
        ([Pair(1, "x")], ["a", "b"], ["p", "q"], [(1, "x")]),
        ([Pair(1, "x")], row_type(("q", DataTypes.INT()), ("p", DataTypes.STRING())), ["q", "p"], [(1, "x")]),
        ([Thing(y=1, x="s"), Thing(x="t", y=2)], None, ["x", "y"], [("s", 1), ("t", 2)]),
        ([Thing(b=1, a=2)], INTS, ["a", "b"], [(2, 1)]),
        ([(Thing(b=1, a=2),)], row_type(("r", INTS)), ["r"], [(Row(2, 1),)]),
        ([Row(b=1, a=2)], INTS, ["a", "b"], [(2, 1)]),
        ([Row(1, 2)], ["a"], ["a", "_2"], [(1, 2)]),
        ([(1, 2, 3)], ["a", "b"], ["a", "b", "_3"], [(1, 2, 3)]),
        ([(1, 2)], ["a", "b", "c"], ["a", "b"], [(1, 2)]),
        ([1, 2], DataTypes.BIGINT(), ["f0"], [(1,), (2,)]),
    ],
)
def test_columns_of_elements(
    env: TableEnvironment, elements: list[Any], schema: Any, names: list[str], rows: list[Any]
) -> None:
    assert shown(env.from_elements(elements, schema)) == (names, rows)


def test_fields_inside_have_names(env: TableEnvironment) -> None:
    table = env.from_elements([(Pair(1, "x"), Thing(y=1, x="s"), (1, 2.5))])
    assert [str(kind) for kind in table.get_schema().get_field_data_types()] == [
        "ROW<`p` BIGINT, `q` STRING>",
        "ROW<`x` STRING, `y` BIGINT>",
        "ROW<`_1` BIGINT, `_2` DOUBLE>",
    ]


@pytest.mark.parametrize(
    ("elements", "schema", "message"),
    [
        ([(1, 2), (3,)], None, r"\(3,\) has 1 fields, the schema 2"),
        ([(1, 2)], ["a", "a"], "two columns are called 'a'"),
        ([(1, 2)], "a", "a type or a list of names, got 'a'"),
        ([(1, 2)], 5, "a type or a list of names, got 5"),
        ([(object(),)], None, "No type of tables holds object"),
    ],
)
def test_what_is_no_table(env: TableEnvironment, elements: list[Any], schema: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        env.from_elements(elements, schema)


def test_moments_are_of_the_local_zone(env: TableEnvironment) -> None:
    env.get_config().set_local_timezone("Asia/Shanghai")
    zone = datetime.timezone(datetime.timedelta(hours=1))
    rows = [(datetime.datetime(2020, 7, 2, 3, 4, 5, 678000),), (datetime.datetime(2020, 7, 2, 4, 4, 5, tzinfo=zone),)]
    table = env.from_elements(rows, ["at"])
    assert str(table.get_schema().get_field_data_type("at")) == "TIMESTAMP_LTZ(6)"
    texts = ["2020-07-02 11:04:05.678000", "2020-07-02 11:04:05.000000"]
    assert shown(table.select(col("at").cast(DataTypes.STRING())))[1] == [(text,) for text in texts]
