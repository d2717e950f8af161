"""Times out of text with a pattern, and times that clocks skip or show twice: PyFlink 2.3 gave the same values in the
time zone America/New_York."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.sql import SqlError

NONE = -(2**63)


def value(expression: str) -> Any:
    settings = {"firesteel.master": "memory", "table.local-time-zone": "America/New_York"}
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(settings))
    env = TableEnvironment.create(builder.build())
    with env.execute_sql(f"SELECT CAST({expression} AS STRING)").collect() as rows:
        return next(rows)[0]


@pytest.mark.parametrize(
    ("text", "moment", "day"),
    [
        ("2024-03-10 03:00:00.000", 1710054000, 1710046800),
        ("2024-03-10 03:00:00 tail", 1710054000, 1710046800),
        ("2024-03-10", NONE, 1710046800),
        ("  2024-03-10 03:00:00", 1710054000, 1710046800),
        ("2024-3-1 3:5:7", 1709280307, 1709269200),
        ("2024-03- 10  03:00:00", 1710054000, 1710046800),
        # The clock is set to three o'clock at two, and an hour back in autumn: the second half past one counts.
        ("2024-03-10 02:30:00", 1710055800, 1710046800),
        ("2024-11-03 01:30:00", 1730615400, 1730606400),
        ("x", NONE, NONE),
    ],
)
def test_seconds_of_the_beginning_of_a_text(text: str, moment: int, day: int) -> None:
    assert int(value(f"UNIX_TIMESTAMP('{text}')")) == moment
    assert int(value(f"UNIX_TIMESTAMP('{text}', 'yyyy-MM-dd')")) == day


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("UNIX_TIMESTAMP('2024031', 'yyyyMMdd')", "1709269200"),
        ("UNIX_TIMESTAMP('10 march 24', 'dd MMM yy')", "1710046800"),
        ("UNIX_TIMESTAMP('10/03/84', 'dd/MM/yy')", "447742800"),
        ("UNIX_TIMESTAMP('2024-03-10 03:00:00.12345', 'yyyy-MM-dd HH:mm:ss.SSS')", "1710054012"),
        ("UNIX_TIMESTAMP('03:00 PM', 'hh:mm a')", "72000"),
        ("UNIX_TIMESTAMP('Sunday 10/Mar/2024', 'EEEE dd/MMM/yyyy')", "1710046800"),
        ("TO_DATE('10 Mar 2024 xx', 'dd MMM yyyy')", "2024-03-10"),
        ("TO_DATE('2024-3-1 3:5:7', 'yyyy-MM-dd')", "2024-03-01"),
        ("CONVERT_TZ('2024-03-10 03:00:00 tail', 'UTC', 'Asia/Tokyo')", "2024-03-10 12:00:00"),
        ("CONVERT_TZ('2024-11-03 01:30:00', 'America/New_York', 'UTC')", "2024-11-03 06:30:00"),
        ("TO_TIMESTAMP('2024-03-10 03:00:00.5', 'yyyy-MM-dd HH:mm:ss')", "2024-03-10 03:00:00.500"),
        ("TO_TIMESTAMP('2024-3-1 3:5:7', 'yyyy-MM-dd HH:mm:ss')", "2024-03-01 03:05:07.000"),
        ("TO_TIMESTAMP('2024-03-10', 'yyyy-MM-dd HH:mm:ss')", "2024-03-10 00:00:00.000"),
        ("TO_TIMESTAMP('2024-03-10  03:00:00', 'yyyy-MM-dd HH:mm:ss')", None),
        ("TO_TIMESTAMP('24-03-10 03:00:00', 'yyyy-MM-dd HH:mm:ss')", None),
        ("TO_TIMESTAMP('2024-03-10 03:00:00 tail', 'yyyy-MM-dd HH:mm:ss')", None),
        ("CAST(TIMESTAMP '2024-03-10 02:30:00' AS TIMESTAMP_LTZ(3))", "2024-03-10 03:30:00.000"),
        ("CAST('2024-03-10 02:00:00' AS TIMESTAMP_LTZ(3))", "2024-03-10 03:00:00.000"),
        ("CAST(TIMESTAMP '2024-03-10 01:59:59' AS TIMESTAMP_LTZ(3))", "2024-03-10 01:59:59.000"),
        (
            "TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 0), CAST(TIMESTAMP '2024-11-03 01:30:00' AS TIMESTAMP_LTZ(3)))",
            "1730611800",
        ),
        (
            "TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 0), CAST(TIMESTAMP '2024-03-10 02:30:00' AS TIMESTAMP_LTZ(3)))",
            "1710055800",
        ),
    ],
)
def test_times_out_of_text(expression: str, expected: str | None) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(TIMESTAMP '2024-03-10 06:01:02.5' - TIMESTAMP '2024-03-10 06:00:00') MINUTE", "+0 00:01:02.500"),
        ("(TIMESTAMP '2024-03-10 06:00:00' - TIMESTAMP '2024-03-10 06:01:02.5') SECOND(3)", "-0 00:01:02.500"),
        ("(TIMESTAMP '2024-03-10 06:01:02.5' - TIMESTAMP '2024-03-09 05:00:00') DAY TO HOUR", "+1 01:01:02.500"),
        ("(DATE '2024-03-10' - DATE '2024-03-01') DAY", "+9 00:00:00.000"),
        ("(DATE '2024-03-10' - DATE '2022-02-01') YEAR", "+2-01"),
        ("(TIMESTAMP '2024-03-10 06:00:00' - TIMESTAMP '2024-01-11 06:00:00') MONTH", "+0-01"),
        # An interval like others.
        ("TIMESTAMP '2024-01-01 00:00:00' + (DATE '2024-03-10' - DATE '2024-03-01') DAY", "2024-01-10 00:00:00"),
        ("(DATE '2024-03-10' - CAST(NULL AS DATE)) DAY", None),
    ],
)
def test_the_time_between_two_moments_is_an_interval(expression: str, expected: str | None) -> None:
    assert value(expression) == expected


def test_the_time_between_needs_times() -> None:
    with pytest.raises(SqlError, match=r"\(a - b\) unit takes .* got"):
        value("(1 - 2) SECOND")
