"""Users' aggregates: their state, in windows, over frames, and after each row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import function_programs
import pytest
from conftest import environment
from savepointkit import Halves

from firesteel.common import Configuration, Row
from firesteel.common.typeinfo import Types
from firesteel.common.types import RowKind
from firesteel.datastream import DataStream
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.state_processor import Savepoint
from firesteel.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    ListView,
    MapView,
    StreamTableEnvironment,
    TableAggregateFunction,
    TableEnvironment,
)
from firesteel.table.expressions import col, lit
from firesteel.table.sql import NotSupportedError, SqlValidationError
from firesteel.table.udf import udaf, udf, udtaf, udtf
from firesteel.table.window import Tumble


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


class Total(AggregateFunction[Any, Any]):
    """Sums; what is not stated about it is left out."""

    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator[0] += args[0] or 0

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def get_result_type(self) -> str:
        return "BIGINT"


def test_what_a_query_needs_of_an_aggregate(env: TableEnvironment) -> None:
    env.create_temporary_function("total", udaf(Total()))
    counts = "(SELECT k, COUNT(*) AS n FROM t GROUP BY k)"
    with pytest.raises(ProgramError, match=r"The function Total \(.*\) needs a method retract\(\): its input takes"):
        rows(env, f"SELECT total(n) FROM {counts}")
    pandas = udaf(lambda v: v.sum(), result_type="DOUBLE", func_type="pandas", name="p")
    env.create_temporary_function("p", pandas)
    with pytest.raises(NotSupportedError, match="p is a pandas aggregate: it needs all rows of a group at once"):
        rows(env, "SELECT p(v) FROM t")


class Words(AggregateFunction[Any, Any]):
    """Distinct words with their numbers; the accumulator has a type."""

    def create_accumulator(self) -> Any:
        return Row(MapView(), 0)

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        words = accumulator[0]
        words[args[0]] = 1 + (words.get(args[0]) if args[0] in words else 0)
        accumulator[1] += 1

    def retract(self, accumulator: Any, *args: Any) -> None:
        accumulator[0][args[0]] -= 1
        if not accumulator[0][args[0]]:
            del accumulator[0][args[0]]
        accumulator[1] -= 1

    def get_value(self, accumulator: Any) -> Any:
        return f"{accumulator[1]} {sorted(accumulator[0].items())}"

    def get_result_type(self) -> str:
        return "STRING"

    def get_accumulator_type(self) -> Any:
        view = DataTypes.MAP_VIEW(DataTypes.BIGINT(), DataTypes.BIGINT())
        return DataTypes.ROW([DataTypes.FIELD("words", view), DataTypes.FIELD("n", DataTypes.BIGINT())])


def test_views_without_a_key() -> None:
    view: MapView[str, int] = MapView()
    view.put("a", 1)
    assert (view.get("b"), view["b"], view.contains("b")) == (None, None, False)
    view.remove("b")
    del view["b"]
    view.remove("a")
    assert view.is_empty()


class Pickled(Words):
    """The same without a type."""

    get_accumulator_type = AggregateFunction.get_accumulator_type


class Misdeclared(Words):
    """The same with a type that no accumulator of it has."""

    def get_accumulator_type(self) -> Any:
        return "ROW<words STRING, n BIGINT>"


class Largest(TableAggregateFunction[Any, Any]):
    """The two largest numbers."""

    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator.append(args[0])
        accumulator.sort()

    def retract(self, accumulator: Any, *args: Any) -> None:
        accumulator.remove(args[0])

    def emit_value(self, accumulator: Any) -> Any:
        return accumulator[-2:]

    def get_result_type(self) -> str:
        return "ROW<n BIGINT>"

    def get_accumulator_type(self) -> str:
        return "ARRAY<BIGINT>"


NUMBERS = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.LONG()])


def changes(count: int, first: int = 0) -> list[Row]:
    """Rows of four words; some are taken back."""
    found = []
    for n in range(first, first + count):
        at, kind = (n - 2, RowKind.DELETE) if n % 5 == 4 else (n, RowKind.INSERT)
        row = Row(word=f"w{at % 4}", n=at * 7 % 11)
        row.set_row_kind(kind)
        found.append(row)
    return found


def _table(stream: DataStream) -> Any:
    typed = stream.map(lambda row: row, NUMBERS)
    tables = StreamTableEnvironment.create(stream.get_execution_environment())
    return tables, tables.from_changelog_stream(typed)


def values(function: Any) -> Any:
    def program(stream: DataStream) -> DataStream:
        tables, table = _table(stream)
        return tables.to_changelog_stream(
            table.group_by(col("word")).select(col("word"), udaf(function)(col("n")).alias("x"))
        )

    return program


def largest(stream: DataStream) -> DataStream:
    tables, table = _table(stream)
    top = udtaf(Largest())(col("n"))
    return tables.to_changelog_stream(table.group_by(col("word")).flat_aggregate(top).select(col("word"), col("n")))


def by_word(found: list[Row]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in found:
        groups.setdefault(row[0], []).append((str(row.get_row_kind()), row[1]))
    return groups


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (values(Words()), ("Words(n): accumulator", "ROW<`words` MAP<BIGINT NOT NULL, BIGINT>, `n` BIGINT>")),
        (values(Pickled()), ("Pickled(n): accumulator", "BYTES")),
        (values(Misdeclared()), ("Misdeclared(n): accumulator", "BYTES")),
        (largest, ("Largest(n): accumulator", "ARRAY<BIGINT>")),
    ],
    ids=["typed", "pickled", "of another type", "table aggregate"],
)
def test_accumulators_come_back_at_another_parallelism(tmp_path: Path, program: Any, shown: tuple[str, str]) -> None:
    halves = Halves(tmp_path)
    steps = [changes(60), changes(35, 60), changes(45, 95)]
    whole = by_word(halves.whole(program, steps))
    found = halves.save(program, steps[:2], 2)
    savepoint = Savepoint.load(halves.path)
    (groups,) = [state for state in savepoint.states() if state.name == "groups"]
    columns = [(one.name, one.type) for one in savepoint.columns(groups.uid, "groups")]
    assert columns == [("word", "STRING"), shown, ("rows", "BIGINT")]
    assert savepoint.read_arrow(groups.uid, "groups").num_rows == groups.rows
    found += halves.resume(program, steps, 3)
    assert by_word(found) == whole
    kinds = {kind for rows_of_word in whole.values() for kind, _ in rows_of_word}
    assert kinds == ({"+I", "-D"} if program is largest else {"+I", "-U", "+U"})


class NullableSum(Total):
    """What SUM does."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        if args[0] is not None:
            accumulator[0] += args[0]
            accumulator[1] += 1

    def retract(self, accumulator: Any, *args: Any) -> None:
        if args[0] is not None:
            accumulator[0] -= args[0]
            accumulator[1] -= 1

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0] if accumulator[1] else None


def random_changes(chance: random.Random, count: int) -> list[list[Row]]:
    """Rows that come and go, some without a number, in steps of any length."""
    there: list[tuple[str, int | None]] = []
    rows_of: list[Row] = []
    for _ in range(count):
        if there and chance.random() < 0.4:
            word, n = there.pop(chance.randrange(len(there)))
            kind = chance.choice([RowKind.DELETE, RowKind.UPDATE_BEFORE])
        else:
            word, n = f"w{chance.randrange(5)}", chance.choice([None, chance.randrange(-5, 5)])
            there.append((word, n))
            kind = chance.choice([RowKind.INSERT, RowKind.UPDATE_AFTER])
        row = Row(word=word, n=n)
        row.set_row_kind(kind)
        rows_of.append(row)
    cuts = sorted(chance.sample(range(1, count), 4))
    return [rows_of[first:last] for first, last in zip([0, *cuts], [*cuts, count], strict=True)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bundle", ["1", "1000"])
def test_a_users_sum_is_the_built_in_one(tmp_path: Path, seed: int, bundle: str) -> None:
    def built_in(stream: DataStream) -> DataStream:
        tables, table = _table(stream)
        summed: DataStream = tables.to_changelog_stream(
            table.group_by(col("word")).select(col("word"), col("n").sum.alias("x"))
        )
        return summed

    halves, steps = Halves(tmp_path), random_changes(random.Random(seed), 120)
    settings = {"python_fn__execution_bundle_size": bundle}
    # With bundles both tell what a micro-batch has changed.
    exact = {} if bundle == "1" else {"table_exec_mini__batch_enabled": "true"}
    expected = halves.whole(built_in, steps, 1, **exact)
    found = halves.whole(values(NullableSum()), steps, 1, **settings)
    assert by_word(found) == by_word(expected)
    assert len({str(row.get_row_kind()) for row in found}) == 4


def test_after_each_row_and_a_restart(tmp_path: Path) -> None:
    """With bundles of one row every change is told, and what was before comes from the accumulator."""
    halves = Halves(tmp_path)
    steps, program = [changes(60), changes(35, 60), changes(45, 95)], values(Words())
    settings = {"python_fn__execution_bundle_size": "1"}
    bundles = by_word(halves.whole(program, steps, 1))
    whole = by_word(halves.whole(program, steps, 1, **settings))
    found = halves.save(program, steps[:2], 1, **settings)
    found += halves.resume(program, steps, 1, **settings)
    assert by_word(found) == whole
    assert sum(map(len, whole.values())) > 5 * sum(map(len, bundles.values()))
    assert {word: of_word[-1] for word, of_word in whole.items()} == {word: of[-1] for word, of in bundles.items()}


class Everything(Total):
    """Gives the accumulator itself."""

    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator.append(args[0])

    def get_value(self, accumulator: Any) -> Any:
        return accumulator

    def get_result_type(self) -> str:
        return "ARRAY<INT>"


def test_functions_in_batch_mode() -> None:
    config = Configuration.from_dict({"firesteel.master": "memory"})
    batch = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_batch_mode().with_configuration(config).build()
    )
    batch.create_temporary_view("t", batch.from_elements([(1, "a b"), (2, "b"), (1, "c")], ["k", "s"]))
    batch.create_temporary_function("inc", udf(lambda k: k + 1, result_type="BIGINT"))
    batch.create_temporary_function("parts", udtf(str.split, result_types="STRING"))
    batch.create_temporary_function("total", udaf(Total()))
    batch.create_temporary_function("mean_of", function_programs.MEAN)
    assert sorted(rows(batch, "SELECT inc(k), p FROM t, LATERAL TABLE(parts(s)) AS x(p)")) == [
        (2, "a"),
        (2, "b"),
        (2, "c"),
        (3, "b"),
    ]
    # All rows of a group are there: so an aggregate of pandas needs no window.
    assert sorted(rows(batch, "SELECT k, total(k), mean_of(k) FROM t GROUP BY k")) == [(1, 2, 1.0), (2, 2, 2.0)]
    top = batch.from_path("t").flat_aggregate(udtaf(Largest())(col("k"))).select(col("n"))
    with top.execute().collect() as found:
        assert sorted(row[0] for row in found) == [1, 2]


def test_fractions_of_pandas_are_no_integers() -> None:
    batch = environment(**{"execution.runtime-mode": "batch"})
    batch.create_temporary_view("t", batch.from_elements([(1, 1), (1, 2), (2, 4)], ["k", "n"]))
    batch.create_temporary_function("middle", udaf(lambda n: n.mean(), result_type="BIGINT", func_type="pandas"))
    assert rows(batch, "SELECT middle(n) FROM t WHERE k = 2") == [(4,)]
    with pytest.raises(JobExecutionError, match=r"is declared to give BIGINT: expected BIGINT, got float 1\.5"):
        rows(batch, "SELECT k, middle(n) FROM t GROUP BY k")


def test_a_result_that_is_the_accumulator_does_not_change_afterwards(env: TableEnvironment) -> None:
    env.get_config().set("python.fn-execution.bundle.size", "1")
    env.create_temporary_function("everything", udaf(Everything()))
    with env.execute_sql("SELECT everything(k) FROM t").collect() as found:
        changes_of = [(str(row.get_row_kind()), row[0]) for row in found]
    assert changes_of[:3] == [("+I", [1]), ("-U", [1]), ("+U", [1, 2])]
    assert changes_of[-1] == ("+U", [1, 2, 1, None])
    assert rows(env, "SELECT everything(DISTINCT k) FROM t WHERE k IS NOT NULL")[-1] == ([1, 2],)


class Joined(AggregateFunction[Any, Any]):
    """Its text, and the separator that it came with. Nothing in it is a number."""

    def create_accumulator(self) -> Any:
        return Row(ListView(), "")

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator[0].add(args[0])
        accumulator[1] = args[1]

    def retract(self, accumulator: Any, *args: Any) -> None:
        left = list(accumulator[0])
        left.remove(args[0])
        accumulator[0].clear()
        accumulator[0].add_all(left)

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[1].join(accumulator[0])

    def get_result_type(self) -> str:
        return "STRING"

    def get_accumulator_type(self) -> Any:
        words = DataTypes.LIST_VIEW(DataTypes.STRING())
        return DataTypes.ROW([DataTypes.FIELD("words", words), DataTypes.FIELD("separator", DataTypes.BIGINT())])


def test_an_accumulator_of_another_type_is_pickled(env: TableEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    env.create_temporary_function("joined", udaf(Joined()))
    assert rows(env, "SELECT joined(s, '-') FROM t")[-1] == ("a-b-c-d",)
    assert "is pickled: it is declared as ROW<`words` ARRAY<STRING>, `separator` BIGINT>, and a new one has" in (
        caplog.text
    )


def test_an_accumulator_that_gets_another_type_is_told() -> None:
    class Odd(Total):
        def create_accumulator(self) -> Any:
            return []

        def accumulate(self, accumulator: Any, *args: Any) -> None:
            accumulator.append(args[0])

        def get_accumulator_type(self) -> str:
            return "ARRAY<STRING>"

    env = environment()
    env.create_temporary_view("numbers", env.from_elements([(1,)], ["k"]))
    env.create_temporary_function("odd", udaf(Odd()))
    message = r"The accumulator of Odd \(.*\) is declared as ARRAY<STRING>: expected STRING, got int 1\. Without"
    with pytest.raises(Exception, match=message):
        rows(env, "SELECT odd(k) FROM numbers")


def test_distinct_values_of_several_columns(env: TableEnvironment) -> None:
    """Each combination of them counts once, and goes when its last row is taken back."""
    env.get_config().set("python.fn-execution.bundle.size", "1")
    env.create_temporary_function("joined", udaf(Joined()))
    env.execute_sql("""
        CREATE TEMPORARY VIEW kinds AS SELECT LAST_VALUE(word) AS word, LAST_VALUE(mark) AS mark
        FROM (VALUES (1, 'a', '-'), (2, 'a', '-'), (3, 'a', '+'), (4, 'b', '+'), (2, 'c', '+'), (1, 'b', '+'))
            AS v(n, word, mark)
        GROUP BY n
    """)
    (last,) = rows(env, "SELECT joined(DISTINCT word, ',') FROM kinds")[-1]
    assert sorted(last.split(",")) == ["a", "b", "c"]
    (last,) = rows(env, "SELECT joined(DISTINCT word, mark) FROM kinds")[-1]
    assert sorted(last.split("+")) == ["a", "b", "c"]
    found = [row[0] for row in rows(env, "SELECT joined(DISTINCT word, mark) FROM kinds")]
    # In the order of the rows: two of them bring nothing new, and what replaces a row takes it back.
    assert found[0] == "a"
    assert {"a+a", "a+a+b"} <= set(found)
    both = "SELECT joined(DISTINCT word, ',') FILTER (WHERE mark = '+'), joined(DISTINCT ',', word) FROM kinds"
    assert sorted(rows(env, both)[-1][0].split(",")) == ["a", "b", "c"]
    assert "Joined(DISTINCT word, $f1)" in env.explain_sql("SELECT joined(DISTINCT word, ',') FROM kinds")


def test_windows_of_users_aggregates() -> None:
    env = environment()
    env.execute_sql("""
        CREATE TABLE clicks (
            n BIGINT,
            at AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 12:00:00.000'),
            WATERMARK FOR at AS at
        ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '24')
    """)
    env.create_temporary_function("total", udaf(Total()))
    spread = udaf(
        lambda v: (v.min(), v.max()), result_type="ROW<a BIGINT, b BIGINT>", func_type="pandas", name="spread"
    )
    env.create_temporary_function("spread", spread)
    found = rows(
        env,
        """
        SELECT total(n), x.a, x.b FROM (
            SELECT total(n) AS n, spread(n) AS x, window_start
            FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(at), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
            GROUP BY window_start, window_end
        ) GROUP BY x.a, x.b, window_start
        """,
    )
    numbers = [range(max(0, first), min(first + 10, 25)) for first in range(-5, 25, 5)]
    assert sorted(found) == sorted((sum(window), window[0], window[-1]) for window in numbers)


@pytest.mark.parametrize("frame", ["ROWS BETWEEN 2 PRECEDING", "RANGE BETWEEN INTERVAL '3' SECOND PRECEDING"])
def test_frames_of_users_aggregates(frame: str) -> None:
    env = environment()
    function_programs.clicks(env)
    env.create_temporary_function("w_avg", udaf(function_programs.WeightedAverage()))
    env.create_temporary_function("mean_of", function_programs.MEAN)
    over = f"OVER (ORDER BY ts {frame} AND CURRENT ROW)"
    found = rows(env, f"SELECT n, w_avg(v, n + 1) {over}, mean_of(n) {over}, SUM(n) {over} FROM clicks")
    width = 3 if frame.startswith("ROWS") else 4
    for n, average, mean, total in found:
        inside = range(max(0, n + 1 - width), n + 1)
        weights = sum(each + 1 for each in inside)
        assert average == pytest.approx(sum(each / 2 * (each + 1) for each in inside) / weights)
        assert (mean, total) == (pytest.approx(sum(inside) / len(inside)), sum(inside))
    assert [row[0] for row in found] == list(range(10))


def test_frames_that_users_aggregates_cannot_have() -> None:
    env = environment()
    function_programs.clicks(env)
    env.create_temporary_function("mean_of", function_programs.MEAN)
    env.create_temporary_function("total", udaf(Total()))
    with pytest.raises(SqlValidationError, match="one that begins with the first row grows for ever"):
        rows(env, "SELECT mean_of(n) OVER (ORDER BY ts) FROM clicks")
    with pytest.raises(ProgramError, match=r"needs a method retract\(\)"):
        rows(env, "SELECT total(n) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM clicks")
    assert rows(env, "SELECT total(n) OVER (ORDER BY ts) FROM clicks")[-1] == (45,)
    windowed = "SELECT total(n) FROM clicks GROUP BY SESSION(ts, INTERVAL '3' SECOND)"
    with pytest.raises(ProgramError, match=r"needs a method merge\(\): sessions grow together"):
        rows(env, windowed)


def test_aggregates_of_windows_in_the_table_api() -> None:
    env = environment()
    pair = udaf(lambda v: (v.min(), v.max()), result_type="ROW<a BIGINT, b BIGINT>", func_type="pandas")
    window = Tumble.over(lit(5).seconds).on(col("ts")).alias("w")
    groups = function_programs.clicks(env).window(window).group_by(col("w"))
    table = groups.aggregate(pair(col("n")).alias("low", "high")).select(
        col("high") - col("low"), col("w").end, col("low")
    )
    with table.execute().collect() as found:
        assert [(row[0], row[1].second, row[2]) for row in found] == [(4, 5, 0), (4, 10, 5)]
    with pytest.raises(NotSupportedError, match=r"flat_aggregate\(\) of windows"):
        groups.flat_aggregate(udtaf(Largest())(col("n")))
