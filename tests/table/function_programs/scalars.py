"""Programs with scalar functions, of rows and of pandas."""

import datetime
from decimal import Decimal

from firesteel.common import Row
from firesteel.table import DataTypes
from firesteel.table.expressions import call, col
from firesteel.table.udf import (
    ScalarFunction,
    udf,
)
from function_programs.kit import program, types_table


@program
def scalar_lambda(env):
    add = udf(lambda i, j: None if i is None else i + j, result_type=DataTypes.BIGINT())
    return env.from_path("t").select(add(col("k"), 10), add(col("k"), col("k")).alias("twice"))


@program
def scalar_with_input_types(env):
    add = udf(lambda i: None if i is None else i + 1, [DataTypes.BIGINT()], DataTypes.BIGINT())
    return env.from_path("t").select(add(col("k")).alias("more"))


@program
def scalar_by_name_in_sql(env):
    @udf(result_type="STRING")
    def hello(name):
        return f"hello {name}"

    env.create_temporary_function("hello", hello)
    return env.sql_query("SELECT hello(s), HELLO('x') AS c FROM t")


@program
def scalar_system_function_hides_a_built_in_one(env):
    env.create_temporary_system_function("upper", udf(lambda s: f"<{s}>", result_type=DataTypes.STRING()))
    return env.sql_query("SELECT UPPER(s) AS u FROM t")


@program
def scalar_catalog_function_does_not_hide_a_built_in_one(env):
    env.create_temporary_function("upper", udf(lambda s: f"<{s}>", result_type=DataTypes.STRING()))
    return env.sql_query("SELECT UPPER(s) AS u, default_catalog.default_database.`upper`(s) AS own FROM t")


class Prefix(ScalarFunction):
    def __init__(self, prefix):
        self.prefix = prefix

    def open(self, function_context):
        self.calls = 0
        self.extra = function_context.get_job_parameter("extra", "none")

    def eval(self, text):
        self.calls += 1
        return f"{self.prefix}{self.calls}{self.extra}{text}"

    def is_deterministic(self):
        return False


@program
def scalar_class_with_open(env):
    env.get_config().set("pipeline.global-job-parameters", "extra:!")
    return env.from_path("t").select(udf(Prefix("p"), result_type=DataTypes.STRING())(col("s")).alias("p"))


@program
def scalar_nulls(env):
    nothing = udf(lambda v: None, result_type=DataTypes.DOUBLE())
    known = udf(lambda v: v is not None, result_type=DataTypes.BOOLEAN())
    return env.from_path("t").select(nothing(col("v")).alias("n"), known(col("v")).alias("k"))


def _identity(kind):
    return udf(lambda value: value, result_type=kind)


@program
def scalar_values_of_all_types_pass(env):
    table = types_table(env)
    kinds = {
        "b": DataTypes.BOOLEAN(),
        "i8": DataTypes.TINYINT(),
        "i16": DataTypes.SMALLINT(),
        "i32": DataTypes.INT(),
        "i64": DataTypes.BIGINT(),
        "f32": DataTypes.FLOAT(),
        "f64": DataTypes.DOUBLE(),
        "dec": DataTypes.DECIMAL(10, 3),
        "s": DataTypes.STRING(),
        "raw": DataTypes.BYTES(),
        "d": DataTypes.DATE(),
        "tm": DataTypes.TIME(),
        "ts": DataTypes.TIMESTAMP(3),
        "arr": DataTypes.ARRAY(DataTypes.BIGINT()),
        "m": DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT()),
    }
    return table.select(*[_identity(kind)(col(name)).alias(name) for name, kind in kinds.items()])


@program
def scalar_gets_python_types(env):
    table = types_table(env)
    shown = udf(lambda value: f"{type(value).__name__} {value!r}", result_type=DataTypes.STRING())
    names = ["b", "i8", "i64", "f32", "f64", "dec", "s", "raw", "d", "tm", "ts", "arr", "m"]
    return table.select(*[shown(col(name)).alias(name) for name in names])


@program
def scalar_gets_rows(env):
    shown = udf(lambda row: f"{row[0]} {row.b} {row.as_dict()}", result_type=DataTypes.STRING())
    env.create_temporary_system_function("shown", shown)
    return env.sql_query("SELECT shown(CAST(ROW(k, s) AS ROW<a INT, b STRING>)) AS r FROM t")


@program
def scalar_decimals_are_rounded(env):
    third = udf(lambda k: Decimal(k) / 8, result_type=DataTypes.DECIMAL(10, 2))
    env.create_temporary_function("eighth", third)
    return env.sql_query("SELECT eighth(k) AS a FROM (VALUES (1), (3), (5), (-1)) AS x(k)")


@program
def scalar_numbers_fit_their_types(env):
    table = env.from_elements([(1, 2.0)], ["i", "f"])
    return table.select(
        _identity(DataTypes.DOUBLE())(col("i")).alias("double_of_int"),
        udf(lambda i: True, result_type=DataTypes.BIGINT())(col("i")).alias("bigint_of_bool"),
        udf(lambda i: i, result_type=DataTypes.BOOLEAN())(col("i")).alias("boolean_of_int"),
        udf(lambda i: 1.1, result_type=DataTypes.FLOAT())(col("i")).alias("float"),
    )


@program
def scalar_gives_rows(env):
    pair = udf(
        lambda k, s: Row(s, k),
        result_type=DataTypes.ROW(
            [DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("id", DataTypes.INT())]
        ),
    )
    env.create_temporary_system_function("pair", pair)
    return env.sql_query("SELECT p.name, p.id FROM (SELECT pair(k, s) AS p FROM t WHERE k IS NOT NULL)")


@program
def scalar_gives_collections(env):
    split = udf(lambda s: s.split(), result_type=DataTypes.ARRAY(DataTypes.STRING()))
    lengths = udf(
        lambda s: {word: len(word) for word in s.split()},
        result_type=DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()),
    )
    return env.from_path("t").select(split(col("s")).alias("words"), lengths(col("s")).alias("lengths"))


@program
def scalar_in_conditions(env):
    env.create_temporary_function("even", udf(lambda k: k is not None and k % 2 == 0, result_type="BOOLEAN"))
    return env.sql_query("SELECT k, s, even(k) FROM t WHERE NOT even(k) AND v > 0")


@program
def scalar_of_scalar(env):
    inc = udf(lambda k: (k or 0) + 1, result_type="INT")
    return env.from_path("t").select(inc(inc(inc(col("k")))).alias("a"), (inc(col("k")) * 2 + 1).alias("b"))


@program
def scalar_in_case(env):
    env.create_temporary_function("inc", udf(lambda k: (k or 0) + 1, result_type="INT"))
    return env.sql_query("SELECT CASE WHEN inc(k) > 2 THEN inc(k) WHEN k IS NULL THEN -1 ELSE 0 END AS c FROM t")


@program
def scalar_constants(env):
    env.create_temporary_function("now", udf(lambda: 42, result_type="INT"))
    env.create_temporary_function("fixed", udf(lambda: 42, result_type="INT"))
    env.create_temporary_function("adding", udf(lambda a, b: a + b, result_type="INT"))
    return env.sql_query("SELECT fixed() AS a, adding(1, 2) AS b, s FROM t")


@program
def scalar_as_key_and_argument(env):
    env.create_temporary_function("size", udf(len, result_type="INT"))
    return env.sql_query("SELECT size(s) AS n, COUNT(*) AS c, SUM(size(s)) AS total FROM t GROUP BY size(s)")


@program
def scalar_of_changes(env):
    env.create_temporary_function("twice", udf(lambda n: n * 2, result_type="BIGINT"))
    return env.sql_query("SELECT k, twice(n) AS n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)")


@program
def scalar_in_a_join(env):
    env.create_temporary_function("inc", udf(lambda k: (k or 0) + 1, result_type="INT"))
    return env.sql_query("SELECT a.s, b.s AS s2 FROM t AS a JOIN t AS b ON a.k = b.k WHERE inc(a.k) = 3")


@program
def scalar_callable_object(env):
    class Times:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, value):
            return None if value is None else value * self.factor

    return env.from_path("t").select(udf(Times(3), result_type=DataTypes.DOUBLE())(col("v")).alias("v"))


@program
def scalar_by_call(env):
    env.create_temporary_function("inc", udf(lambda k: (k or 0) + 1, result_type="INT"))
    return env.from_path("t").select(call("inc", col("k")).alias("k")).where(call("inc", col("k")) > 2)


@program
def scalar_moments(env):
    later = udf(lambda moment: moment + datetime.timedelta(hours=1), result_type=DataTypes.TIMESTAMP_LTZ(3))
    shown = udf(lambda moment: f"{type(moment).__name__} {moment.isoformat()}", result_type="STRING")
    env.create_temporary_function("later", later)
    env.create_temporary_function("shown", shown)
    return env.sql_query(
        "SELECT CAST(later(x) AS STRING) AS a, shown(x) AS b, shown(CAST(x AS TIMESTAMP(6))) AS c "
        "FROM (SELECT TO_TIMESTAMP_LTZ(k * 1000000, 3) AS x FROM t WHERE k IS NOT NULL)"
    )


@program
def scalar_of_long_and_short_decimals(env):
    half = udf(lambda value: value / 2, result_type=DataTypes.DECIMAL(38, 18))
    env.create_temporary_function("half", half)
    return env.sql_query(
        "SELECT half(CAST(1.5 AS DECIMAL(3, 1))) AS a, half(CAST(k AS DECIMAL(20, 0))) AS b FROM t WHERE k > 0"
    )


@program
def scalar_nested_rows(env):
    kind = "ROW<a INT, b ROW<c STRING, d ARRAY<INT>>>"
    nested = udf(lambda k, s: Row(k, Row(s, [k, k])), result_type=kind)
    back = udf(lambda row: f"{row.b.c} {row.b.d} {row.a}", result_type="STRING")
    env.create_temporary_function("nested", nested)
    env.create_temporary_function("back", back)
    return env.sql_query("SELECT back(x) AS e, x.a FROM (SELECT nested(k, s) AS x FROM t WHERE k > 0)")


@program
def scalar_with_several_keys_of_a_map(env):
    merged = udf(lambda m, k: {**m, "k": k}, result_type=DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()))
    env.create_temporary_function("merged", merged)
    return env.sql_query("SELECT merged(MAP[s, k], k)['k'] AS a, merged(MAP[s, k], 5)[s] AS b FROM t WHERE k > 0")


# Functions of pandas.


@program
def pandas_scalar(env):
    twice = udf(lambda v: v * 2, result_type=DataTypes.DOUBLE(), func_type="pandas")
    both = udf(lambda v, k: v + k, result_type=DataTypes.DOUBLE(), func_type="pandas")
    return env.from_path("t").select(twice(col("v")).alias("a"), both(col("v"), col("k")).alias("b"))


@program
def pandas_text_and_nulls(env):
    upper = udf(lambda s: s.str.upper(), result_type=DataTypes.STRING(), func_type="pandas")
    dtype = udf(lambda k: k.map(lambda _: str(k.dtype)), result_type=DataTypes.STRING(), func_type="pandas")
    filled = udf(lambda k: k.fillna(-1), result_type=DataTypes.INT(), func_type="pandas")
    return env.from_path("t").select(upper(col("s")), dtype(col("k")), filled(col("k")), dtype(col("v")))


@program
def pandas_gives_rows(env):
    import pandas

    @udf(
        result_type=DataTypes.ROW([DataTypes.FIELD("a", DataTypes.DOUBLE()), DataTypes.FIELD("b", DataTypes.STRING())]),
        func_type="pandas",
    )
    def pair(v, s):
        return pandas.concat([v, s], axis=1)

    return env.from_path("t").map(pair(col("v"), col("s"))).alias("x", "y")


@program
def pandas_beside_general(env):
    twice = udf(lambda v: v * 2, result_type=DataTypes.DOUBLE(), func_type="pandas")
    inc = udf(lambda v: None if v is None else v + 1, result_type=DataTypes.DOUBLE())
    return env.from_path("t").select(inc(twice(col("v"))).alias("a"), twice(inc(col("v"))).alias("b"))


@program
def pandas_gets_constants_as_they_are(env):
    shown = udf(lambda v, *given: v.map(lambda _: f"{given!r}"), result_type=DataTypes.STRING(), func_type="pandas")
    rounded = udf(lambda v, digits: v.round(digits), result_type=DataTypes.DOUBLE(), func_type="pandas")
    env.create_temporary_function("shown", shown)
    env.create_temporary_function("rounded", rounded)
    return env.sql_query(
        "SELECT shown(k, 1, 'x', TRUE, 1.5, 2e0, CAST(NULL AS INT), DATE '2024-02-29') AS a, "
        "rounded(v / 3, 1 + 1) AS b FROM t"
    )


@program
def pandas_in_conditions(env):
    large = udf(lambda v: v > 1, result_type=DataTypes.BOOLEAN(), func_type="pandas")
    return env.from_path("t").where(large(col("v"))).select(col("s"))
