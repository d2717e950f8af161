"""Calls that are seldom written, with the types and values that PyFlink 2.3 gives for them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from conftest import environment

from firesteel.common import Row
from firesteel.errors import FiresteelError
from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError

TABLE = """
    CREATE TABLE goods (
        n BIGINT,
        size AS CAST(ROW(n, 'wide') AS ROW<number BIGINT, word STRING>),
        sizes AS ARRAY[CAST(ROW(n, 'wide') AS ROW<number BIGINT, word STRING>)],
        sizes_of AS MAP['door', CAST(ROW(n, 'wide') AS ROW<number BIGINT, word STRING>)],
        code AS CAST('ab' AS BYTES),
        opened AS CAST('08:15:30.789' AS TIME(3)),
        moment AS CAST(TIMESTAMP '2024-05-06 07:08:00' AS TIMESTAMP_LTZ(3)),
        huge AS CAST('1.7E308' AS DOUBLE),
        shift AS INTERVAL '5' HOUR
    ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1')
"""


@pytest.fixture(scope="module")
def goods() -> TableEnvironment:
    env = environment(**{"table.local-time-zone": "UTC"})
    env.execute_sql(TABLE)
    return env


def value(env: TableEnvironment, expression: str) -> Any:
    with env.execute_sql(f"SELECT {expression} FROM goods").collect() as rows:
        ((found,),) = rows
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ARRAY_CONTAINS(sizes, ROW(1, 'wide'))", True),
        ("ARRAY_CONTAINS(sizes, ROW(2, 'wide'))", False),
        ("ARRAY_POSITION(sizes, ROW(1, 'wide'))", 1),
        ("ARRAY_REMOVE(sizes, ROW(1, 'wide'))", []),
        ("ARRAY_APPEND(sizes, ROW(2, 'thin'))", [Row(1, "wide"), Row(2, "thin")]),
        ("ARRAY_PREPEND(sizes, ROW(2, 'thin'))", [Row(2, "thin"), Row(1, "wide")]),
        ("ARRAY_CONCAT(sizes, ARRAY[ROW(2, 'thin')])", [Row(1, "wide"), Row(2, "thin")]),
        ("ARRAY_UNION(sizes, ARRAY[ROW(1, 'wide'), ROW(2, 'thin')])", [Row(1, "wide"), Row(2, "thin")]),
        ("ARRAY_EXCEPT(sizes, ARRAY[ROW(1, 'wide')])", []),
        ("ARRAY_INTERSECT(sizes, ARRAY[ROW(1, 'wide'), ROW(2, 'thin')])", [Row(1, "wide")]),
        ("MAP_UNION(sizes_of, MAP['lid', ROW(3, 'flat')])['lid']", Row(3, "flat")),
        ("ARRAY_CONCAT(ARRAY[sizes], ARRAY[ARRAY[ROW(2, 'thin')]])", [[Row(1, "wide")], [Row(2, "thin")]]),
        ("NULLIF(size, ROW(1, 'wide'))", None),
        ("NULLIF(size, ROW(2, 'wide'))", Row(1, "wide")),
    ],
)
def test_rows_are_what_stands_in_their_places(goods: TableEnvironment, expression: str, expected: Any) -> None:
    """ROW(...) names its fields EXPR$0 and so on: names do not matter."""

    def plain(found: Any) -> Any:
        if isinstance(found, Row):
            return tuple(map(plain, found))
        return list(map(plain, found)) if isinstance(found, list) else found

    assert plain(value(goods, expression)) == plain(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CAST('08:15:30.789' AS TIME)", datetime.time(8, 15, 30)),
        ("CAST('08:15:30.789' AS TIME(3))", datetime.time(8, 15, 30, 789000)),
        ("CAST(opened AS TIME(0))", datetime.time(8, 15, 30)),
        ("CAST(TIMESTAMP '2024-05-06 08:15:30.789' AS TIME)", datetime.time(8, 15, 30)),
        ("UNHEX('z')", None),
        ("UNHEX('1')", b"\0"),
        ("ELT(2, code, CAST('cd' AS BYTES))", b"cd"),
        ("TYPEOF(ELT(1, code, code))", "BYTES"),
        ("PRINTF('%s', CAST('2024-05-06 07:08:00' AS TIMESTAMP(3)))", "2024-05-06T07:08"),
        ("PRINTF('%s', moment)", "2024-05-06T07:08"),
        ("PRINTF('%s', shift)", "18000000"),
        ("JSON_OBJECT(KEY 'a' VALUE JSON(''))", '{"a":null}'),
        ("JSON_ARRAY(JSON('  '), 1)", "[1]"),
        ("JSON_ARRAY(JSON('') NULL ON NULL)", "[null]"),
        ("JSON_VALUE('{\"two words\": \"x\"}', '$.[''two words'']')", "x"),
        ("CAST(huge AS DECIMAL(38, 32))", None),
        ("CAST(-huge AS DECIMAL(10, 2))", None),
        ("CAST(CAST(n AS DOUBLE) AS DECIMAL(3, 2))", Decimal("1.00")),
        ("'a_c' LIKE 'a_c' ESCAPE ''", True),
        ("CAST(n AS STRING) LIKE '' ESCAPE ''", False),
        ("TYPEOF(TO_TIMESTAMP_LTZ('2024-05-06 07:08:09.12345', 'yyyy-MM-dd HH:mm:ss.SSSSS'))", "TIMESTAMP_LTZ(5)"),
        ("TYPEOF(TO_TIMESTAMP_LTZ('2024-05-06 07:08:09', 'yyyy-MM-dd HH:mm:ss'))", "TIMESTAMP_LTZ(3)"),
        (
            "CAST(TO_TIMESTAMP_LTZ('2024-05-06 07:08:09.12345', 'yyyy-MM-dd HH:mm:ss.SSSSS') AS STRING)",
            "2024-05-06 07:08:09.12345",
        ),
        ("TO_TIMESTAMP_LTZ(5, CAST(NULL AS INT))", None),
        ("TO_TIMESTAMP_LTZ(NULL, 'yyyy')", None),
        ("TO_TIMESTAMP_LTZ(huge, 0)", None),
    ],
)
def test_values(goods: TableEnvironment, expression: str, expected: Any) -> None:
    found = value(goods, expression)
    assert (bytes(found) if isinstance(found, bytearray) else found) == expected


def test_a_map_without_a_key_is_refused(goods: TableEnvironment) -> None:
    with pytest.raises(FiresteelError, match=r"A key of MAP\[...\] is NULL"):
        value(goods, "MAP[CAST(NULL AS STRING), n]")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ARRAY_AGG(n IGNORE NULLS)", {"tea": [1, 1, 3], "ink": None}),
        ("ARRAY_AGG(n) IGNORE NULLS", {"tea": [1, 1, 3], "ink": None}),
        ("ARRAY_AGG(DISTINCT n IGNORE NULLS)", {"tea": [1, 3], "ink": None}),
        ("ARRAY_AGG(n RESPECT NULLS)", {"tea": [1, None, 1, 3], "ink": [None]}),
        ("ARRAY_AGG(n IGNORE NULLS) FILTER (WHERE n > 1)", {"tea": [3], "ink": None}),
    ],
)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_nulls_that_are_left_out(mode: str, call: str, expected: dict[str, Any]) -> None:
    env = environment(**{"execution.runtime-mode": mode})
    rows = "VALUES ('tea', 1), ('tea', CAST(NULL AS INT)), ('ink', CAST(NULL AS INT)), ('tea', 1), ('tea', 3)"
    query = f"SELECT item, {call} AS all_of_them FROM ({rows}) AS sold (item, n) GROUP BY item"
    found: dict[str, Any] = {}
    with env.execute_sql(query).collect() as changes:
        for row in changes:
            found[row[0]] = row[1]
    assert found == expected


def test_nulls_are_left_out_of_arrays_alone(goods: TableEnvironment) -> None:
    with pytest.raises(SqlError, match=r"IGNORE NULLS is for ARRAY_AGG, as in Flink, and not for SUM"):
        goods.execute_sql("SELECT SUM(n) IGNORE NULLS FROM goods")
