"""Rows."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind

VALUES = st.lists(st.one_of(st.integers(), st.text(), st.none(), st.booleans(), st.binary()), max_size=5)


def test_positions_names_and_templates() -> None:
    person = Row("name", "age")
    ada = person("Ada", 36)
    assert ada == Row(name="Ada", age=36)
    assert (ada.name, ada["age"], ada[-1], ada[:1], len(ada), list(ada)) == (
        "Ada",
        36,
        36,
        ["Ada"],
        2,
        ["Ada", 36],
    )
    assert "name" in ada
    assert "Ada" not in ada
    assert "Ada" in Row("Ada")


def test_reprs() -> None:
    assert repr(Row("a", 1)) == "<Row('a', 1)>"
    assert repr(Row(a="x", b=None)) == "Row(a='x', b=None)"


def test_setting_fields() -> None:
    row = Row(a=1, b=2)
    row["a"] = 5
    row[1] = 6
    assert row.as_dict() == {"a": 5, "b": 6}
    row.set_field_names(["c", "d"])
    assert row.as_dict() == {"c": 5, "d": 6}
    with pytest.raises(AttributeError):
        row.c = 1  # type: ignore[attr-defined]


def test_errors_name_the_fields_there_are() -> None:
    with pytest.raises(ValueError, match=r"No field 'z' in a row with the fields \['a'\]"):
        Row(a=1)["z"]
    with pytest.raises(ValueError, match="with no field names"):
        Row(1)["z"]
    with pytest.raises(AttributeError):
        _ = Row(a=1).z
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=1)
    with pytest.raises(ValueError, match="names 1 fields, got 2 values"):
        Row("a")(1, 2)
    with pytest.raises(TypeError, match="has no field names"):
        Row(1).as_dict()
    with pytest.raises(ValueError, match=r"No fields \['z'\]"):
        Row(a=1).get_fields_by_names(["z"])


def test_equality_minds_names_kind_and_values_but_not_the_order_of_names() -> None:
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert hash(Row(a=1, b=2)) == hash(Row(b=2, a=1))
    assert Row(a=1) != Row(1)
    assert Row(1) != (1,)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)
    assert Row(a=1) != Row(b=1)


def test_a_row_can_be_a_key() -> None:
    counts = {Row("a", 1): 1}
    counts[Row("a", 1)] += 1
    assert counts == {Row("a", 1): 2}


def test_kinds() -> None:
    row = Row(1)
    assert row.get_row_kind() is RowKind.INSERT
    row.set_row_kind(RowKind.UPDATE_BEFORE)
    assert str(row.get_row_kind()) == "-U"
    assert row._is_retract_msg()


@given(VALUES)
def test_pickling_and_copying_keep_a_row(values: list[object]) -> None:
    row = Row(*values)
    row.set_row_kind(RowKind.UPDATE_AFTER)
    named = Row(**{f"f{i}": value for i, value in enumerate(values)})
    for original in (row, named):
        for back in (pickle.loads(pickle.dumps(original)), copy.copy(original), copy.deepcopy(original)):
            assert back == original
            assert hash(back) == hash(original)
            assert repr(back) == repr(original)


def test_pickles_are_compact() -> None:
    assert len(pickle.dumps([Row(i, i) for i in range(100)])) < 100 * 16 + 200
