"""Random patterns, arrays to unnest and stacks of views: streams and batches give what plain Python gives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
from conftest import SETTINGS
from hypothesis import given, settings

from firesteel.common import Configuration, RowKind
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment

Rows = Counter[tuple[Any, ...]]


def environments() -> list[TableEnvironment]:
    """One for streams, one for batches."""
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(SETTINGS))
    return [TableEnvironment.create(mode().build()) for mode in (builder.in_streaming_mode, builder.in_batch_mode)]


def what_stands(env: TableEnvironment, query: str) -> Rows:
    """The rows that a query leaves."""
    found: Rows = Counter()
    with env.execute_sql(query).collect() as rows:
        for row in rows:
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            found[tuple(row)] += 1 if added else -1
    assert all(count >= 0 for count in found.values()), "a row is taken back that was never there"
    return +found


# Patterns. Each variable has a letter of its own, so that a regular expression means the same.


@dataclass(frozen=True)
class Pattern:
    variables: tuple[tuple[str, str], ...]
    """Letters in their order, each with how often it comes."""
    past_last_row: bool

    @property
    def text(self) -> str:
        return " ".join(f"{letter.upper()}{times}" for letter, times in self.variables)

    def query(self, table: str) -> str:
        counts = ", ".join(f"COUNT({letter.upper()}.n) AS {letter}" for letter, _ in self.variables)
        last = self.variables[-1][0].upper()
        defined = ", ".join(f"{letter.upper()} AS s = '{letter}'" for letter, _ in self.variables)
        skip = "PAST LAST ROW" if self.past_last_row else "TO NEXT ROW"
        return f"""SELECT * FROM {table} MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY ts MEASURES {counts}, LAST({last}.n) AS final
            AFTER MATCH SKIP {skip} PATTERN ({self.text}) DEFINE {defined})"""

    def matches(self, letters: Sequence[tuple[str, int]]) -> list[tuple[int, ...]]:
        """For each match how often each variable came, and the number of the last row."""
        text = "".join(letter for letter, _ in letters)
        expression = re.compile("".join(f"({_grouped(letter, times)})" for letter, times in self.variables))
        found, start = [], 0
        while start < len(text):
            match = expression.match(text, start)
            if match is not None:
                found.append((*(len(part) for part in match.groups()), letters[match.end() - 1][1]))
            start = match.end() if match is not None and self.past_last_row else start + 1
        return found


def _grouped(letter: str, times: str) -> str:
    return f"(?:{letter}){times}"


FIXED = ("", "{2}")
GREEDY = ("+", "{1,2}", "{2,}")
RELUCTANT = ("+?", "{1,3}?")
OPTIONAL = ("*", "?", "{0,2}")


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    letters = draw(st.permutations("abcd").map(lambda order: order[:3]))
    count = draw(st.integers(1, 3))
    times: list[str] = []
    for _ in range(count - 1):
        # As in Flink nothing that may be left out comes behind what takes as much as it can.
        eager = bool(times) and times[-1] in (*GREEDY, *OPTIONAL)
        times.append(draw(st.sampled_from([*FIXED, *GREEDY, *RELUCTANT, *([] if eager else [*OPTIONAL, "*?"])])))
    # And a pattern does not end with what may go on.
    times.append(draw(st.sampled_from(FIXED)))
    return Pattern(tuple(zip(letters[:count], times, strict=True)), draw(st.booleans()))


EVENTS = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("aabbcd")), min_size=1, max_size=14)


def _chosen(values: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(repr(value) for value in values)}][CAST(n AS INT)]"


@settings(max_examples=25)
@given(patterns(), EVENTS)
def test_patterns_match_as_regular_expressions_do(pattern: Pattern, events: list[tuple[str, str]]) -> None:
    expected: Rows = Counter()
    for key in ("x", "y"):
        own = [(letter, number) for number, (other, letter) in enumerate(events, 1) if other == key]
        expected.update((key, *match) for match in pattern.matches(own))
    for env in environments():
        env.execute_sql(f"""CREATE TABLE events (
            n BIGINT, k AS {_chosen([key for key, _ in events])}, s AS {_chosen([letter for _, letter in events])},
            ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 00:00:00.000'), WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
            'fields.n.end' = '{len(events)}')""")
        assert what_stands(env, pattern.query("events")) == expected, pattern.text


# Arrays, maps and multisets.

NUMBERS = st.one_of(st.none(), st.integers(-2, 3))
COLLECTIONS = st.tuples(
    st.integers(0, 3),
    st.one_of(st.none(), st.lists(NUMBERS, max_size=4)),
    st.one_of(st.none(), st.dictionaries(st.sampled_from("abc"), NUMBERS)),
    st.one_of(st.none(), st.lists(st.tuples(NUMBERS, st.sampled_from(["u", "v", None])), max_size=3)),
)
KIND = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("a", DataTypes.ARRAY(DataTypes.INT())),
        DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
        DataTypes.FIELD(
            "r",
            DataTypes.ARRAY(
                DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())])
            ),
        ),
    ]
)
Row4 = tuple[int, list[Any] | None, dict[str, Any] | None, list[tuple[Any, Any]] | None]


def _inner(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(row[0], value) for row in rows for value in row[1] or ()]


def _left(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(row[0], value) for row in rows for value in row[1] or (None,)]


def _numbered(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(row[0], value, place) for row in rows for place, value in enumerate(row[1] or (), 1)]


def _pairs(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(row[0], key, value) for row in rows for key, value in (row[2] or {}).items() if (value or 0) >= 0]


def _records(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(row[0], *record) for row in rows for record in row[3] or ()]


def _counted(rows: list[Row4]) -> list[tuple[Any, ...]]:
    return [(value, count) for value, count in Counter(value for _, value in _inner(rows)).items()]


UNNESTED: dict[str, Callable[[list[Row4]], list[tuple[Any, ...]]]] = {
    "SELECT id, x FROM t CROSS JOIN UNNEST(a) AS u (x)": _inner,
    "SELECT id, x FROM t LEFT JOIN UNNEST(a) AS u (x) ON TRUE": _left,
    "SELECT id, x, p FROM t CROSS JOIN UNNEST(a) WITH ORDINALITY AS u (x, p)": _numbered,
    "SELECT id, x, y FROM t CROSS JOIN UNNEST(m) AS u (x, y) WHERE y >= 0 OR y IS NULL": _pairs,
    "SELECT id, x, y FROM t CROSS JOIN UNNEST(r) AS u (x, y)": _records,
    "SELECT x, COUNT(*) FROM t CROSS JOIN UNNEST(a) AS u (x) GROUP BY x": _counted,
    "SELECT id, x, y FROM (SELECT id, COLLECT(w) AS c FROM (SELECT id, ROW(x, y) AS w FROM t CROSS JOIN UNNEST(r) "
    "AS u (x, y)) GROUP BY id) CROSS JOIN UNNEST(c) AS v (x, y)": _records,
}


@settings(max_examples=12)
@given(st.lists(COLLECTIONS, min_size=1, max_size=6), st.sampled_from(sorted(UNNESTED)))
def test_collections_are_unnested(rows: list[Row4], query: str) -> None:
    expected = Counter(UNNESTED[query](rows))
    for env in environments():
        env.create_temporary_view("t", env.from_elements(rows, KIND))
        assert what_stands(env, query) == expected


# Views of views. Each step is SQL over the view before, and the same in Python.

Pairs = list[tuple[Any, Any]]


def _group(rows: Pairs) -> Pairs:
    groups: dict[Any, list[Any]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    return [
        (key, sum(known) if (known := [v for v in values if v is not None]) else None) for key, values in groups.items()
    ]


def _largest(rows: Pairs) -> Pairs:
    best: dict[Any, Any] = {}
    for key, value in rows:
        if value is not None:
            best[key] = max(value, best.get(key, value))
    return list(best.items())


STEPS: dict[str, Callable[[Pairs], Pairs]] = {
    "SELECT k, v FROM {0} WHERE v > 0 OR k IS NULL": lambda rows: [
        (key, value) for key, value in rows if (value is not None and value > 0) or key is None
    ],
    "SELECT v AS k, k AS v FROM {0}": lambda rows: [(value, key) for key, value in rows],
    "SELECT k, v * 2 - 1 AS v FROM {0}": lambda rows: [
        (key, None if value is None else value * 2 - 1) for key, value in rows
    ],
    "SELECT DISTINCT k, v FROM {0}": lambda rows: list(dict.fromkeys(rows)),
    "SELECT k, SUM(v) AS v FROM {0} GROUP BY k": _group,
    "SELECT k, v FROM (SELECT k, MAX(v) AS v FROM {0} GROUP BY k) WHERE v IS NOT NULL": _largest,
    "SELECT * FROM {0} UNION ALL SELECT v, k FROM {0}": lambda rows: [*rows, *((value, key) for key, value in rows)],
    "SELECT a.k, b.v FROM {0} AS a JOIN {0} AS b ON a.k = b.v": lambda rows: [
        (one, other) for one, _ in rows for _, other in rows if one is not None and one == other
    ],
    "SELECT k, v FROM {0} WHERE v IN (SELECT k FROM {0})": lambda rows: [
        (key, value) for key, value in rows if value is not None and value in {other for other, _ in rows}
    ],
}
NUMBER = DataTypes.BIGINT()
PAIR = DataTypes.ROW([DataTypes.FIELD("k", NUMBER), DataTypes.FIELD("v", NUMBER)])


@settings(max_examples=25)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3),
)
def test_views_of_views(rows: Pairs, steps: list[str]) -> None:
    expected = rows
    for step in steps:
        expected = STEPS[step](expected)
    inlined = "t"
    for step in steps:
        inlined = f"({step.format(inlined)})"
    for env in environments():
        env.create_temporary_view("t", env.from_elements(rows, PAIR))
        before = "t"
        for number, step in enumerate(steps):
            env.execute_sql(f"CREATE TEMPORARY VIEW v{number} AS {step.format(before)}")
            before = f"v{number}"
        assert what_stands(env, f"SELECT * FROM {before}") == Counter(expected)
        assert what_stands(env, f"SELECT * FROM {inlined} AS whole") == Counter(expected)
