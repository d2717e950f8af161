"""GROUP BY: the vectorised operator gives what one row at a time gives, whatever rows come and however they are cut."""

from decimal import Decimal
from statistics import fmean, pstdev, stdev, variance
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from tablekit import Change, Reference, Vectorised

from firesteel.runtime.operators.table import AggregateCall, GroupAggregate
from firesteel.runtime.operators.table.aggregate_functions import accumulator_of

INPUT = pa.schema(
    [
        ("word", pa.string()),
        ("number", pa.int32()),
        ("small", pa.int8()),
        ("amount", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("ratio", pa.float64()),
    ]
)
ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from([1, 2, -7, None, 2**31 - 1]),
    st.sampled_from([0, 100, -128, None]),
    st.sampled_from([Decimal("1.50"), Decimal("-2.25"), Decimal("99999999.99"), None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([0.5, 0.1, -3.25, 1e18, None]),
)
INSERTIONS = st.lists(st.tuples(st.just(0), ROWS), max_size=40)
CUTS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["piece", "batch", "restart"])), max_size=5)


def spec(keys: tuple[int, ...], calls: list[AggregateCall], **options: Any) -> GroupAggregate:
    fields = [INPUT.field(key) for key in keys] + [pa.field(f"r{n}", call.type) for n, call in enumerate(calls)]
    return GroupAggregate(keys, tuple(calls), INPUT, pa.schema(fields), **options)


COUNT = AggregateCall("COUNT", None, pa.int64())
EXACT = [
    AggregateCall("SUM", 1, pa.int32()),
    AggregateCall("SUM", 2, pa.int8()),
    AggregateCall("AVG", 1, pa.int32()),
    AggregateCall("SUM", 3, pa.decimal128(38, 2)),
    AggregateCall("COUNT", 1, pa.int64(), filter=4),
    AggregateCall("COUNT", 2, pa.int64(), distinct=True),
    AggregateCall("SUM", 1, pa.int32(), distinct=True, filter=4),
]
EXTREMES = [
    AggregateCall("MAX", 1, pa.int32()),
    AggregateCall("MIN", 3, pa.decimal128(10, 2)),
    AggregateCall("MIN", 5, pa.float64()),
    AggregateCall("MAX", 0, pa.string(), filter=4),
    AggregateCall("MIN", 2, pa.int8()),
]
SEQUENCES = [
    AggregateCall("FIRST_VALUE", 1, pa.int32()),
    AggregateCall("LAST_VALUE", 3, pa.decimal128(10, 2)),
    AggregateCall("LAST_VALUE", 0, pa.string(), filter=4),
    AggregateCall("LISTAGG", 0, pa.string(), options=("|",)),
    AggregateCall("COLLECT", 1, pa.map_(pa.int32(), pa.int32())),
    AggregateCall("ARRAY_AGG", 5, pa.list_(pa.float64())),
]
FLOATS = [AggregateCall("SUM", 5, pa.float64()), AggregateCall("AVG", 5, pa.float64())]


@st.composite
def changelogs(draw: st.DrawFn) -> list[Change]:
    """Rows of all kinds. Most of what is taken back was there; some never was."""
    there: list[tuple[Any, ...]] = []
    rows: list[Change] = []
    for kind, row, back in draw(st.lists(st.tuples(st.integers(0, 3), ROWS, st.integers(0, 9)), max_size=60)):
        if kind in (0, 2):
            there.append(row)
            rows.append((kind, row))
        elif there and back:
            rows.append((kind, there.pop(back % len(there))))
        elif not there:
            # Of a group that is not there.
            rows.append((kind, row))
    return rows


def placed(cuts: list[tuple[int, str]], rows: list[Change]) -> list[tuple[int, str]]:
    """The cuts within the rows."""
    return sorted((cut % (len(rows) + 1), how) for cut, how in cuts)


def compare(what: GroupAggregate, rows: list[Change], cuts: list[tuple[int, str]]) -> None:
    expected, got = Reference(what), Vectorised(what)
    expected.process(rows)
    at = 0
    for cut, how in placed(cuts, rows):
        got.process(rows[at:cut])
        at = max(at, cut)
        if how != "piece":
            got.end_batch()
        if how == "restart":
            got.restart()
    got.process(rows[at:])
    assert got.changes == expected.changes


@given(changelogs(), CUTS, st.sampled_from([(0,), (0, 2), ()]), st.booleans())
@settings(max_examples=120)
@example([(0, ("a", 1, 0, None, True, 0.5)), (3, ("a", 1, 0, None, True, 0.5))], [(1, "restart")], (0,), True)
def test_all_kinds(rows: list[Change], cuts: list[tuple[int, str]], keys: tuple[int, ...], counted: bool) -> None:
    compare(spec(keys, [COUNT, *EXACT, *EXTREMES] if counted else [*EXTREMES, *EXACT]), rows, cuts)


def _numbered(kind: int, number: int) -> Change:
    return kind, ("a", number, 0, None, True, 0.5)


@given(changelogs(), CUTS, st.sampled_from([(2,), ()]))
@settings(max_examples=60)
@example([_numbered(0, 1), _numbered(0, 2), _numbered(0, 1), _numbered(3, 1)], [], (2,))
def test_values_in_their_order(rows: list[Change], cuts: list[tuple[int, str]], keys: tuple[int, ...]) -> None:
    compare(spec(keys, SEQUENCES), rows, cuts)


@given(INSERTIONS, CUTS)
@settings(max_examples=40)
def test_values_that_only_come(rows: list[Change], cuts: list[tuple[int, str]]) -> None:
    compare(spec((2,), SEQUENCES, retracts=False), rows, cuts)


@pytest.mark.parametrize("groups", [1, 40])
def test_variances_of_what_comes_and_goes(groups: int) -> None:
    """Many groups are worked on at once, few of them row by row."""
    names = ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP")
    calls = [AggregateCall(name, 5, pa.float64()) for name in names]
    of_numbers = AggregateCall("VAR_POP", 1, pa.int32())
    of_amounts = AggregateCall("VAR_SAMP", 3, pa.decimal128(38, 6))
    got = Vectorised(spec((2,), [*calls, of_numbers, of_amounts]))
    there: dict[int, list[float]] = {}
    for step in range(4):
        batch: list[Change] = []
        for n in range(step * 5 * groups, (step + 1) * 5 * groups):
            group, value = n % groups, float(n * 37 % 101)
            known = there.setdefault(group, [])
            if n // groups % 4 == 3:
                value = known.pop(0)
                batch.append((3, (None, int(value), group, Decimal(int(value)), True, value)))
            else:
                known.append(value)
                batch.append((0, (None, int(value), group, Decimal(int(value)), True, value)))
        got.process(batch)
        got.restart()
    final = {row[0]: row[1:] for kind, row in got.changes if kind in (0, 2)}
    for group, values in there.items():
        expected = [fmean([(value - fmean(values)) ** 2 for value in values]), variance(values), pstdev(values)]
        assert final[group][:4] == pytest.approx([*expected, stdev(values)])
        assert final[group][4] == int(expected[0] + 1e-9)
        assert float(final[group][5]) == pytest.approx(variance(values), abs=1e-6)


@given(INSERTIONS, CUTS, st.sampled_from([(0,), (1, 4), ()]), st.booleans())
@settings(max_examples=120)
def test_insertions_only(
    rows: list[Change], cuts: list[tuple[int, str]], keys: tuple[int, ...], update_before: bool
) -> None:
    compare(spec(keys, [*EXACT, *EXTREMES, *FLOATS], retracts=False, update_before=update_before), rows, cuts)


@given(changelogs(), CUTS, st.sampled_from([(0,), (0, 2), ()]), st.booleans())
@settings(max_examples=80)
def test_mini_batches_lead_to_the_same_table(
    rows: list[Change], cuts: list[tuple[int, str]], keys: tuple[int, ...], update_before: bool
) -> None:
    """And no group changes twice in one of them."""
    calls = [COUNT, *EXACT, *EXTREMES]
    expected, got = Reference(spec(keys, calls)), Vectorised(spec(keys, calls, mini_batch=True))
    got_upserts = Vectorised(spec(keys, calls, mini_batch=True, update_before=False))
    expected.process(rows)
    at = seen = 0
    for cut, how in [*placed(cuts, rows), (len(rows), "batch")]:
        for one in (got, got_upserts):
            one.process(rows[at:cut])
            if how != "piece":
                one.end_batch()
            if how == "restart":
                one.restart()
        at = max(at, cut)
        fresh, seen = got.changes[seen:], len(got.changes)
        adds = [row[: len(keys)] for kind, row in fresh if kind in (0, 2)]
        assert len(adds) == len(set(adds))
    assert table_of(got.changes, len(keys)) == table_of(expected.changes, len(keys))
    assert table_of(got_upserts.changes, len(keys)) == table_of(expected.changes, len(keys))
    assert not any(kind == 1 for kind, _ in got_upserts.changes)


def table_of(changes: list[Change], keys: int) -> dict[Any, Any]:
    """The table that a changelog leads to. What is taken back must be what is there."""
    table: dict[Any, Any] = {}
    for kind, row in changes:
        if kind in (0, 2):
            assert (row[:keys] in table) == (kind == 2) or table.get(row[:keys], ()) is None, (kind, row)
            table[row[:keys]] = row
        else:
            assert table[row[:keys]] == row
            if kind == 3:
                del table[row[:keys]]
            else:
                table[row[:keys]] = None
    return table


def test_many_rows_of_few_and_of_many_groups() -> None:
    """More rows than are worked on at once, more groups than a table begins with."""
    rows: list[Change] = [(0, (f"w{n * 7919 % 50_000}", n % 5, n % 3, None, None, n / 7)) for n in range(70_000)]
    calls = [COUNT, AggregateCall("SUM", 5, pa.float64()), AggregateCall("MAX", 1, pa.int32())]
    compare(spec((0,), calls, retracts=False), rows, [(30_000, "restart")])
    compare(spec((1,), calls, retracts=False), rows[:2000], [(1000, "restart")])


@pytest.mark.parametrize(
    ("amounts", "average"),
    [(["1.00", "2.00", "2.00"], "1.666667"), (["-1.00", "-0.01"], "-0.505000"), (["0.01", "0.00"], "0.005000")],
)
def test_averages_of_decimals_round_half_away_from_zero(amounts: list[str], average: str) -> None:
    got = Vectorised(spec((), [AggregateCall("AVG", 3, pa.decimal128(38, 6))], retracts=False))
    got.process([(0, (None, None, None, Decimal(amount), None, None)) for amount in amounts])
    assert got.changes[-1] == (2, (Decimal(average),))


def test_a_sum_of_floats_is_added_in_order() -> None:
    """Other keys in between, and large ones: a sum of all rows less that of others would lose the small ones."""
    numbers = [1e16, 1.0, -1e16, 0.1] * 20
    rows: list[Change] = []
    for number in numbers:
        rows += [(0, ("a", None, None, None, None, number)), (0, ("b", None, None, None, None, 1e300))]
    compare(spec((0,), [AggregateCall("SUM", 5, pa.float64())], retracts=False), rows, [(7, "piece")])


def test_a_group_that_was_empty_begins_anew() -> None:
    """What rounding has left of a sum is forgotten with the group, in one batch as over several."""
    numbers = [(0, 1e16), (0, 1.0), (3, 1e16), (3, 1.0), (0, 5.0)]
    rows: list[Change] = [(kind, ("a", None, None, None, None, number)) for kind, number in numbers]
    for cuts in ([], [2], [4]):
        got = Vectorised(spec((0,), [AggregateCall("SUM", 5, pa.float64())]))
        for start, end in zip([0, *cuts], [*cuts, None], strict=True):
            got.process(rows[start:end])
        assert got.changes[-1] == (0, ("a", 5.0))


def test_the_largest_value_is_taken_back_after_a_restart() -> None:
    got = Vectorised(spec((0,), [AggregateCall("MAX", 1, pa.int32())]))
    got.process([(0, ("a", 1, None, None, None, None)), (0, ("a", 5, None, None, None, None))])
    got.end_batch()
    got.restart()
    got.process([(3, ("a", 5, None, None, None, None))])
    assert got.changes[-1] == (2, ("a", 1))


def test_a_largest_decimal_that_was_taken_back_is_stored() -> None:
    column = accumulator_of(AggregateCall("MAX", 0, pa.decimal128(5, 2)), pa.decimal128(5, 2), True).columns[0]
    assert column.to_arrow(np.array([None, 150], object)).to_pylist() == [Decimal("0.00"), Decimal("1.50")]
