"""The connector ``datagen``: what values of each type are like, that no two jobs have the same ones, and that a batch
that is done again has."""

import datetime
import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import environment

from firesteel.connectors.table.datagen import DatagenEnumerator, DatagenSource, Draw
from firesteel.errors import FiresteelError
from firesteel.table import StreamTableEnvironment, TableEnvironment
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.datagen import datagen_source
from firesteel.testing import CrashError, run_pipeline

CASES = json.loads((Path(__file__).parent / "datagen_by_pyflink.json").read_text())["cases"]
NOON = int(datetime.datetime(2024, 5, 6, 12, 30, 15, 250_000, tzinfo=datetime.UTC).timestamp() * 1000)


def source_of(columns: str, **options: str) -> DatagenSource:
    env = environment()
    given = "".join(f", '{key.replace('__', '-').replace('_', '.')}' = '{value}'" for key, value in options.items())
    env.execute_sql(f"CREATE TABLE made ({columns}) WITH ('connector' = 'datagen'{given})")
    table = env._catalogs.find(("made",))
    assert isinstance(table, DeclaredTable)
    return datagen_source(table.readable, table.options, "made")


def values(columns: str, rows: int = 500, seed: int = 11, **options: str) -> list[Any]:
    """What is made of the first column."""
    reader = source_of(columns, **options).create_reader()
    (records,) = reader.read(Draw(seed, NOON), 0, rows)
    found: list[Any] = records.values[0].column(0).to_pylist()
    return found


def test_numbers_fill_their_range() -> None:
    assert set(values("x TINYINT", 5000)) == set(range(-128, 128))
    assert set(values("x BIGINT", fields_x_min="3", fields_x_max="5")) == {3, 4, 5}
    assert set(values("x INT", fields_x_min="2147483646")) == {2147483646, 2147483647}
    wide = values("x BIGINT")
    assert min(wide) < -(1 << 61)
    assert max(wide) > 1 << 61
    assert set(values("x BOOLEAN")) == {True, False}
    floats = values("x FLOAT", fields_x_min="-1.5", fields_x_max="2")
    assert -1.5 <= min(floats) < -1.2
    assert 1.7 < max(floats) <= 2
    assert all(0 <= number <= 1.8e308 for number in values("x DOUBLE"))
    decimals = values("x DECIMAL(5, 2)")
    assert all(0 <= number <= Decimal("999.99") for number in decimals)
    assert len({number % 1 for number in decimals}) > 90
    assert set(values("x DECIMAL(38, 1)", fields_x_min="0.1", fields_x_max="0.3")) == {
        Decimal(f"0.{digit}") for digit in (1, 2, 3)
    }
    assert max(values("x DECIMAL(38, 10)")) > Decimal(10) ** 27


def test_texts_and_bytes_have_their_length() -> None:
    assert {len(text) for text in values("x STRING")} == {100}
    texts = values("x STRING", fields_x_length="20")
    assert len(set(texts)) == 500
    assert {len(text) for text in texts} == {20}
    assert set("".join(texts)) == set("0123456789abcdef")
    assert {len(text) for text in values("x STRING", fields_x_length="4", fields_x_var__len="true")} == {1, 2, 3, 4}
    assert {len(text) for text in values("x VARCHAR(7)")} == {7}
    assert {len(text) for text in values("x CHAR(3)")} == {3}
    assert {len(data) for data in values("x BYTES")} == {100}
    assert {len(data) for data in values("x VARBINARY(9)", fields_x_var__len="true")} == set(range(1, 10))
    assert len({byte for data in values("x BINARY(5)") for byte in data}) == 256
    assert values("x STRING", 2, fields_x_length="0") == ["", ""]


def test_what_tells_time_is_near_now() -> None:
    local = datetime.datetime.fromtimestamp(NOON / 1000)
    utc = datetime.datetime.fromtimestamp(NOON / 1000, datetime.UTC)
    assert set(values("x TIMESTAMP(3)")) == {utc.replace(tzinfo=None)}
    past = values("x TIMESTAMP_LTZ(6)", fields_x_max__past="1 h")
    assert max(past) <= utc
    assert min(past) > utc - datetime.timedelta(hours=1)
    assert min(past) < utc - datetime.timedelta(minutes=58)
    assert set(values("x DATE")) == {local.date()}
    assert set(values("x TIME")) == {local.time()}


def test_values_inside_others() -> None:
    assert {len(each) for each in values("x ARRAY<INT>")} == {3}
    arrays = values("x ARRAY<INT>", fields_x_length="2", fields_x_element_min="1", fields_x_element_max="4")
    assert {tuple(each) for each in arrays} == {(a, b) for a in range(1, 5) for b in range(1, 5)}
    rows = values("x ROW<a INT, b STRING>", fields_x_a_max="0", fields_x_b_length="2")
    assert all(row["a"] <= 0 and len(row["b"]) == 2 for row in rows)
    maps = values("x MAP<INT, STRING>", fields_x_key_min="1", fields_x_key_max="3", fields_x_value_length="1")
    assert all(len({key for key, _ in each}) == len(each) <= 3 for each in maps)
    assert {len(each) for each in maps} == {1, 2, 3}
    counts = values("x MULTISET<BOOLEAN>")
    assert all(1 <= count <= 10 for each in counts for _, count in each)
    assert {len(each) for each in values("x MAP<ROW<a BOOLEAN>, INT>")} == {1, 2}
    nested = values("x ARRAY<MAP<STRING, ARRAY<INT>>>", 3, fields_x_element_value_length="1")
    assert {len(numbers) for each in nested for inner in each for _, numbers in inner} == {1}


def test_a_part_of_values_is_null() -> None:
    assert set(values("x INT", fields_x_null__rate="1")) == {None}
    found = values("x STRING", 10_000, fields_x_null__rate="0.25").count(None)
    assert 2300 < found < 2700
    inner = values("x ARRAY<INT>", fields_x_element_null__rate="0.5", fields_x_length="4")
    assert 800 < sum(each.count(None) for each in inner) < 1200
    assert None not in inner


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("TINYINT", [5, 6, 7]),
        ("DOUBLE", [5.0, 6.0, 7.0]),
        ("DECIMAL(4, 2)", [Decimal("5.00"), Decimal("6.00"), Decimal("7.00")]),
        ("STRING", ["5", "6", "7"]),
        ("CHAR(1)", ["5", "6", "7"]),
        ("BYTES", [bytes([0] * 7 + [number]) for number in (5, 6, 7)]),
    ],
)
def test_sequences(kind: str, expected: list[Any]) -> None:
    options = {"fields_x_kind": "sequence", "fields_x_start": "5", "fields_x_end": "7"}
    assert values(f"x {kind}", 3, **options) == expected
    assert source_of(f"x {kind}, y INT", **options).count == 3
    assert source_of(f"x {kind}", number__of__rows="2", **options).count == 2


@pytest.mark.parametrize(("kind", "exact"), [("FLOAT", 1 << 24), ("DOUBLE", 1 << 53)])
def test_sequences_of_floating_point_numbers_are_rounded(kind: str, exact: int) -> None:
    options = {"fields_x_kind": "sequence", "fields_x_start": str(exact - 1), "fields_x_end": str(exact + 2)}
    assert values(f"x {kind}", 4, **options) == [exact - 1, exact, exact, exact + 2]


def test_columns_and_seeds_have_values_of_their_own() -> None:
    reader = source_of("a BIGINT, b BIGINT").create_reader()

    def rows(draw: Draw, *pieces: tuple[int, int]) -> list[Any]:
        batches = [records.values[0] for piece in pieces for records in reader.read(draw, *piece)]
        return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]

    whole = rows(Draw(1, 0), (0, 40_000))
    assert len({number for row in whole for number in row}) == 80_000
    assert rows(Draw(1, 0), (0, 7), (7, 33_000), (33_000, 40_000)) == whole
    assert not {number for row in rows(Draw(2, 0), (0, 1000)) for number in row} & {a for a, _ in whole}


def test_a_position_has_the_seed_and_the_time_of_its_batch() -> None:
    times = iter([1.0, 2.0, 3.0])
    rows = DatagenEnumerator(10, None, clock=lambda: next(times))
    first = rows.initial()
    assert first == rows.initial()
    assert first != DatagenEnumerator(10, None).initial()
    second = rows.latest(first, 4)
    assert second == {"row": 4, "seed": first["seed"], "now": 2000}
    (piece,) = rows.plan(first, second, 1)[0]
    assert piece[:3] == (Draw(first["seed"], 2000), 0, 4)
    last = rows.latest(second, 100)
    assert last == {"row": 10, "seed": first["seed"], "now": 3000}
    # Where nothing more is there, the position does not move.
    assert rows.latest(last, 100) == last
    assert rows.ended(last)
    assert (rows.count(first, last), rows.pending(second)) == (10, 6)
    # The beginning may have been drawn by an attempt that failed before it was stored.
    again = DatagenEnumerator(10, None)
    assert again.plan(again.initial(), second, 1) == [[piece]]


def test_positions_of_older_jobs_go_on() -> None:
    rows = DatagenEnumerator(10, None, clock=lambda: 5.0)
    assert rows.latest(3, 4) == {"row": 7, "seed": 0, "now": 5000}
    assert rows.plan(3, 7, 1)[0][0][:3] == (Draw(0, 0), 3, 7)
    assert not rows.ended(3)


def test_positions_go_on_when_columns_become_sequences_or_are_none_any_more() -> None:
    # So many a second that nothing is held back.
    limit = {"number__of__rows": "10", "rows__per__second": "1000000000"}
    random = source_of("x INT", **limit)
    counted = source_of("x INT", **limit, fields_x_kind="sequence", fields_x_start="1", fields_x_end="10")
    for first, other in ((random, counted), (counted, random)):
        before, after = first.create_enumerator(), other.create_enumerator()
        position = before.latest(before.initial(), 4)
        assert after.count(position, after.latest(position, 100)) == 6
    # Sequences alone had nothing but a number.
    rows = counted.create_enumerator()
    (piece,) = rows.plan(4, rows.latest(4, 3), 1)[0]
    (records,) = counted.create_reader().read(piece.split, piece.start, piece.end)
    assert records.values[0].column(0).to_pylist() == [5, 6, 7]


MADE = "CREATE TABLE made (n BIGINT, s STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '50')"


def test_each_job_and_each_table_has_rows_of_its_own() -> None:
    env = environment()
    env.execute_sql(MADE)
    env.execute_sql(MADE.replace("made", "other"))
    query = "SELECT n FROM made UNION ALL SELECT n FROM other"
    found = [row[0] for _ in range(2) for row in env.execute_sql(query).collect()]
    assert len(set(found)) == 200


def test_a_batch_that_is_done_again_has_the_same_rows(tmp_path: Path) -> None:
    def build(env: Any) -> Any:
        tables = StreamTableEnvironment.create(env)
        tables.execute_sql(MADE)
        return tables.to_data_stream(tables.from_path("made")).map(seen)

    def seen(row: Any) -> Any:
        with (tmp_path / "seen").open("a") as file:
            file.write(f"{tuple(row)}\n")
        if not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise CrashError("on purpose")
        return row

    assert len(run_pipeline(build, restarts=1)) == 50
    first, *others = (tmp_path / "seen").read_text().splitlines()
    assert others[0] == first
    assert len(set(others)) == 50


def run_case(env: TableEnvironment, case: dict[str, Any]) -> list[Any]:
    given = "".join(f", '{key}' = '{value}'" for key, value in case["options"].items())
    env.execute_sql(f"CREATE TABLE made ({case['columns']}) WITH ('connector' = 'datagen'{given})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [list(row) for row in env.execute_sql("SELECT * FROM made").collect()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['columns']} {case['options']}")
def test_options_are_flinks(case: dict[str, Any]) -> None:
    env = environment()
    # A value that no column of the type can have is refused here, and wraps around there.
    if case.get("wrong") or ("refused" in case and not case.get("taken")):
        with pytest.raises(FiresteelError):
            run_case(env, case)
        return
    assert len(run_case(env, case)) == case.get("rows", 2)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("x INT", {"fields.y.min": "1"}, "'fields.y.min' is about no column. There are x."),
        ("word INT", {"fields.wrod.min": "1"}, "'fields.wrod.min' is about no column. Did you mean word? There are"),
        ("x INT", {"fields.x.mim": "1"}, "x (INT) has no option 'mim' ('fields.x.mim'). Did you mean min?"),
        ("x INT", {"fields.x.length": "1"}, "It has kind, min, max, null-rate."),
        ("x INT", {"number-of-row": "1"}, "has no option 'number-of-row'. Did you mean number-of-rows?"),
        ("x INT", {"number-of-rows": "many"}, "'number-of-rows' should be a whole number from 0 on, got 'many'."),
        ("x INT", {"rows-per-second": "0"}, "'rows-per-second' should be a whole number from 1 on, got '0'."),
        ("x TINYINT", {"fields.x.max": "200"}, "'fields.x.max' should be a whole number of TINYINT, got '200'."),
        ("x INT", {"fields.x.min": "2", "fields.x.max": "1"}, "'fields.x.min' is 2, which is more than"),
        (
            "x INT",
            {"fields.x.kind": "sequenze"},
            "should be random or sequence, got 'sequenze'. Did you mean sequence?",
        ),
        ("x INT", {"fields.x.kind": "sequence"}, "the sequence x needs 'fields.x.start' and '.end'"),
        (
            "x TINYINT",
            {"fields.x.kind": "sequence", "fields.x.start": "1", "fields.x.end": "200"},
            "goes from 1 to 200, and a TINYINT ends at 127.",
        ),
        (
            "x INT NOT NULL",
            {"fields.x.null-rate": "0.1"},
            "'fields.x.null-rate' is 0.1, and the column is INT NOT NULL.",
        ),
        ("x INT", {"fields.x.null-rate": "2"}, "'fields.x.null-rate' should be a part from 0 to 1, got '2'."),
        ("x VARCHAR(4)", {"fields.x.length": "5"}, "'fields.x.length' is 5, and the column is VARCHAR(4)."),
        ("x TIMESTAMP(3)", {"fields.x.max-past": "soon"}, "should be a duration such as '10 s', got 'soon'."),
        ("x ROW<a INT>", {"fields.x.a.length": "1"}, "x.a has no option 'length' ('fields.x.a.length')."),
    ],
)
def test_a_wrong_option_is_told(columns: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(FiresteelError) as caught:
        run_case(environment(), {"columns": columns, "options": options})
    assert said in str(caught.value)
    assert "default_catalog.default_database.made" in str(caught.value)
