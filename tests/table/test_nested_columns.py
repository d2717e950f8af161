"""Arrays, maps and rows in the keys and in the state of queries: joins, groups, DISTINCT, deduplication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from savepointkit import Halves

from chaos.check import what_stands
from firesteel.common import Row, Types
from firesteel.datastream import DataStream
from firesteel.state_processor import Savepoint
from firesteel.table import DataTypes, Schema, StreamTableEnvironment

STEPS = [[0, 1, 2, 3], [1, 0, 4, 5, 6], [3, 7, 8, 0]]
ROW = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
EVENT = Types.ROW_NAMED(
    ["id", "tags", "scores", "place"],
    [Types.INT(), Types.LIST(Types.STRING()), Types.MAP(Types.STRING(), Types.DOUBLE()), ROW],
)


def event(n: int) -> Row:
    """Event 3 has NULLs, event 5 a NaN, which is equal to itself as a part of a key."""
    if n == 3:
        return Row(id=n % 4, tags=None, scores=None, place=Row(a=n % 3, b=None))
    score = float("nan") if n == 5 else n / 2
    return Row(id=n % 4, tags=["x"] * (n % 3), scores={"k": score}, place=Row(a=n % 3, b="r"))


def query(text: str) -> Callable[[DataStream], DataStream]:
    def build(numbers: DataStream) -> DataStream:
        tables = StreamTableEnvironment.create(numbers.get_execution_environment())
        schema = Schema.new_builder().column("id", DataTypes.INT())
        schema = schema.column("tags", "ARRAY<STRING>").column("scores", "MAP<STRING, DOUBLE>")
        events = numbers.map(event, output_type=EVENT).uid("events").set_parallelism(1)
        built = tables.from_data_stream(events, schema.column("place", "ROW<a INT, b STRING>").build())
        tables.create_temporary_view("events", built)
        return tables.to_changelog_stream(tables.sql_query(text))

    return build


def stands(changes: list[Row]) -> Counter[Any]:
    """By their texts: lists and dicts cannot be counted."""
    texts = [Row(*map(str, row)) for row in changes]
    for text, row in zip(texts, changes, strict=True):
        text.set_row_kind(row.get_row_kind())
    return what_stands(texts)


EVENTS = [event(n) for step in STEPS for n in step]


def counted(*columns: str) -> Counter[Any]:
    """GROUP BY these columns, in Python."""
    groups = Counter(tuple(str(row[name]) for name in columns) for row in EVENTS)
    return Counter({(*key, str(count)): 1 for key, count in groups.items()})


def joined() -> Counter[Any]:
    pairs = ((left, right) for left in EVENTS for right in EVENTS if left.id == right.id)
    return Counter((str(left.id), str(left.tags), str(right.scores), str(right.place)) for left, right in pairs)


def collected() -> Counter[Any]:
    """How many different values each group has, and the middle of the others' numbers."""
    found = []
    for key in {row.id for row in EVENTS}:
        own = [row for row in EVENTS if row.id == key]
        sizes = (len({str(row[name]) for row in own if row[name] is not None}) for name in ("tags", "scores", "place"))
        places = sorted(row.place.a for row in own for _ in range(row.place.a + 1))
        middle = len(places) // 2
        half = places[middle] if len(places) % 2 else (places[middle - 1] + places[middle]) / 2
        found.append((str(key), *map(str, sizes), str(float(half))))
    return Counter(found)


QUERIES = {
    "SELECT id, CARDINALITY(COLLECT(tags)), CARDINALITY(COLLECT(scores)), CARDINALITY(COLLECT(place)), "
    "PERCENTILE(place.a, 0.5, place.a + 1) FROM events GROUP BY id": collected(),
    "SELECT tags, COUNT(*) FROM events GROUP BY tags": counted("tags"),
    "SELECT scores, COUNT(*) FROM events GROUP BY scores": counted("scores"),
    "SELECT place, id, COUNT(*) FROM events GROUP BY place, id": counted("place", "id"),
    "SELECT a.id, a.tags, b.scores, b.place FROM events a JOIN events b ON a.id = b.id": joined(),
}


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize(("cut", "before", "after"), [(1, 2, 3), (2, 3, 1)])
def test_through_a_savepoint_at_another_parallelism(
    tmp_path: Path, text: str, cut: int, before: int, after: int
) -> None:
    halves = Halves(tmp_path)
    got = halves.save(query(text), STEPS[:cut], before)
    got += halves.resume(query(text), STEPS, after)
    assert stands(got) == QUERIES[text]


def test_a_savepoint_shows_them(tmp_path: Path) -> None:
    halves = Halves(tmp_path)
    halves.save(query("SELECT scores, place, COUNT(*) FROM events GROUP BY scores, place"), [[5, 3, 0]])
    savepoint = Savepoint.load(halves.path)
    (uid,) = (state.uid for state in savepoint.states() if state.name == "groups")
    rows = savepoint.read_arrow(uid, "groups").to_pylist()
    assert sorted(map(str, rows)) == [
        "{'scores': None, 'place': {'a': 0, 'b': None}, 'COUNT(*)': 1}",
        "{'scores': [('k', 0.0)], 'place': {'a': 0, 'b': 'r'}, 'COUNT(*)': 1}",
        "{'scores': [('k', nan)], 'place': {'a': 2, 'b': 'r'}, 'COUNT(*)': 1}",
    ]


def test_a_savepoint_shows_multisets_and_percentiles(tmp_path: Path) -> None:
    halves = Halves(tmp_path)
    halves.save(query("SELECT id, COLLECT(place) AS c, PERCENTILE(id, 0.5) AS p FROM events GROUP BY id"), [[5, 1, 1]])
    savepoint = Savepoint.load(halves.path)
    (uid,) = (state.uid for state in savepoint.states() if state.name == "groups")
    (row,) = savepoint.read_arrow(uid, "groups").to_pylist()
    assert row["id"] == 1
    assert row["COLLECT(place)"] == [({"a": 2, "b": "r"}, 1), ({"a": 1, "b": "r"}, 2)]
    assert row["PERCENTILE(id)"] == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(DISTINCT tags), COUNT(DISTINCT place), COUNT(DISTINCT scores) FROM events", [("3", "4", "8")]),
        ("SELECT DISTINCT tags FROM events", [("None",), ("[]",), ("['x', 'x']",), ("['x']",)]),
        (
            "SELECT tags FROM events WHERE id = 0 INTERSECT SELECT tags FROM events WHERE id = 1",
            [("['x', 'x']",), ("['x']",)],
        ),
        (
            "SELECT a.tags, b.place FROM (SELECT DISTINCT tags FROM events) a JOIN "
            "(SELECT DISTINCT tags, place FROM events WHERE id = 0) b ON a.tags = b.tags",
            [("['x', 'x']", "Row(a=2, b='r')"), ("['x']", "Row(a=1, b='r')"), ("[]", "Row(a=0, b='r')")],
        ),
        (
            "SELECT id, FIRST_VALUE(tags), LAST_VALUE(scores), LAST_VALUE(place) FROM events GROUP BY id",
            [
                ("0", "[]", "{'k': 0.0}", "Row(a=0, b='r')"),
                ("1", "['x']", "{'k': nan}", "Row(a=2, b='r')"),
                ("2", "['x', 'x']", "{'k': 3.0}", "Row(a=0, b='r')"),
                ("3", "['x']", "{'k': 3.5}", "Row(a=1, b='r')"),
            ],
        ),
        (
            "SELECT tags, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY tags ORDER BY id DESC) AS n FROM events) "
            "WHERE n = 1",
            [("None", "3"), ("[]", "2"), ("['x', 'x']", "2"), ("['x']", "3")],
        ),
    ],
)
def test_what_stands(tmp_path: Path, text: str, expected: list[tuple[str, ...]]) -> None:
    got = Halves(tmp_path).whole(query(text), STEPS, 2)
    assert sorted(stands(got).elements()) == sorted(expected)
