"""Programs that make rows of rows: table functions, map, flat_map, UNNEST."""

from firesteel.common import Row
from firesteel.table import DataTypes
from firesteel.table.expressions import col
from firesteel.table.udf import (
    TableFunction,
    udf,
    udtf,
)
from function_programs.kit import program


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def words(text):
    for word in text.split():
        yield word, len(word)


@program
def table_function_joined(env):
    return env.from_path("t").join_lateral(words(col("s")).alias("word", "n")).select(col("k"), col("word"), col("n"))


@program
def table_function_in_sql(env):
    env.create_temporary_function("words", words)
    return env.sql_query("SELECT k, w, n FROM t, LATERAL TABLE(words(s)) AS T(w, n) WHERE n = 1")


@program
def table_function_without_names(env):
    env.create_temporary_function("words", words)
    return env.sql_query("SELECT * FROM t, LATERAL TABLE(words(s))")


@program
def table_function_left(env):
    env.create_temporary_function("small", udtf(lambda k: range(k or 0) if k != 2 else None, result_types="BIGINT"))
    return env.sql_query("SELECT s, x FROM t LEFT JOIN LATERAL TABLE(small(k)) AS T(x) ON TRUE")


@program
def table_function_left_in_the_table_api(env):
    small = udtf(lambda k: range(k or 0) if k != 2 else None, result_types=DataTypes.BIGINT())
    return env.from_path("t").left_outer_join_lateral(small(col("k")).alias("x")).select(col("s"), col("x"))


class Several(TableFunction):
    def eval(self, kind):
        if kind == 1:
            return [(1, "list"), Row(2, "row")]
        if kind == 2:
            return 3, "tuple"
        if kind == 3:
            return Row(4, "single")
        return None


@program
def table_function_results(env):
    env.create_temporary_function("several", udtf(Several(), result_types=["INT", "STRING"]))
    return env.sql_query("SELECT k, a, b FROM t, LATERAL TABLE(several(k)) AS T(a, b)")


@program
def table_function_of_named_row(env):
    named = udtf(lambda s: [(s, 1)], result_types="ROW<x STRING, y INT>")
    env.create_temporary_function("named", named)
    return env.sql_query("SELECT T.x, T.y FROM t, LATERAL TABLE(named(s)) AS T(x, y)")


@program
def table_function_of_changes(env):
    env.create_temporary_function("upto", udtf(lambda n: range(n), result_types="BIGINT"))
    counts = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    return env.sql_query(f"SELECT k, x FROM ({counts}), LATERAL TABLE(upto(n)) AS T(x)")


@program
def table_function_of_table_function(env):
    env.create_temporary_function("words", words)
    env.create_temporary_function("upto", udtf(lambda n: range(n), result_types="BIGINT"))
    return env.sql_query(
        "SELECT s, w, x FROM t, LATERAL TABLE(words(s)) AS A(w, n), LATERAL TABLE(upto(n + 1)) AS B(x)"
    )


@program
def table_function_of_scalar(env):
    upper = udf(lambda s: s.upper(), result_type="STRING")
    return env.from_path("t").join_lateral(words(upper(col("s"))).alias("w", "n")).select(col("w"))


@program
def flat_map_of_columns(env):
    return env.from_path("t").flat_map(words(col("s")))


@program
def flat_map_of_rows(env):
    @udtf(result_types=[DataTypes.INT(), DataTypes.STRING()])
    def split(row):
        for word in row.s.split():
            yield row[0], word

    return env.from_path("t").flat_map(split).alias("a", "b")


@program
def map_of_columns(env):
    pair = udf(lambda k, s: Row(k, s * 2), result_type="ROW<a INT, b STRING>")
    return env.from_path("t").map(pair(col("k"), col("s")))


@program
def map_of_rows(env):
    pair = udf(lambda row: Row(row.s, row.k), result_type="ROW<a STRING, b INT>")
    return env.from_path("t").map(pair).alias("x", "y").where(col("y") > 1)


# UNNEST.


@program
def unnest_of_arrays(env):
    return env.sql_query("SELECT s, x FROM t CROSS JOIN UNNEST(ARRAY[k, 7]) AS u (x)")


@program
def unnest_of_maps(env):
    return env.sql_query("SELECT s, x, y FROM t CROSS JOIN UNNEST(MAP[s, v, 'b' || s, 1.0E0]) AS u (x, y)")


@program
def unnest_of_rows(env):
    return env.sql_query("SELECT k, a, b FROM t CROSS JOIN UNNEST(ARRAY[ROW(k, s), ROW(0, 'z')]) AS u (a, b)")


@program
def unnest_with_ordinality(env):
    return env.sql_query("SELECT k, x, n FROM t CROSS JOIN UNNEST(ARRAY[s, 'z']) WITH ORDINALITY AS u (x, n)")


@program
def unnest_of_functions(env):
    env.create_temporary_function(
        "split_up", udf(lambda s: s.split() if s != "c" else None, result_type=DataTypes.ARRAY(DataTypes.STRING()))
    )
    return env.sql_query(
        "SELECT k, x FROM (SELECT k, split_up(s) AS parts FROM t) LEFT JOIN UNNEST(parts) AS u (x) ON TRUE"
    )


@program
def unnest_of_multisets(env):
    texts = "SELECT k, COLLECT(s) AS texts FROM t GROUP BY k"
    return env.sql_query(f"SELECT k, x FROM ({texts}) CROSS JOIN UNNEST(texts) AS u (x)")
