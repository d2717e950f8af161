"""Rows of the print connector, as PyFlink 2.3 printed them: values are written as Java's toString does."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.table import TableEnvironment

PLAIN = (
    "a BOOLEAN, b TINYINT, c DOUBLE, d FLOAT, e DECIMAL(10, 2), f DATE, g TIME, h TIMESTAMP(3), i TIMESTAMP(6), "
    "j TIMESTAMP_LTZ(3), k BYTES, l STRING"
)
NESTED = (
    "a ARRAY<STRING>, b ARRAY<BYTES>, c ARRAY<BOOLEAN>, d ARRAY<TIMESTAMP(3)>, e MAP<STRING, INT>, f MAP<INT, BYTES>, "
    "g ROW<x INT, y ROW<p STRING, q BYTES>>, h ARRAY<ROW<x INT, y BOOLEAN>>, i ARRAY<ARRAY<INT>>, "
    "j ROW<t TIME, s TIMESTAMP_LTZ(3), d DOUBLE>, k MAP<STRING, ARRAY<TIME>>, l MAP<STRING, ROW<x INT, b BOOLEAN>>"
)
OTHER = "a CHAR(3), b BINARY(2), c TIME(3), d TIMESTAMP(0), e ROW<x INT, y STRING>, f ARRAY<INT>"


@pytest.mark.parametrize(
    ("columns", "row", "printed"),
    [
        (
            PLAIN,
            "TRUE, CAST(1 AS TINYINT), 1E10, CAST(1.5 AS FLOAT), 1.50, DATE '2024-03-10', TIME '06:00:00', "
            "TIMESTAMP '2024-03-10 06:00:00', TIMESTAMP '2024-03-10 06:00:02', TO_TIMESTAMP_LTZ(1710050400000, 3), "
            "x'6331ff', 'a'",
            "true, 1, 1.0E10, 1.5, 1.50, 2024-03-10, 06:00, 2024-03-10T06:00, 2024-03-10T06:00:02, "
            "2024-03-10T06:00:00Z, [99, 49, -1], a",
        ),
        (
            PLAIN,
            "FALSE, CAST(-1 AS TINYINT), 1E-5, CAST(1E-5 AS FLOAT), 0, DATE '0099-01-01', TIME '06:00:01', "
            "TIMESTAMP '2024-03-10 06:00:00.5', TIMESTAMP '2024-03-10 06:00:02.000001', "
            "TO_TIMESTAMP_LTZ(1710050400500, 3), x'', ''",
            "false, -1, 1.0E-5, 1.0E-5, 0.00, 0099-01-01, 06:00:01, 2024-03-10T06:00:00.500, "
            "2024-03-10T06:00:02.000001, 2024-03-10T06:00:00.500Z, [], ",
        ),
        (
            PLAIN,
            "TRUE, CAST(1 AS TINYINT), 123456789.125, CAST(1234567.0 AS FLOAT), 12345678.90, DATE '1969-12-31', "
            "TIME '23:59:59.123', TIMESTAMP '1969-12-31 23:59:59.999', TIMESTAMP '0099-01-01 00:01:00', "
            "TO_TIMESTAMP_LTZ(-1, 3), x'80', 'a'",
            "true, 1, 1.23456789125E8, 1234567.0, 12345678.90, 1969-12-31, 23:59:59, 1969-12-31T23:59:59.999, "
            "0099-01-01T00:01, 1969-12-31T23:59:59.999Z, [-128], a",
        ),
        (
            NESTED,
            "ARRAY['a', CAST(NULL AS STRING)], ARRAY[CAST(x'6331' AS BYTES), CAST(NULL AS BYTES)], "
            "ARRAY[TRUE, CAST(NULL AS BOOLEAN)], "
            "ARRAY[TIMESTAMP '2024-03-10 06:00:00', TIMESTAMP '2024-03-10 06:00:00.100'], "
            "MAP['a', 1, 'b', CAST(NULL AS INT)], MAP[1, CAST(x'6331' AS BYTES)], "
            "CAST(ROW(1, ROW('p', CAST(x'6331' AS BYTES))) AS ROW<x INT, y ROW<p STRING, q BYTES>>), "
            "ARRAY[ROW(1, TRUE), ROW(2, FALSE)], ARRAY[ARRAY[1, CAST(NULL AS INT)]], "
            "CAST(ROW(TIME '06:00:00', TO_TIMESTAMP_LTZ(1710050400000, 3), 1E10) "
            "AS ROW<t TIME, s TIMESTAMP_LTZ(3), d DOUBLE>), MAP['t', ARRAY[TIME '06:00:01']], MAP['r', ROW(1, TRUE)]",
            "[a, null], [[99, 49], null], [true, null], [2024-03-10T06:00, 2024-03-10T06:00:00.100], "
            "{a=1, b=null}, {1=[99, 49]}, +I[1, +I[p, [99, 49]]], [+I[1, true], +I[2, false]], [[1, null]], "
            "+I[06:00, 2024-03-10T06:00:00Z, 1.0E10], {t=[06:00:01]}, {r=+I[1, true]}",
        ),
        (
            OTHER,
            "'abc', x'6331', TIME '06:00:00.120', TIMESTAMP '2024-03-10 06:00:00', "
            "CAST(NULL AS ROW<x INT, y STRING>), CAST(NULL AS ARRAY<INT>)",
            "abc, [99, 49], 06:00:00.120, 2024-03-10T06:00, null, null",
        ),
    ],
)
def test_values_are_written_as_java_writes_them(
    env: TableEnvironment, capsys: Any, columns: str, row: str, printed: str
) -> None:
    # The zone of the session makes no difference to Java.
    env.execute_sql("SET 'table.local-time-zone' = 'America/New_York'")
    env.execute_sql(f"CREATE TABLE sink ({columns}) WITH ('connector' = 'print')")
    env.execute_sql(f"INSERT INTO sink SELECT {row}").wait()
    assert capsys.readouterr().out == f"+I[{printed}]\n"
