"""JSON of columns, in SQL and in the Table API; what PyFlink gives for constants is in ``test_function_matrix``."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.errors import ProgramError
from firesteel.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from firesteel.table.expression import (
    Expression,
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
)
from firesteel.table.expressions import (
    array,
    col,
    convert_tz,
    json,
    json_array,
    json_array_agg,
    json_object,
    json_object_agg,
    json_string,
    lit,
    map_,
)
from firesteel.table.functions.json_paths import json_path
from firesteel.table.functions.json_text import JsonError

ROWS = [
    (1, '{"name": "a", "price": 9.50, "tags": ["x", "y"]}', "d1", [3, 1]),
    (2, '{"price": 12, "name": "b", "tags": []}', "d2", [2]),
    (3, '{"name": null', "d3", None),
    (4, None, "d4", []),
]


@pytest.fixture(scope="module")
def table() -> Table:
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    memory = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
    env = TableEnvironment.create(settings.with_configuration(memory).build())
    columns = {
        "k": DataTypes.INT(),
        "j": DataTypes.STRING(),
        "d": DataTypes.STRING(),
        "l": DataTypes.ARRAY(DataTypes.INT()),
    }
    rows = env.from_elements(ROWS, DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in columns.items()]))
    env.create_temporary_view("t", rows)
    return rows


def of(table: Table, *expressions: Expression) -> list[Any]:
    with table.select(*expressions).execute().collect() as rows:
        return [row[0] if len(expressions) == 1 else tuple(row) for row in rows]


DEFAULT = JsonValueOnEmptyOrError.DEFAULT


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("j").json_value("$.name"), ["a", "b", None, None]),
        (col("j").json_value("$.price", DataTypes.DOUBLE()), [9.5, 12.0, None, None]),
        (col("j").json_value("lax $.z", None, DEFAULT, col("d"), DEFAULT, "bad"), ["d1", "d2", "bad", None]),
        (col("j").json_query("$.tags"), ['["x","y"]', "[]", None, None]),
        (col("j").json_query("$"), [
            '{"name":"a","price":9.50,"tags":["x","y"]}', '{"name":"b","price":12,"tags":[]}', None, None,
        ]),
        (col("j").json_query("$.name", JsonQueryWrapper.CONDITIONAL_ARRAY), ['["a"]', '["b"]', None, None]),
        (
            col("j").json_query("$.name", on_error=JsonQueryOnEmptyOrError.EMPTY_OBJECT),
            ["{}", "{}", "{}", None],
        ),
        (col("j").json_exists("$.tags[0]"), [True, False, False, None]),
        (col("j").json_exists("$.name", JsonExistsOnError.UNKNOWN), [True, True, None, None]),
        (col("j").is_json(), [True, True, False, False]),
        (col("j").is_json(JsonType.ARRAY), [False] * 4),
        (
            json_object(JsonOnNull.ABSENT, "l", col("l"), "k", col("k")),
            ['{"k":1,"l":[3,1]}', '{"k":2,"l":[2]}', '{"k":3}', '{"k":4,"l":[]}'],
        ),
        (json_array(JsonOnNull.NULL, col("l"), col("d")), ['[[3,1],"d1"]', '[[2],"d2"]', '[null,"d3"]', '[[],"d4"]']),
        (json_array(JsonOnNull.NULL, json(lit('{"b": 1, "a": 2}'))), ['[{"a":2,"b":1}]'] * 4),
        (json_string(col("l")), ["[3,1]", "[2]", None, "[]"]),
        (col("d").json_quote(), ['"d1"', '"d2"', '"d3"', '"d4"']),
        (col("d").json_quote().json_unquote(), ["d1", "d2", "d3", "d4"]),
        (lit("%03d %s").printf(col("k"), col("d")), ["001 d1", "002 d2", "003 d3", "004 d4"]),
        (col("l").array_sort(), [[1, 3], [2], None, []]),
        (col("l").array_except(array(1)), [[3], [2], None, []]),
        (col("l").array_intersect(array(1)), [[1], [], None, []]),
        (col("l").array_union(array(1)), [[3, 1], [2, 1], None, [1]]),
        (col("l").array_slice(2), [[1], [], None, []]),
        (lit("1.2.3.4").inet_aton().inet_ntoa(), ["1.2.3.4"] * 4),
        (convert_tz("2024-01-01 00:00:00", "UTC", "Asia/Tokyo"), ["2024-01-01 09:00:00"] * 4),
        (lit("http://h/p?a=1").parse_url("QUERY", "a"), ["1"] * 4),
        (col("d").regexp_extract_all("[0-9]", 0), [["1"], ["2"], ["3"], ["4"]]),
    ],
)  # fmt: skip
def test_of_columns(expression: Expression, expected: list[Any], table: Table) -> None:
    assert of(table, expression) == expected


def test_of_groups(table: Table) -> None:
    last = table.where(col("k") > 2).group_by(col("k"))
    made = last.select(
        json_array_agg(JsonOnNull.ABSENT, col("l").cardinality),
        json_array_agg(JsonOnNull.ABSENT, col("k").cast(DataTypes.DECIMAL(4, 2))),
        json_array_agg(JsonOnNull.ABSENT, map_(col("d"), col("l"))),
        json_object_agg(JsonOnNull.NULL, col("d"), col("k").cast(DataTypes.DOUBLE())),
    )
    with made.execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [
            ("[0]", "[4.00]", '[{"d4":[]}]', '{"d4":4.0}'),
            ("[]", "[3.00]", '[{"d3":null}]', '{"d3":3.0}'),
        ]


def test_an_error_where_it_is_asked_for(table: Table) -> None:
    asked = col("j").json_value("$.name", on_error=JsonValueOnEmptyOrError.ERROR)
    with pytest.raises(Exception, match="This is not JSON"):
        of(table, asked)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$['a b'].c", 1),
        ("$.l[1:]", [2, 3]),
        ("$.l[:2]", [1, 2]),
        ("$.l[-1]", 3),
        ("$.o[?(@.x > 1)].y", ["two"]),
        ("$.o[?(@.y == 'one' || @.x == 2)].x", [1, 2]),
        ("$.o[?(@.x >= 1 && @.z)].x", []),
        ("$.o[?(@.y != 'one')].x", [2]),
        ("$..x", [1, 2]),
        ("$.o.length()", 2),
        ("lax $.o[5].x", None),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    content = {"a b": {"c": 1}, "l": [1, 2, 3], "o": [{"x": 1, "y": "one"}, {"x": 2, "y": "two"}]}
    assert json_path(path).find(content) == expected


@pytest.mark.parametrize("path", ["a", "$.", "$[", "$[a]", "$.l[1 to 2]", "$.l[?(1)]", "$.sum()", "$.."])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(JsonError, match="JSON"):
        json_path(path)


def test_what_returning_takes(table: Table) -> None:
    with pytest.raises(ProgramError, match="STRING, BOOLEAN, INT and DOUBLE, not DATE"):
        table.select(col("j").json_value("$.a", DataTypes.DATE()))
