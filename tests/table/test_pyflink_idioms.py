"""What PyFlink's tutorials write again and again."""

from __future__ import annotations

import pandas as pd
import pytest

from firesteel.errors import ProgramError
from firesteel.table import DataTypes, TableEnvironment, TableSchema
from firesteel.table.expressions import array, col, lit, range_, with_columns, without_columns
from firesteel.table.sql import SqlValidationError


def test_a_table_stands_in_the_text_of_a_query(env: TableEnvironment) -> None:
    table = env.from_elements([(1, "Hi"), (2, "Hello")], ["id", "data"])
    large = env.sql_query("SELECT data FROM %s WHERE id > 1" % table)  # noqa: UP031 (as tutorials write it)
    assert large.to_pandas()["data"].tolist() == ["Hello"]
    assert env.sql_query(f"SELECT a.id FROM {table} AS a JOIN {table} AS b ON a.id = b.id + 1").to_pandas().size == 1
    assert str(table) == str(table)
    assert str(table) != str(large)
    assert repr(table) == "Table(`id` BIGINT, `data` STRING)"


def test_columns_by_range_and_choice(env: TableEnvironment) -> None:
    table = env.from_elements([(1, 2, 3, 4)], ["a", "b", "c", "d"])

    def names(*fields: object) -> list[str]:
        return table.select(*fields).get_schema().get_field_names()  # type: ignore[arg-type]

    assert names(range_("b", "d")) == ["b", "c", "d"]
    assert names(with_columns(range_(1, 2), col("d"))) == ["a", "b", "d"]
    assert names(with_columns(3)) == ["c"]
    assert names(without_columns(col("a"), range_("c", "d"))) == ["b"]
    assert table.drop_columns(range_("a", "c")).get_schema().get_field_names() == ["d"]
    with pytest.raises(SqlValidationError, match="There is no column 5: the columns are numbered from 1 to 4"):
        names(range_(2, 5))
    with pytest.raises(SqlValidationError, match="There is no column x"):
        names(without_columns(col("x")))
    with pytest.raises(ProgramError, match="by their numbers, or with range_"):
        names(with_columns(col("a") + 1))


def test_data_frames_with_types(env: TableEnvironment) -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [1.5, 2.5]})
    types = [DataTypes.INT(), DataTypes.FLOAT()]
    assert env.from_pandas(frame, types).get_schema() == TableSchema(["x", "y"], types)
    assert env.from_pandas(frame, ["a", "b"]).get_schema().get_field_names() == ["a", "b"]
    with pytest.raises(ProgramError, match="The schema has 1 columns, the data frame 2"):
        env.from_pandas(frame, ["a"])


def test_schemas_of_tables_and_results(env: TableEnvironment) -> None:
    table = env.sql_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    for schema in (table.get_schema(), table.execute().get_table_schema()):
        assert schema.get_field_count() == 2
        assert schema.get_field_name(1) == "n"
        assert schema.get_field_name(2) is None
        assert schema.get_field_data_type("k") == schema.get_field_data_type(0) == DataTypes.INT()
        assert schema.get_field_data_type("x") is None
    for resolved in (table.get_resolved_schema(), table.execute().get_resolved_schema()):
        assert resolved.get_column_names() == ["k", "n"]
        assert resolved.get_column_data_types()[1] == DataTypes.BIGINT(nullable=False)


def test_arguments_by_name(env: TableEnvironment) -> None:
    text, numbers = col("text"), array(1, 5, 3)
    chosen = [
        text.substring(begin_index=2, length=3),
        text.lpad(length=8, pad="*"),
        text.replace(replacement="y", search="f"),
        text.regexp_extract("(f)(i)", extract_index=2),
        numbers.array_max(),
        numbers.array_append(addition=7).cardinality,
        lit(2.345).round(places=2),
        text.url_encode(),
    ]
    table = env.from_elements([("firé",)], ["text"]).select(*chosen)
    with table.execute().collect() as rows:
        (row,) = [list(one) for one in rows]
    assert [str(value) for value in row] == ["iré", "****firé", "yiré", "i", "5", "4", "2.35", "fir%C3%A9"]
    with pytest.raises(TypeError, match="SUBSTRING of a column: missing a required argument: 'begin_index'"):
        text.substring()
    # None is an argument where one is needed.
    assert repr(numbers.array_append(None)).count("NULL") == 1
