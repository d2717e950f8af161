"""Rows that meet in one key, by the operator itself: what stays at a watermark, and what survives a restart."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given as given_steps
from hypothesis import settings
from operatorkit import Change, OperatorRun

from firesteel.errors import InputError
from firesteel.runtime.operators.table import KeyConflicts, KeyConflictsOperator, Rank, RankOperator, key_conflicts
from firesteel.runtime.operators.table.row_lists import row_tuples

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
ADD, BEFORE, AFTER, DELETE = range(4)


def run(fails: bool = False) -> OperatorRun:
    return OperatorRun(KeyConflictsOperator, KeyConflicts((0,), SCHEMA, fails, "t"))


def given(operator: OperatorRun, watermark: int, *rows: Change) -> list[Change]:
    operator.take(rows, SCHEMA)
    operator.watermark(watermark)
    return operator.taken()


def test_the_first_row_stays_until_it_is_taken_back() -> None:
    operator = run()
    assert given(operator, 1, (ADD, ("a", 1)), (ADD, ("a", 2)), (ADD, ("b", 3))) == [(0, ("a", 1)), (0, ("b", 3))]
    assert given(operator, 2, (ADD, ("a", 4))) == []
    # What could not stay is forgotten.
    assert given(operator, 3, (DELETE, ("a", 1))) == [(3, ("a", 1))]
    assert given(operator, 4, (ADD, ("a", 5))) == [(0, ("a", 5))]


def test_a_row_that_follows_takes_the_place_at_once() -> None:
    operator = run()
    given(operator, 1, (ADD, ("a", 1)))
    assert given(operator, 2, (BEFORE, ("a", 1)), (AFTER, ("a", 2)), (ADD, ("a", 3))) == [(2, ("a", 2))]


def test_what_comes_and_goes_in_between_was_never_there() -> None:
    operator = run()
    given(operator, 1, (ADD, ("a", 1)))
    assert given(operator, 2, (ADD, ("a", 2)), (BEFORE, ("a", 1)), (DELETE, ("a", 2)), (AFTER, ("a", 1))) == []
    assert given(operator, 3, (DELETE, ("a", 1)), (ADD, ("a", 9)), (ADD, ("a", 1))) == []
    assert given(operator, 4, (DELETE, ("b", 1))) == []


def test_nothing_is_given_before_a_watermark_also_after_a_restart() -> None:
    operator = run()
    operator.take([(ADD, ("a", 1)), (ADD, ("b", None))], SCHEMA)
    operator.restart()
    operator.take([(DELETE, ("a", 1)), (ADD, ("a", 2))], SCHEMA)
    operator.restart()
    assert operator.changes == []
    operator.watermark(5)
    assert sorted(operator.taken()) == [(0, ("a", 2)), (0, ("b", None))]
    operator.restart()
    assert given(operator, 6, (ADD, ("a", 3)), (BEFORE, ("a", 2))) == [(2, ("a", 3))]


def test_a_second_row_fails_the_job_only_if_both_are_left() -> None:
    operator = run(fails=True)
    assert given(operator, 1, (ADD, ("a", 1)), (ADD, ("a", 2)), (DELETE, ("a", 1))) == [(0, ("a", 2))]
    operator.take([(ADD, ("a", 3))], SCHEMA)
    with pytest.raises(InputError, match=r"t: two rows have the same primary key \(k=a\): \('a', 2\) and"):
        operator.watermark(2)


def test_what_waits_is_found_where_removed_keys_are_forgotten() -> None:
    """Where most keys are removed the others get new numbers at the end of a micro-batch."""
    operator = run()
    every = [(f"k{at}", at) for at in range(20_000)]
    assert len(given(operator, 1, *((ADD, row) for row in every))) == 20_000
    operator.end_batch()
    generation = operator.operator._table.generation
    gone = [(DELETE, row) for row in every[:500] + every[510:]]
    assert len(given(operator, 2, *gone)) == 19_990
    operator.take([(DELETE, ("k505", 505)), (ADD, ("k505", 1)), (ADD, ("k506", 1)), (ADD, ("new", 2))], SCHEMA)
    operator.end_batch()
    assert operator.operator._table.generation > generation
    operator.watermark(3)
    assert sorted(operator.taken()) == [(0, ("new", 2)), (2, ("k505", 1))]
    operator.end_batch()
    assert given(operator, 4, (DELETE, ("k505", 1)), (DELETE, ("new", 2))) == [(3, ("k505", 1)), (3, ("new", 2))]


def test_what_waited_waits_again_where_a_batch_is_done_again() -> None:
    operator = run()
    operator.take([(ADD, ("a", 1)), (ADD, ("b", 2))], SCHEMA)
    operator.end_batch()
    for _ in range(2):
        operator.stub.read_again()
        assert sorted(given(operator, 1, (ADD, ("a", 3)), (ADD, ("c", 4)))) == [
            (0, ("a", 1)),
            (0, ("b", 2)),
            (0, ("c", 4)),
        ]
    operator.end_batch()
    assert operator.entries == 3
    assert given(operator, 2, (DELETE, ("c", 4))) == [(3, ("c", 4))]


def test_a_second_row_that_is_equal_fails_the_job_too() -> None:
    """As in Flink: two rows of the query are left, whatever they are."""
    told = r"t: two rows have the same primary key \(k=a\): \('a', 1\) and \('a', 1\)\. Equal rows count as two, as in"
    operator = run(fails=True)
    operator.take([(ADD, ("a", 1)), (ADD, ("a", 1))], SCHEMA)
    with pytest.raises(InputError, match=told):
        operator.watermark(1)
    operator = run(fails=True)
    assert given(operator, 1, (ADD, ("a", 1))) == [(0, ("a", 1))]
    assert given(operator, 2, (DELETE, ("a", 1)), (ADD, ("a", 1))) == []
    operator.take([(ADD, ("a", 1))], SCHEMA)
    with pytest.raises(InputError, match=told):
        operator.watermark(3)


FLOATS = pa.struct([("x", pa.list_(pa.float32())), ("y", pa.map_(pa.string(), pa.float64()))])


@pytest.mark.parametrize(
    ("kind", "with_nan"),
    [
        (pa.float64(), lambda: float("nan")),
        (pa.float32(), lambda: float("nan")),
        (FLOATS, lambda: {"x": [1.0, float("nan"), None], "y": [("a", float("nan"))]}),
    ],
    ids=["double", "float", "nested"],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_rows_with_nan_are_taken_back(kind: pa.DataType, with_nan: Callable[[], Any], restarts: bool) -> None:
    schema = pa.schema([("k", pa.string()), ("v", kind)])
    for made in (
        OperatorRun(KeyConflictsOperator, KeyConflicts((0,), schema, True, "t")),
        # DEDUPLICATE
        OperatorRun(
            RankOperator, Rank((0,), (), schema, schema, 1, retracts=True, update_before=False, last_wins=True)
        ),
    ):

        def kinds(watermark: int, *changes: Change, operator: OperatorRun = made) -> list[int]:
            operator.take(changes, schema)
            operator.watermark(watermark)
            found = [kind for kind, _ in operator.taken()]
            if restarts:
                operator.restart()
            return found

        assert kinds(1, (ADD, ("a", with_nan())), (ADD, ("b", with_nan()))) == [0, 0]
        assert kinds(2, (DELETE, ("a", with_nan()))) == [3]
        # It is taken back and comes again within a batch.
        kinds(3, (DELETE, ("b", with_nan())), (ADD, ("b", with_nan())))
        assert kinds(4, (DELETE, ("b", with_nan()))) == [3]
        made.end_batch()
        assert made.entries == 0


class Counted(int):
    """A number that counts how often it is compared with another one."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int.__eq__(self, other) is True

    __hash__ = int.__hash__


def test_many_changes_of_a_key_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(columns: Any) -> list[tuple[Any, ...]]:
        return [(key, Counted(value)) for key, value in row_tuples(columns)]

    monkeypatch.setattr(key_conflicts, "row_tuples", counted)
    monkeypatch.setattr(Counted, "comparisons", 0)
    operator, count = run(), 2_000
    rows = [("a", at) for at in range(count)]
    operator.take([(ADD, row) for row in rows], SCHEMA)
    operator.end_batch()
    # Those that came last go first.
    operator.take([(DELETE, row) for row in rows[:1:-1]], SCHEMA)
    operator.take([(DELETE, ("a", -at)) for at in range(2, count)], SCHEMA)
    operator.watermark(1)
    # Each with each would be millions.
    assert 0 < Counted.comparisons < 20 * count
    assert operator.taken() == [(0, ("a", 0))]


class Reference:
    """The rows of a key, all changes of which are looked through one by one."""

    def __init__(self) -> None:
        self.stands: int | None = None
        self._changes: list[tuple[bool, int]] = []

    def note(self, adds: bool, row: int) -> None:
        if (not adds, row) in self._changes:
            self._changes.remove((not adds, row))
        else:
            self._changes.append((adds, row))

    def settle(self) -> None:
        rows = [] if self.stands is None else [self.stands]
        for adds, row in self._changes:
            if adds:
                rows.append(row)
            elif row in rows:
                rows.remove(row)
        self.stands, self._changes = rows[0] if rows else None, []


STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 6)), min_size=1, max_size=30),
        st.sampled_from(["watermark", "end", "restart"]),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=150)
@given_steps(steps=STEPS, few=st.sampled_from([0, 3, 16]))
def test_what_stands_is_what_changes_one_by_one_leave(steps: list[Any], few: int) -> None:
    operator, references = run(), {"a": Reference(), "b": Reference()}
    table: dict[str, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_conflicts, "_FEW", few)
        for at, step in enumerate([*steps, "watermark"]):
            if step == "watermark":
                operator.watermark(at)
                for kind, (key, row) in operator.taken():
                    assert (key in table) == (kind != ADD)
                    if kind == DELETE:
                        assert table.pop(key) == row
                    else:
                        table[key] = row
                for reference in references.values():
                    reference.settle()
                assert table == {key: one.stands for key, one in references.items() if one.stands is not None}
            elif step == "end":
                operator.end_batch()
            elif step == "restart":
                operator.restart()
            else:
                operator.take([(ADD if adds else DELETE, (key, row)) for key, adds, row in step], SCHEMA)
                for key, adds, row in step:
                    references[key].note(adds, row)
    operator.end_batch()
    assert operator.entries == len(table)


def test_many_changes_of_a_batch_that_is_done_again_count_once() -> None:
    operator = run()
    for _ in range(2):
        operator.take([(ADD, ("a", at)) for at in range(100)], SCHEMA)
        operator.stub.read_again()
    operator.end_batch()
    assert operator.entries == 0
    operator.take([(ADD, ("a", at)) for at in range(100)], SCHEMA)
    operator.take([(DELETE, ("a", at)) for at in range(100)], SCHEMA)
    operator.end_batch()
    assert operator.entries == 0
