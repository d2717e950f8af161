"""Data frames of tables: the types that PyFlink 2.3 gives."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from firesteel.table import DataTypes, TableEnvironment
from firesteel.table.expressions import col

MOMENT = datetime.datetime(2020, 1, 1, 1, 2, 3)
ROW = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("l", DataTypes.ARRAY(DataTypes.INT()))])


def frame(env: TableEnvironment, kind: Any, values: list[Any]) -> Any:
    rows = [(value,) for value in values]
    return env.from_elements(rows, DataTypes.ROW([DataTypes.FIELD("a", kind)])).to_pandas()["a"]


@pytest.mark.parametrize(
    ("kind", "value", "full", "with_null", "only_null"),
    [
        (DataTypes.TINYINT(), 1, "int8", "float64", "float64"),
        (DataTypes.SMALLINT(), 1, "int16", "float64", "float64"),
        (DataTypes.INT(), 1, "int32", "float64", "float64"),
        (DataTypes.BIGINT(), 1, "int64", "float64", "float64"),
        (DataTypes.FLOAT(), 1.5, "float32", "float32", "float32"),
        (DataTypes.DOUBLE(), 1.5, "float64", "float64", "float64"),
        (DataTypes.BOOLEAN(), True, "bool", "object", "object"),
        (DataTypes.DECIMAL(10, 2), Decimal("1.50"), "object", "object", "object"),
        (DataTypes.STRING(), "s", "object", "object", "object"),
        (DataTypes.DATE(), MOMENT.date(), "object", "object", "object"),
        (DataTypes.TIME(), MOMENT.time(), "object", "object", "object"),
        (DataTypes.TIMESTAMP(0), MOMENT, "datetime64[s]", "datetime64[s]", "datetime64[s]"),
        (DataTypes.TIMESTAMP(3), MOMENT, "datetime64[ms]", "datetime64[ms]", "datetime64[ms]"),
        (DataTypes.TIMESTAMP(9), MOMENT, "datetime64[ns]", "datetime64[ns]", "datetime64[ns]"),
        (DataTypes.TIMESTAMP_LTZ(3), MOMENT, *["datetime64[ms, Asia/Shanghai]"] * 3),
    ],
)
def test_types_of_columns(
    env: TableEnvironment, kind: Any, value: Any, full: str, with_null: str, only_null: str
) -> None:
    env.get_config().set_local_timezone("Asia/Shanghai")
    assert [str(frame(env, kind, values).dtype) for values in ([value], [value, None], [None])] == [
        full,
        with_null,
        only_null,
    ]
    assert frame(env, kind, [None]).isna().all()


def test_values_that_pandas_has_no_type_for(env: TableEnvironment) -> None:
    env.get_config().set_local_timezone("Asia/Shanghai")
    assert repr(frame(env, DataTypes.ARRAY(DataTypes.INT()), [[1, 2]])[0]) == "array([1, 2], dtype=int32)"
    assert repr(frame(env, ROW, [(5, [1, None])])[0]) == "{'x': 5, 'l': array([ 1., nan])}"
    assert frame(env, DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), [{"k": 1}])[0] == {"k": 1}
    assert frame(env, DataTypes.TIMESTAMP_LTZ(3), [MOMENT])[0].isoformat() == "2020-01-01T09:02:03+08:00"


def test_final_rows_are_in_the_order_of_their_last_changes(env: TableEnvironment) -> None:
    table = env.from_elements([(1, "a"), (2, "b"), (3, "a")], ["v", "k"])
    sums = table.group_by(col("k")).select(col("k"), col("v").sum.alias("s")).to_pandas()
    assert sums.values.tolist() == [["b", 2], ["a", 4]]
    none = table.where(col("v") > 5).to_pandas()
    assert (list(none.columns), len(none)) == (["v", "k"], 0)
