"""Programs with users' aggregates in windows."""

from firesteel.table import DataTypes
from firesteel.table.expressions import col, lit
from firesteel.table.udf import (
    udaf,
)
from firesteel.table.window import Session, Slide, Tumble
from function_programs.aggregates import WeightedAverage
from function_programs.kit import program


def clicks(env):
    """Ten rows, one a second."""
    env.execute_sql("""
        CREATE TABLE clicks (
            n BIGINT,
            v AS CAST(n AS DOUBLE) / 2,
            ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 12:00:00.000'),
            WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '9')
    """)
    return env.from_path("clicks")


MEAN = udaf(lambda v: v.mean(), result_type=DataTypes.DOUBLE(), func_type="pandas")


@program
def window_of_pandas_aggregates(env):
    windowed = clicks(env).window(Tumble.over(lit(4).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    return windowed.select(col("w").start.alias("s"), MEAN(col("n")).alias("m"), MEAN(col("v")).alias("x"))


@program
def window_of_pandas_aggregates_in_sql(env):
    clicks(env)
    env.create_temporary_function("mean_of", MEAN)
    return env.sql_query("SELECT mean_of(n) AS m FROM clicks GROUP BY TUMBLE(ts, INTERVAL '3' SECOND)")


@program
def sliding_window_of_general_aggregates(env):
    windowed = clicks(env).window(Slide.over(lit(4).seconds).every(lit(2).seconds).on(col("ts")).alias("w"))
    average = udaf(WeightedAverage())
    return windowed.group_by(col("w")).select(col("w").end.alias("e"), average(col("v"), col("n")).alias("a"))


@program
def session_window_of_general_aggregates(env):
    windowed = clicks(env).window(Session.with_gap(lit(2).seconds).on(col("ts")).alias("w"))
    return windowed.group_by(col("w")).select(udaf(WeightedAverage())(col("v"), lit(1)).alias("a"))


@program
def window_aggregate_of_rows(env):
    pair = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.DOUBLE()), DataTypes.FIELD("b", DataTypes.BIGINT())])
    function = udaf(lambda v: (v.mean(), v.max()), result_type=pair, func_type="pandas")
    windowed = clicks(env).window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    return windowed.aggregate(function(col("n")).alias("c", "d")).select(col("c"), col("d"))


@program
def pandas_aggregate_over_rows(env):
    clicks(env)
    env.create_temporary_function("mean_of", MEAN)
    return env.sql_query(
        "SELECT n, mean_of(n) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m FROM clicks"
    )


@program
def pandas_aggregate_over_time(env):
    clicks(env)
    env.create_temporary_function("mean_of", MEAN)
    return env.sql_query(
        "SELECT n, mean_of(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW) AS m "
        "FROM clicks"
    )
