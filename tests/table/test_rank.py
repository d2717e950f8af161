"""Top-N and deduplication beside sorting all rows again after each of them."""

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from operatorkit import Change, OperatorRun

from firesteel.runtime.operators.table import FirstRow, FirstRowOperator, Order, Rank, RankOperator

INPUT = pa.schema([("word", pa.string()), ("number", pa.int64()), ("name", pa.string()), ("id", pa.int64())])
RANKED = INPUT.append(pa.field("place", pa.int64()))
ORDERS = {
    "number": (Order(1),),
    "number descending": (Order(1, ascending=False, nulls_first=False),),
    "name descending, number": (Order(2, ascending=False, nulls_first=False), Order(1)),
    "number, name, word": (Order(1, ascending=False), Order(2), Order(0)),
    "nothing": (),
}


def spec(order: str, end: int, **options: Any) -> Rank:
    return Rank((0,), ORDERS[order], INPUT, RANKED if options.get("with_rank") else INPUT, end, **options)


class Reference:
    """Sorts a partition again after each row."""

    def __init__(self, what: Rank) -> None:
        self._spec = what
        self._rows: dict[Any, list[tuple[Any, ...]]] = {}
        self.table: dict[Any, list[tuple[Any, ...]]] = {}

    def process(self, rows: list[Change]) -> None:
        for kind, row in rows:
            known = self._rows.setdefault(row[0], [])
            if kind in (0, 2):
                known.append(row)
            else:
                known.remove(row)
            ordered = list(reversed(known)) if self._spec.last_wins else list(known)
            for order in reversed(self._spec.order):
                ordered = _sorted(ordered, order)
            self.table[row[0]] = ordered[self._spec.start - 1 : self._spec.end]


def _sorted(rows: list[tuple[Any, ...]], order: Order) -> list[tuple[Any, ...]]:
    nulls = [row for row in rows if row[order.column] is None]
    others = [row for row in rows if row[order.column] is not None]
    # A stable sort in reverse keeps equal rows in their order, too.
    others.sort(key=lambda row: row[order.column], reverse=not order.ascending)
    return nulls + others if order.nulls_first else others + nulls


class Vectorised(OperatorRun):
    def __init__(self, what: Rank | FirstRow) -> None:
        super().__init__(FirstRowOperator if isinstance(what, FirstRow) else RankOperator, what)

    def process(self, rows: list[Change]) -> None:
        self.take(rows, INPUT)


def table_of(changes: list[Change], ranked: bool) -> dict[Any, list[tuple[Any, ...]]]:
    """The table that a changelog leads to. What is taken back must be there."""
    table: dict[Any, list[tuple[Any, ...]]] = {}
    for kind, row in changes:
        rows = table.setdefault(row[0], [])
        if kind in (0, 2):
            rows.append(row)
        else:
            rows.remove(row)
    if ranked:
        for rows in table.values():
            rows.sort(key=lambda row: row[-1])
            assert [row[-1] for row in rows] == list(range(rows[0][-1], rows[0][-1] + len(rows))) if rows else True
    return {word: [row[:4] for row in rows] for word, rows in table.items() if rows}


DRAWN = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 2, 3, 4, None]),
        st.sampled_from(["x", "y", None]),
        st.integers(0, 9),
    ),
    max_size=40,
)


@pytest.mark.parametrize("order", ORDERS)
@given(
    DRAWN,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 4)]),
    st.lists(st.integers(0, 40), max_size=3),
)
@settings(max_examples=60)
def test_ranks(
    order: str,
    drawn: list[Any],
    retracts: bool,
    with_rank: bool,
    last_wins: bool,
    places: tuple[int, int],
    cuts: list[int],
) -> None:
    what = spec(order, places[1], start=places[0], retracts=retracts, with_rank=with_rank, last_wins=last_wins)
    there: list[tuple[Any, ...]] = []
    rows: list[Change] = []
    for number, (kind, word, value, name, back) in enumerate(drawn):
        if kind in (0, 2) or not retracts:
            there.append((word, value, name, number))
            rows.append((0, there[-1]))
        elif there:
            rows.append((kind, there.pop(back % len(there))))
    expected, got = Reference(what), Vectorised(what)
    expected.process(rows)
    at = 0
    for cut in sorted(cuts):
        got.process(rows[at:cut])
        at = max(at, cut)
        got.restart()
    got.process(rows[at:])
    found = table_of(got.changes, with_rank)
    wanted = {word: kept for word, kept in expected.table.items() if kept}
    if with_rank:
        assert found == wanted
    else:
        assert {word: sorted(kept, key=str) for word, kept in found.items()} == {
            word: sorted(kept, key=str) for word, kept in wanted.items()
        }


FLOATS = INPUT.set(1, pa.field("number", pa.float64()))


@pytest.mark.parametrize("order", ["number", "number descending", "name descending, number"])
@given(DRAWN, st.booleans(), st.booleans(), st.sampled_from([1, 2, 3]), st.integers(0, 40))
@settings(max_examples=60)
def test_nan_is_the_largest_number_and_equal_to_itself(
    order: str, drawn: list[Any], retracts: bool, with_rank: bool, end: int, cut: int
) -> None:
    """What comes out is what whole numbers give, the largest of which stands for NaN."""
    rows: list[Change] = []
    there: list[tuple[Any, ...]] = []
    for kind, word, value, name, back in drawn:
        if kind in (0, 2) or not retracts:
            there.append((word, value, name, back))
            rows.append((0, there[-1]))
        elif there:
            rows.append((kind, there.pop(back % len(there))))
    found = []
    for schema, largest in ((INPUT, 4), (FLOATS, float("nan"))):
        ranked = schema.append(RANKED.field(4)) if with_rank else schema
        what = Rank((0,), ORDERS[order], schema, ranked, end, retracts=retracts, with_rank=with_rank)
        got = OperatorRun(RankOperator, what)
        given_rows = [(kind, (row[0], largest if row[1] == 4 else row[1], *row[2:])) for kind, row in rows]
        got.take(given_rows[:cut], schema)
        got.restart()
        got.take(given_rows[cut:], schema)
        found.append([(kind, tuple(4 if one != one else one for one in row)) for kind, row in got.changes])
    assert found[0] == found[1]


def test_nan_gets_into_a_list_that_is_full() -> None:
    nan = float("nan")
    what = Rank((0,), ORDERS["number descending"], FLOATS, FLOATS.append(RANKED.field(4)), 3, with_rank=True)
    got = OperatorRun(RankOperator, what)
    got.take([(0, ("a", number, "x", 0)) for number in (1.0, 2.0, 3.0)], FLOATS)
    before = len(got.changes)
    got.take([(0, ("a", nan, "x", 0))], FLOATS)
    assert len(got.changes) == before + 6, "NaN is first, and all others move"


def test_places_where_one_nan_moves_to_the_place_of_another_do_not_change() -> None:
    nan = float("nan")
    what = Rank((0,), ORDERS["number"], FLOATS, FLOATS.append(RANKED.field(4)), 4, with_rank=True)
    got = OperatorRun(RankOperator, what)
    got.take([(0, ("a", number, "x", 0)) for number in (1.0, nan, nan)], FLOATS)
    before = len(got.changes)
    got.take([(0, ("a", 0.0, "x", 0))], FLOATS)
    assert [(kind, row[4]) for kind, row in got.changes[before:]] == [(1, 1), (2, 1), (1, 2), (2, 2), (0, 4)]


def changes_of(what: Rank, numbers: list[int]) -> list[Change]:
    got = Vectorised(what)
    got.process([(0, ("a", number, None, at)) for at, number in enumerate(numbers)])
    return [(kind, (row[1], *row[4:])) for kind, row in got.changes]


def test_top_n_as_flink_tells_it() -> None:
    """Without the place: what falls out is deleted, then the new row comes. With it, and for the first row alone: an
    update for each place that moved."""
    assert changes_of(spec("number descending", 2), [1, 3, 2, 0]) == [(0, (1,)), (0, (3,)), (3, (1,)), (0, (2,))]
    assert changes_of(spec("number descending", 2, with_rank=True), [1, 3, 2]) == [
        (0, (1, 1)),
        (1, (1, 1)),
        (2, (3, 1)),
        (0, (1, 2)),
        (1, (1, 2)),
        (2, (2, 2)),
    ]
    assert changes_of(spec("number descending", 1), [1, 3, 3, 2]) == [(0, (1,)), (1, (1,)), (2, (3,))]
    assert changes_of(spec("number descending", 1, last_wins=True), [1, 1]) == [(0, (1,)), (1, (1,)), (2, (1,))]
    assert changes_of(spec("number", 1), [2, 3, 2]) == [(0, (2,))]


@pytest.mark.parametrize("order", ["number", "number descending"])
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 30), st.sampled_from([1, 3]), st.booleans())
@settings(max_examples=60)
def test_what_cannot_get_in_is_left_out_and_nothing_else(
    order: str, numbers: list[int], cut: int, end: int, last_wins: bool
) -> None:
    """Lists that are full when a batch comes: its rows are looked at all at once before they are one by one."""
    what = spec(order, end, last_wins=last_wins)
    rows: list[Change] = [(0, (f"w{at % 2}", number, None, at)) for at, number in enumerate(numbers)]
    one_by_one, at_once = Vectorised(what), Vectorised(what)
    one_by_one.operator._promising = lambda *_: None  # type: ignore[method-assign]
    for got in (one_by_one, at_once):
        got.process(rows[:cut])
        got.process(rows[cut:])
    assert at_once.changes == one_by_one.changes


@pytest.mark.parametrize("order", ORDERS)
@given(
    DRAWN,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 4), (3, 3)]),
    st.lists(st.integers(0, 40), max_size=3),
)
@settings(max_examples=60)
def test_insertions_change_what_they_change_one_by_one(
    order: str,
    drawn: list[Any],
    with_rank: bool,
    last_wins: bool,
    update_before: bool,
    places: tuple[int, int],
    cuts: list[int],
) -> None:
    """An input of insertions alone gives the changes, and the order of them, that it gives where rows could be taken
    back, which is worked on row by row."""
    start, end = places
    options = {"start": start, "with_rank": with_rank, "last_wins": last_wins, "update_before": update_before}
    rows: list[Change] = [(0, (word, value, name, back % 3)) for _, word, value, name, back in drawn]
    one_by_one, at_once = (Vectorised(spec(order, end, retracts=retracts, **options)) for retracts in (True, False))
    at = 0
    for cut in [*sorted(cuts), len(rows)]:
        for got in (one_by_one, at_once):
            got.process(rows[at:cut])
            got.restart()
        at = max(at, cut)
    assert at_once.changes == one_by_one.changes


def first_row(what: Rank) -> FirstRow:
    return FirstRow(what.keys, what.order, what.input, what.schema, what.with_rank, what.update_before, what.last_wins)


@pytest.mark.parametrize("order", ORDERS)
@given(DRAWN, st.booleans(), st.booleans(), st.booleans(), st.lists(st.integers(0, 40), max_size=3))
@settings(max_examples=60)
def test_first_rows_change_as_one_by_one(
    order: str, drawn: list[Any], with_rank: bool, last_wins: bool, update_before: bool, cuts: list[int]
) -> None:
    """All rows of a batch at once give the changes, and the order of them, that lists give row by row."""
    what = spec(order, 1, with_rank=with_rank, last_wins=last_wins, update_before=update_before)
    rows: list[Change] = [(0, (word, value, name, back % 3)) for _, word, value, name, back in drawn]
    one_by_one, at_once = Vectorised(what), Vectorised(first_row(what))
    at = 0
    for cut in [*sorted(cuts), len(rows)]:
        for got in (one_by_one, at_once):
            got.process(rows[at:cut])
            got.restart()
        at = max(at, cut)
    assert at_once.changes == one_by_one.changes


@pytest.mark.parametrize("bits", [59, 63])
def test_numbers_that_are_far_apart_are_in_order(bits: int) -> None:
    """Partitions get ranges of their own, which would overlap if their numbers were taken as they are."""
    ends = -(1 << bits), (1 << bits) - 1
    what = spec("number", 1)
    rows: list[Change] = [(0, (f"w{at % 21}", ends[at % 2] + (1 - at % 2 * 2) * at, None, at)) for at in range(90)]
    one_by_one, at_once = Vectorised(what), Vectorised(first_row(what))
    for got in (one_by_one, at_once):
        got.process(rows[:40])
        got.process(rows[40:])
    assert at_once.changes == one_by_one.changes


def test_the_first_row_of_all() -> None:
    """Without a partition there is one."""
    what = Rank((), ORDERS["number descending"], INPUT, INPUT, 1)
    rows: list[Change] = [(0, ("a", number, None, at)) for at, number in enumerate([3, 1, 5, 5])]
    one_by_one, at_once = Vectorised(what), Vectorised(first_row(what))
    one_by_one.process(rows)
    at_once.process(rows)
    assert at_once.changes == one_by_one.changes
    assert len(at_once.changes) == 3
