"""Functions that give what does not fit their types."""

import datetime
from decimal import Decimal

from firesteel.table import DataTypes
from firesteel.table.expressions import col
from firesteel.table.udf import (
    udf,
)
from function_programs.kit import PROGRAMS, program


def _wrong(result, kind):
    def wrong(env):
        return env.from_elements([(1,)], ["a"]).select(udf(lambda a: result, result_type=kind)(col("a")).alias("x"))

    return wrong


for _name, _result, _kind in (
    ("float_for_bigint", 1.5, DataTypes.BIGINT()),
    ("whole_float_for_bigint", 2.0, DataTypes.BIGINT()),
    ("text_for_bigint", "1", DataTypes.BIGINT()),
    ("large_number_for_int", 1 << 40, DataTypes.INT()),
    ("number_for_text", 1, DataTypes.STRING()),
    ("number_for_decimal", 1, DataTypes.DECIMAL(5, 2)),
    ("date_for_timestamp", datetime.date(2024, 1, 1), DataTypes.TIMESTAMP(3)),
    ("timestamp_for_date", datetime.datetime(2024, 1, 1, 5), DataTypes.DATE()),
    ("list_for_row", [1, 2], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT())])),
    ("text_for_double", "1.5", DataTypes.DOUBLE()),
    ("tuple_for_array", (1, 2), DataTypes.ARRAY(DataTypes.BIGINT())),
    ("bytearray_for_bytes", bytearray(b"a"), DataTypes.BYTES()),
    ("none_for_not_null", None, DataTypes.BIGINT(False)),
    ("decimal_for_double", Decimal("1.25"), DataTypes.DOUBLE()),
    ("decimal_for_bigint", Decimal("-1.75"), DataTypes.BIGINT()),
):
    _made = _wrong(_result, _kind)
    _made.__name__ = f"misfit_{_name}"
    PROGRAMS.append(_made)


@program
def misfit_fractions_of_pandas_for_int(env):
    same = udf(lambda v: v, result_type=DataTypes.INT(), func_type="pandas")
    return env.from_path("t").select(same(col("v")).alias("x"))


@program
def misfit_whole_floats_of_pandas_for_int(env):
    rounded = udf(lambda v: v.round(), result_type=DataTypes.INT(), func_type="pandas")
    return env.from_path("t").select(rounded(col("v")).alias("x"))
