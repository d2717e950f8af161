"""Rolling aggregates, projections and what declared types do to them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from kit import BATCH, first

from firesteel.common import Row, RowKind, Types
from firesteel.errors import JobExecutionError, ProgramError, TypeMismatchError

TRIPLE = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
RECORDS = [("a", 3, "first"), ("b", 7, "only"), ("a", 1, "second"), ("a", 1, "tie"), ("a", 5, "last")]


def of_a(run: Any, aggregate: Any, **settings: Any) -> list[Any]:
    results = run(lambda env: aggregate(env.from_collection(RECORDS, TRIPLE).key_by(first)), **settings)
    return [record for record in results if record[0] == "a"]


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", [3, 4, 5, 10]),
        ("min", [3, 1, 1, 1]),
        ("max", [3, 3, 3, 5]),
    ],
)
def test_a_fold_keeps_the_first_records_other_fields(run: Any, method: str, expected: list[int]) -> None:
    results = of_a(run, lambda keyed: getattr(keyed, method)(1), parallelism=2)
    assert results == [("a", number, "first") for number in expected]


def test_min_by_and_max_by_take_the_whole_record_and_the_first_of_equals(run: Any) -> None:
    a3, a1, a5 = RECORDS[0], RECORDS[2], RECORDS[4]
    assert of_a(run, lambda keyed: keyed.min_by(1)) == [a3, a1, a1, a1]
    assert of_a(run, lambda keyed: keyed.max_by(1)) == [a3, a3, a3, a5]


def test_batch_gives_the_last_of_them_only(run: Any) -> None:
    assert of_a(run, lambda keyed: keyed.sum(1), mode=BATCH) == [("a", 10, "first")]
    assert of_a(run, lambda keyed: keyed.min_by(1), mode=BATCH) == [("a", 1, "second")]


def test_fields_of_rows_by_name(run: Any) -> None:
    typed = Types.ROW_NAMED(["name", "score"], [Types.STRING(), Types.LONG()])
    rows = [Row("a", 2), Row("a", 9), Row("a", 4)]

    def scores(aggregate: Any) -> list[int]:
        results = run(lambda env: aggregate(env.from_collection(rows, typed).key_by(lambda row: row.name)))
        assert all(isinstance(row, Row) and row.name == "a" for row in results)
        return [row.score for row in results]

    assert scores(lambda keyed: keyed.sum("score")) == [2, 11, 15]
    assert scores(lambda keyed: keyed.max("score")) == [2, 9, 9]
    assert scores(lambda keyed: keyed.min_by("score")) == [2, 2, 2]


def test_a_rows_kind_survives(run: Any) -> None:
    rows = [Row.of_kind(RowKind.UPDATE_AFTER, "a", 1), Row.of_kind(RowKind.UPDATE_AFTER, "a", 2)]
    results = run(lambda env: env.from_collection(rows).key_by(first).sum(1))
    assert results == [Row.of_kind(RowKind.UPDATE_AFTER, "a", n) for n in (1, 3)]


def test_scalars_lists_and_named_tuples(run: Any) -> None:
    assert run(lambda env: env.from_collection([3, 1, 2]).key_by(lambda n: 0).sum()) == [3, 4, 6]
    assert run(lambda env: env.from_collection([3, 1, 2]).key_by(lambda n: 0).min()) == [3, 1, 1]
    assert run(lambda env: env.from_collection(["b", "a", "c"]).key_by(lambda n: 0).max_by()) == ["b", "b", "c"]
    assert run(lambda env: env.from_collection([[1, 2], [3, 4]]).key_by(lambda n: 0).sum(1)) == [[1, 2], [1, 6]]
    points = [Point(1, 2), Point(3, 4)]
    results = run(lambda env: env.from_collection(points).key_by(lambda p: 0).sum(1))
    assert results == [Point(1, 2), Point(1, 6)]
    assert all(type(point) is Point for point in results)


Point = namedtuple("Point", "x y")


def test_a_field_of_something_without_fields_is_refused(run: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"sum\(1\) selects a field, but the records are of type int"):
        run(lambda env: env.from_collection([1, 2]).key_by(lambda n: 0).sum(1))


@pytest.mark.parametrize("position", [1.5, None, True, [0]])
def test_a_position_is_a_number_or_a_name(make_env: Any, position: Any) -> None:
    keyed = make_env().from_collection([(1, 2)]).key_by(first)
    with pytest.raises(ProgramError, match=r"max\(\) takes the position or name of a field"):
        keyed.max(position)


@pytest.mark.both_engines
def test_reduce_with_a_lambda(run: Any, parallelism: int) -> None:
    def build(env: Any) -> Any:
        return (
            env.from_collection([(n % 2, str(n)) for n in range(6)])
            .key_by(first)
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )

    results = run(build, parallelism)
    assert [text for key, text in results if key == 0] == ["0", "02", "024"]
    assert [text for key, text in results if key == 1] == ["1", "13", "135"]


def test_project_keeps_some_fields_as_a_tuple(run: Any) -> None:
    assert run(lambda env: env.from_collection(RECORDS[:2], TRIPLE).project(2, 0)) == [("first", "a"), ("only", "b")]
    assert run(lambda env: env.from_collection(RECORDS[:2], TRIPLE).project(1)) == [(3,), (7,)]


def test_projecting_gives_the_type_of_the_fields(make_env: Any) -> None:
    projected = make_env().from_collection(RECORDS, TRIPLE).project(1, 0)
    assert projected.get_type() == Types.TUPLE([Types.INT(), Types.STRING()])


def test_project_refuses_what_it_cannot_do(make_env: Any) -> None:
    env = make_env()
    typed = env.from_collection(RECORDS, TRIPLE)
    with pytest.raises(ProgramError, match=r"project\(3\): the records have fields 0 to 2"):
        typed.project(3)
    with pytest.raises(ProgramError, match="needs at least one field index"):
        typed.project()
    with pytest.raises(ProgramError, match="needs a stream of a declared TUPLE or ROW type"):
        env.from_collection(RECORDS).project(0)


def test_a_union_of_different_types_is_refused(make_env: Any) -> None:
    env = make_env()
    numbers, words = env.from_collection([1], Types.INT()), env.from_collection(["a"], Types.STRING())
    with pytest.raises(ProgramError, match="A union needs streams of one type, got INT and STRING"):
        numbers.union(words)
    with pytest.raises(ProgramError, match="Streams of different environments cannot be joined in a union"):
        numbers.union(make_env().from_collection([1], Types.INT()))


def test_an_element_that_does_not_fit_its_type_is_refused_at_once(make_env: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"from_collection\(\) at .*: element 1: expected INT, got str 'x'"):
        make_env().from_collection([1, "x"], Types.INT())


def test_typed_values_become_what_their_type_says(run: Any) -> None:
    named = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.DOUBLE()])
    (row,) = run(lambda env: env.from_collection(["x"]).map(lambda text: Row(text, 1), named))
    assert (row.a, row.b, type(row.b)) == ("x", 1.0, float)
