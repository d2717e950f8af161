"""Changelogs as PyFlink 2.3 gave them, at a parallelism of 1, for the same rows: every change, in its order."""

from ast import literal_eval
from typing import Any

import pyarrow as pa
from operatorkit import Change, OperatorRun

from firesteel.runtime.operators.table import (
    AggregateCall,
    GroupAggregate,
    GroupAggregateOperator,
    Join,
    JoinOperator,
    Order,
    Rank,
    RankOperator,
)

LONG = pa.int64()
ROWS = pa.schema([("k", pa.string()), ("v", LONG), ("d", pa.float64()), ("s", pa.int8())])
INPUT: list[Change] = [
    (0, ("a", 1, 0.1, 100)),
    (0, ("b", 2, 0.2, 100)),
    (0, ("a", 3, 0.3, 100)),
    (0, ("a", None, None, None)),
    (0, ("b", 2, 0.1, -128)),
    (0, ("a", -7, 1e18, 1)),
    (0, ("a", 3, -1e18, 1)),
]
RIGHT = pa.schema([("k2", pa.string()), ("m", LONG)])
KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


def told(text: str) -> list[Change]:
    """Changes as PyFlink shows them, one a line."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return [(KINDS[line[:2]], tuple(literal_eval(line[3:]))) for line in lines]


def run(operator: Any, spec: Any, *inputs: tuple[int, pa.Schema, list[Change]]) -> list[Change]:
    got = OperatorRun(operator, spec)
    for number, schema, rows in inputs:
        got.take(rows, schema, number)
    return got.changes


def grouped(schema: pa.Schema, rows: list[Change], key: int | None, *calls: AggregateCall, **options: Any) -> Any:
    keys = () if key is None else (key,)
    fields = [schema.field(one) for one in keys] + [pa.field(str(n), call.type) for n, call in enumerate(calls)]
    spec = GroupAggregate(keys, calls, schema, pa.schema(fields), **options)
    return run(GroupAggregateOperator, spec, (0, schema, rows))


COUNT = AggregateCall("COUNT", None, LONG)


def test_numbers() -> None:
    """SELECT k, COUNT(*), SUM(v), AVG(v), MAX(v), COUNT(DISTINCT v) FROM t GROUP BY k"""
    calls = [AggregateCall(name, 1, LONG) for name in ("SUM", "AVG", "MAX")]
    distinct = AggregateCall("COUNT", 1, LONG, distinct=True)
    expected = told("""
        +I ['a', 1, 1, 1, 1, 1]
        +I ['b', 1, 2, 2, 2, 1]
        -U ['a', 1, 1, 1, 1, 1]
        +U ['a', 2, 4, 2, 3, 2]
        -U ['a', 2, 4, 2, 3, 2]
        +U ['a', 3, 4, 2, 3, 2]
        -U ['b', 1, 2, 2, 2, 1]
        +U ['b', 2, 4, 2, 2, 1]
        -U ['a', 3, 4, 2, 3, 2]
        +U ['a', 4, -3, -1, 3, 3]
        -U ['a', 4, -3, -1, 3, 3]
        +U ['a', 5, 0, 0, 3, 3]
    """)
    assert grouped(ROWS, INPUT, 0, COUNT, *calls, distinct, retracts=False) == expected
    assert grouped(ROWS, INPUT, 0, COUNT, *calls, distinct) == expected


def test_floats_and_small_numbers() -> None:
    """SELECT k, SUM(d), AVG(d), SUM(s), AVG(s), MIN(s) FROM t GROUP BY k: a row of NULLs changes nothing."""
    calls = [
        AggregateCall("SUM", 2, pa.float64()),
        AggregateCall("AVG", 2, pa.float64()),
        *(AggregateCall(name, 3, pa.int8()) for name in ("SUM", "AVG", "MIN")),
    ]
    assert grouped(ROWS, INPUT, 0, *calls, retracts=False) == told("""
        +I ['a', 0.1, 0.1, 100, 100, 100]
        +I ['b', 0.2, 0.2, 100, 100, 100]
        -U ['a', 0.1, 0.1, 100, 100, 100]
        +U ['a', 0.4, 0.2, -56, 100, 100]
        -U ['b', 0.2, 0.2, 100, 100, 100]
        +U ['b', 0.30000000000000004, 0.15000000000000002, -28, -14, -128]
        -U ['a', 0.4, 0.2, -56, 100, 100]
        +U ['a', 1e+18, 3.333333333333333e+17, -55, 67, 1]
        -U ['a', 1e+18, 3.333333333333333e+17, -55, 67, 1]
        +U ['a', 0.0, 0.0, -54, 50, 1]
    """)


def test_an_aggregate_of_an_aggregate() -> None:
    """SELECT c, COUNT(*), MAX(m), MIN(m), COUNT(DISTINCT m), SUM(m)
    FROM (SELECT k, COUNT(*) c, MAX(v) m FROM t GROUP BY k) GROUP BY c"""
    inner = grouped(ROWS, INPUT, 0, COUNT, AggregateCall("MAX", 1, LONG), retracts=False)
    schema = pa.schema([("k", pa.string()), ("c", LONG), ("m", LONG)])
    calls = [
        COUNT,
        AggregateCall("MAX", 2, LONG),
        AggregateCall("MIN", 2, LONG),
        AggregateCall("COUNT", 2, LONG, distinct=True),
        AggregateCall("SUM", 2, LONG),
    ]
    assert grouped(schema, inner, 1, *calls) == told("""
        +I [1, 1, 1, 1, 1, 1]
        -U [1, 1, 1, 1, 1, 1]
        +U [1, 2, 2, 1, 2, 3]
        -U [1, 2, 2, 1, 2, 3]
        +U [1, 1, 2, 2, 1, 2]
        +I [2, 1, 3, 3, 1, 3]
        -D [2, 1, 3, 3, 1, 3]
        +I [3, 1, 3, 3, 1, 3]
        -D [1, 1, 2, 2, 1, 2]
        +I [2, 1, 2, 2, 1, 2]
        -D [3, 1, 3, 3, 1, 3]
        +I [4, 1, 3, 3, 1, 3]
        -D [4, 1, 3, 3, 1, 3]
        +I [5, 1, 3, 3, 1, 3]
    """)


def test_without_keys_and_without_calls() -> None:
    """SELECT MAX(v) FROM t; SELECT DISTINCT k FROM t"""
    assert grouped(ROWS, INPUT, None, AggregateCall("MAX", 1, LONG), retracts=False) == told("""
        +I [1]
        -U [1]
        +U [2]
        -U [2]
        +U [3]
    """)
    assert grouped(ROWS, INPUT, 0) == told("""
        +I ['a']
        +I ['b']
    """)


PAIRS: list[Change] = [(0, ("a", 7)), (0, ("a", 8)), (0, ("c", 9))]
COUNTS = pa.schema([("k", pa.string()), ("c", LONG)])


def test_an_inner_join_passes_kinds_on() -> None:
    """SELECT * FROM (SELECT k, COUNT(*) c FROM t GROUP BY k) x JOIN r ON x.k = r.k2"""
    counts = grouped(ROWS, INPUT, 0, COUNT, retracts=False)
    spec = Join("INNER", (0,), (0,), COUNTS, RIGHT, pa.schema([*COUNTS, *RIGHT]))
    got = run(JoinOperator, spec, (0, COUNTS, counts[:1]), (1, RIGHT, PAIRS), (0, COUNTS, counts[1:]))
    assert got[:6] == told("""
        +I ['a', 1, 'a', 7]
        +I ['a', 1, 'a', 8]
        -U ['a', 1, 'a', 8]
        -U ['a', 1, 'a', 7]
        +U ['a', 2, 'a', 8]
        +U ['a', 2, 'a', 7]
    """)


def test_a_left_join() -> None:
    """SELECT * FROM r LEFT JOIN (SELECT k, COUNT(*) c FROM t GROUP BY k) x ON x.k = r.k2"""
    counts = grouped(ROWS, INPUT, 0, COUNT, retracts=False)
    spec = Join("LEFT", (0,), (0,), RIGHT, COUNTS, pa.schema([*RIGHT, *COUNTS]))
    got = run(JoinOperator, spec, (0, RIGHT, PAIRS), (1, COUNTS, counts))
    assert got[:15] == told("""
        +I ['a', 7, None, None]
        +I ['a', 8, None, None]
        +I ['c', 9, None, None]
        -D ['a', 8, None, None]
        +I ['a', 8, 'a', 1]
        -D ['a', 7, None, None]
        +I ['a', 7, 'a', 1]
        -U ['a', 8, 'a', 1]
        +I ['a', 8, None, None]
        -U ['a', 7, 'a', 1]
        +I ['a', 7, None, None]
        -D ['a', 8, None, None]
        +I ['a', 8, 'a', 2]
        -D ['a', 7, None, None]
        +I ['a', 7, 'a', 2]
    """)


def ranked(end: int, ascending: bool, with_rank: bool = False) -> list[Change]:
    schema = ROWS.append(pa.field("rn", LONG)) if with_rank else ROWS
    order = (Order(1, ascending, nulls_first=ascending),)
    got = run(RankOperator, Rank((0,), order, ROWS, schema, end, with_rank=with_rank), (0, ROWS, INPUT))
    return [(kind, (*row[:2], *row[4:])) for kind, row in got]


def test_top_n() -> None:
    """SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) rn FROM t) WHERE rn <= 2"""
    assert ranked(2, ascending=False) == told("""
        +I ['a', 1]
        +I ['b', 2]
        +I ['a', 3]
        +I ['b', 2]
        -D ['a', 1]
        +I ['a', 3]
    """)
    assert ranked(2, ascending=False, with_rank=True) == told("""
        +I ['a', 1, 1]
        +I ['b', 2, 1]
        -U ['a', 1, 1]
        +U ['a', 3, 1]
        +I ['a', 1, 2]
        +I ['b', 2, 2]
        -U ['a', 1, 2]
        +U ['a', 3, 2]
    """)
    assert ranked(1, ascending=False) == told("""
        +I ['a', 1]
        +I ['b', 2]
        -U ['a', 1]
        +U ['a', 3]
    """)
    assert ranked(2, ascending=True) == told("""
        +I ['a', 1]
        +I ['b', 2]
        +I ['a', 3]
        -D ['a', 3]
        +I ['a', None]
        +I ['b', 2]
        -D ['a', 1]
        +I ['a', -7]
    """)
