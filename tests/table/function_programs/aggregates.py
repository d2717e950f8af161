"""Programs with aggregate and table aggregate functions."""

from firesteel.common import Row
from firesteel.table import DataTypes, ListView, MapView
from firesteel.table.expressions import col, lit
from firesteel.table.udf import (
    AggregateFunction,
    TableAggregateFunction,
    udaf,
    udtaf,
)
from function_programs.kit import program


class WeightedAverage(AggregateFunction):
    def create_accumulator(self):
        return Row(0.0, 0)

    def get_value(self, accumulator):
        return None if accumulator[1] == 0 else accumulator[0] / accumulator[1]

    def accumulate(self, accumulator, value, weight):
        if value is not None:
            accumulator[0] += value * weight
            accumulator[1] += weight

    def retract(self, accumulator, value, weight):
        if value is not None:
            accumulator[0] -= value * weight
            accumulator[1] -= weight

    def merge(self, accumulator, accumulators):
        for other in accumulators:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_result_type(self):
        return DataTypes.DOUBLE()

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("f0", DataTypes.DOUBLE()), DataTypes.FIELD("f1", DataTypes.BIGINT())])


@program
def aggregate_in_the_table_api(env):
    average = udaf(WeightedAverage())
    return env.from_path("t").group_by(col("k")).select(col("k"), average(col("v"), lit(2)).alias("a"))


@program
def aggregate_in_sql(env):
    env.create_temporary_function("w_avg", WeightedAverage())
    return env.sql_query("SELECT k, w_avg(v, COALESCE(k, 1)) AS a, COUNT(*) AS n, MAX(s) AS s FROM t GROUP BY k")


@program
def aggregate_of_everything(env):
    env.create_temporary_function("w_avg", udaf(WeightedAverage()))
    return env.sql_query("SELECT w_avg(v, 1) AS a, SUM(k) AS k FROM t")


@program
def aggregate_of_changes(env):
    env.create_temporary_function("w_avg", udaf(WeightedAverage()))
    return env.sql_query("SELECT w_avg(n, 1) AS a FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)")


@program
def aggregate_with_filter(env):
    env.create_temporary_function("w_avg", udaf(WeightedAverage()))
    return env.sql_query("SELECT k, w_avg(v, 1) FILTER (WHERE v > 1) AS a FROM t GROUP BY k")


@program
def aggregate_after_each_row(env):
    env.get_config().set("python.fn-execution.bundle.size", "1")
    env.create_temporary_function("w_avg", udaf(WeightedAverage()))
    return env.sql_query(
        "SELECT w_avg(n, 1) AS a, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WHERE n < 3"
    )


@program
def aggregate_of_groups_after_each_row(env):
    env.get_config().set("python.fn-execution.bundle.size", "1")
    average = udaf(WeightedAverage())
    return env.from_path("t").group_by(col("k")).select(col("k"), average(col("v"), lit(2)).alias("a"))


class Distinct(AggregateFunction):
    """The distinct texts of a group in order, joined."""

    def create_accumulator(self):
        return Row(MapView(), 0)

    def accumulate(self, accumulator, text):
        if text in accumulator[0]:
            accumulator[0][text] += 1
        else:
            accumulator[0].put(text, 1)
            accumulator[1] += 1

    def retract(self, accumulator, text):
        accumulator[0][text] -= 1
        if accumulator[0][text] == 0:
            accumulator[0].remove(text)
            accumulator[1] -= 1

    def get_value(self, accumulator):
        return f"{accumulator[1]}:" + ",".join(sorted(accumulator[0].keys()))

    def get_result_type(self):
        return DataTypes.STRING()

    def get_accumulator_type(self):
        return DataTypes.ROW(
            [
                DataTypes.FIELD("f0", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT())),
                DataTypes.FIELD("f1", DataTypes.BIGINT()),
            ]
        )


@program
def aggregate_with_a_map_view(env):
    env.create_temporary_function("texts", udaf(Distinct()))
    return env.sql_query("SELECT k, texts(s) AS s FROM t GROUP BY k")


class Concatenated(AggregateFunction):
    def create_accumulator(self):
        return Row(ListView(), "")

    def accumulate(self, accumulator, text):
        accumulator[0].add(text)
        accumulator[1] += "."

    def get_value(self, accumulator):
        return "+".join(accumulator[0]) + accumulator[1]

    def get_result_type(self):
        return DataTypes.STRING()

    def get_accumulator_type(self):
        return DataTypes.ROW(
            [
                DataTypes.FIELD("f0", DataTypes.LIST_VIEW(DataTypes.STRING())),
                DataTypes.FIELD("f1", DataTypes.STRING()),
            ]
        )


@program
def aggregate_with_a_list_view(env):
    texts = udaf(Concatenated())
    return env.from_path("t").group_by(col("k")).select(texts(col("s")).alias("s"), col("k"))


class Extremes(AggregateFunction):
    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value):
        if value is not None:
            accumulator[0] = value if accumulator[0] is None else min(accumulator[0], value)
            accumulator[1] = value if accumulator[1] is None else max(accumulator[1], value)

    def get_value(self, accumulator):
        return Row(accumulator[0], accumulator[1])

    def get_result_type(self):
        return "ROW<low DOUBLE, high DOUBLE>"

    def get_accumulator_type(self):
        return "ARRAY<DOUBLE>"


@program
def aggregate_of_rows(env):
    function = udaf(
        Extremes(), result_type=Extremes().get_result_type(), accumulator_type=Extremes().get_accumulator_type()
    )
    return (
        env.from_path("t")
        .where(col("v").is_not_null)
        .group_by(col("k"))
        .aggregate(function(col("v")).alias("low", "high"))
        .select(col("k"), col("low"), col("high"))
    )


class TopTwo(TableAggregateFunction):
    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value):
        if isinstance(value, Row):
            value = value.v
        if value is None:
            return
        if accumulator[0] is None or value > accumulator[0]:
            accumulator[0], accumulator[1] = value, accumulator[0]
        elif accumulator[1] is None or value > accumulator[1]:
            accumulator[1] = value

    def emit_value(self, accumulator):
        for place, value in enumerate(accumulator):
            if value is not None:
                yield Row(value, place + 1)

    def get_result_type(self):
        return DataTypes.ROW(
            [DataTypes.FIELD("value", DataTypes.DOUBLE()), DataTypes.FIELD("place", DataTypes.BIGINT())]
        )

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.DOUBLE())


@program
def table_aggregate_of_groups(env):
    top = udtaf(TopTwo())
    grouped = env.from_path("t").group_by(col("k"))
    return grouped.flat_aggregate(top(col("v")).alias("v", "place")).select(col("k"), col("v"), col("place"))


@program
def table_aggregate_of_everything(env):
    return env.from_path("t").flat_aggregate(udtaf(TopTwo())(col("v"))).select(col("value"), col("place") + 1)


@program
def table_aggregate_of_rows(env):
    top = udtaf(TopTwo())
    return env.from_path("t").flat_aggregate(top.alias("a", "b")).select(col("a"), col("b"))
