"""What PyFlink's expressions mean where another meaning would seem as natural. The results are those of PyFlink 2.3."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from firesteel.errors import JobExecutionError, ProgramError
from firesteel.table import AggregateFunction, DataTypes, Table, TableEnvironment
from firesteel.table.expressions import array, call_sql, col, not_, row
from firesteel.table.udf import udaf


@pytest.fixture
def flags(env: TableEnvironment) -> Table:
    columns = [DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("flag", DataTypes.BOOLEAN())]
    return env.from_elements([(-1, True), (2, None), (3, False)], DataTypes.ROW(columns))


@pytest.fixture
def times(env: TableEnvironment) -> Table:
    columns = [
        DataTypes.FIELD("text", DataTypes.STRING()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
        DataTypes.FIELD("day", DataTypes.DATE()),
    ]
    element = ("2024-05-17", datetime.datetime(2021, 1, 2, 3, 4, 5), datetime.date(2022, 6, 7))
    return env.from_elements([element], DataTypes.ROW(columns))


def rows(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(each) for each in found]


def test_a_tilde_takes_null_for_false_and_not_leaves_it(flags: Table) -> None:
    assert rows(flags.select(~col("flag"), not_(col("flag")))) == [(False, False), (True, None), (True, True)]
    assert rows(flags.where(~(col("flag"))).select(col("n"))) == [(2,), (3,)]
    assert rows(flags.where(not_(col("flag"))).select(col("n"))) == [(3,)]


def test_a_tilde_before_in(env: TableEnvironment, flags: Table) -> None:
    some = env.from_elements([(-1,), (4,)], DataTypes.ROW([DataTypes.FIELD("m", DataTypes.INT())]))
    left = flags.where(~flags.n.in_(some)).select(flags.n).to_pandas()
    assert sorted(left["n"].tolist()) == [2, 3]


def test_absolute_values(flags: Table) -> None:
    assert rows(flags.select(abs(flags.n))) == [(1,), (2,), (3,)]


def test_days_and_moments_are_casts(times: Table) -> None:
    days = times.select(times.text.to_date, times.at.to_date, times.day.to_date)
    assert rows(days) == [(datetime.date(2024, 5, 17), datetime.date(2021, 1, 2), datetime.date(2022, 6, 7))]
    moments = times.select(times.text.to_timestamp, times.at.to_timestamp, times.day.to_timestamp)
    assert rows(moments) == [
        (datetime.datetime(2024, 5, 17), datetime.datetime(2021, 1, 2, 3, 4, 5), datetime.datetime(2022, 6, 7))
    ]
    assert times.select(times.at.to_date).get_schema().get_field_names() == ["at-DATE"]
    with pytest.raises(JobExecutionError, match="DATE"):
        rows(times.select((times.text + "?").to_date))


def test_fields_of_a_row(flags: Table) -> None:
    made = flags.select(row(flags.n, row(flags.flag, "x")).alias("r"))
    kind = "ROW<`f0` INT, `f1` ROW<`f0` BOOLEAN, `f1` CHAR(1) NOT NULL> NOT NULL> NOT NULL"
    assert str(made.get_schema().get_field_data_type("r")) == kind
    assert rows(made.select(col("r").get("f0"), col("r").f1.f1))[0] == (-1, "x")
    # In SQL they are called otherwise.
    in_sql = flags.select(call_sql("ROW(n, flag)").alias("r")).get_schema().get_field_data_type("r")
    assert str(in_sql) == "ROW<`EXPR$0` INT, `EXPR$1` BOOLEAN> NOT NULL"


class Total(AggregateFunction[Any, Any]):
    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator[0] += args[0]

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def get_result_type(self) -> str:
        return "BIGINT"


def test_distinct_values_of_a_users_aggregate(env: TableEnvironment) -> None:
    table = env.from_elements([(1, 2), (1, 2), (1, 5)], ["k", "v"])
    total = udaf(Total())
    sums = table.group_by(table.k).select(total(table.v).distinct, total(table.v))
    assert rows(sums)[-1] == (7, 9)
    texts = table.select(table.v.cast(DataTypes.STRING()).alias("v")).select(col("v").list_agg("-").distinct)
    assert rows(texts)[-1] == ("2-5",)


def test_a_type_is_no_text() -> None:
    for change in (col("n").cast, col("n").try_cast):
        with pytest.raises(ProgramError, match=r"cast\(\) takes a type such as DataTypes\.INT\(\), got 'INT'"):
            change("INT")  # type: ignore[arg-type]


def test_a_column_that_is_not_there(flags: Table) -> None:
    with pytest.raises(AttributeError, match=r"neither a method nor a column 'm'\. The columns are n, flag\."):
        flags.m  # noqa: B018
    assert rows(flags.select(array(flags.n).at(1)))[0] == (-1,)


def test_a_cast_leaves_a_time_of_day_the_digits_of_its_type(
    env: TableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value that comes from outside keeps all that it has."""
    query = """
        SELECT CAST(c AS TIME), CAST(c AS TIME(2)), CAST(CAST(c AS TIME(3)) AS TIME(1)),
            EXTRACT(MILLISECOND FROM CAST(c AS TIME)),
            CAST(TIMESTAMP '2020-01-01 12:00:00.129' AS TIME), CAST(c AS TIME) = TIME '12:00:00'
        FROM (VALUES ('12:00:00.129')) AS v(c)
    """
    noon = datetime.time(12)
    hundredths, tenths = noon.replace(microsecond=120_000), noon.replace(microsecond=100_000)
    assert rows(env.sql_query(query)) == [(noon, hundredths, tenths, 0, noon, True)]
    exact = noon.replace(microsecond=123_000)
    given = env.from_elements([(exact,)], DataTypes.ROW([DataTypes.FIELD("c", DataTypes.TIME())]))
    assert rows(given) == [(exact,)]
    env.execute_sql("CREATE TABLE console (c TIME) WITH ('connector' = 'print')")
    given.execute_insert("console").wait()
    given.select(given.c.cast(DataTypes.TIME(3)).cast(DataTypes.TIME())).execute_insert("console").wait()
    assert capsys.readouterr().out == "+I[12:00:00.123]\n+I[12:00]\n"
