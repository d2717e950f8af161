"""The state of queries, read from savepoints as tables: columns have the names and types of SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import environment
from savepointkit import Halves
from sparkkit import eventually

from firesteel.cli import main
from firesteel.cluster.state_browser import state_rows
from firesteel.common import Row, Types
from firesteel.datastream import DataStream
from firesteel.durable.state_tables import tables_from_json
from firesteel.state_processor import Savepoint
from firesteel.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment
from firesteel.table.udf import AggregateFunction, udaf

START = datetime(2024, 1, 1)
TYPE = Types.ROW_NAMED(
    ["word", "price", "quantity", "paid", "ts"],
    [Types.STRING(), Types.BIG_DEC(), Types.INT(), Types.BOOLEAN(), Types.SQL_TIMESTAMP()],
)
COLUMNS = {
    "word": "STRING NOT NULL",
    "price": "DECIMAL(10, 2)",
    "quantity": "INT",
    "paid": "BOOLEAN",
    "ts": "TIMESTAMP(3)",
}
IN_WINDOWS = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))"


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def moment(seconds: float) -> datetime:
    return (START + timedelta(seconds=seconds)).replace(tzinfo=UTC)


LOW, HIGH = Decimal("1.50"), Decimal("2.50")
ORDERS = [
    ("ink", LOW, 2, True, at(0)),
    ("ink", HIGH, 1, False, at(1)),
    ("pen", Decimal("3.00"), None, None, at(2)),
    ("ink", LOW, 2, True, at(3)),
]


class Greatest(AggregateFunction):
    def create_accumulator(self) -> list[Any]:
        return [None]

    def accumulate(self, accumulator: list[Any], value: int) -> None:
        accumulator[0] = value if accumulator[0] is None else max(accumulator[0], value or 0)

    def get_value(self, accumulator: list[Any]) -> Any:
        return accumulator[0]


class Queries:
    """Runs a query over the orders until all are in, and takes a savepoint."""

    def __init__(self, folder: Path) -> None:
        self._halves = Halves(folder)
        self.end = self._halves.end

    def savepoint(self, query: str, delay: int = 10, updates: bool = False, **settings: str) -> Savepoint:
        """``delay``: how many seconds the watermark is behind. ``updates``: an order replaces that of its word."""

        def build(stream: DataStream) -> DataStream:
            tables = StreamTableEnvironment.create(stream._env)
            for name, value in settings.items():
                tables.get_config().set(name.replace("_", "."), value)
            typed = stream.map(lambda row: row, output_type=TYPE).uid("orders").set_parallelism(1)
            schema = Schema.new_builder()
            for name, kind in COLUMNS.items():
                schema = schema.column(name, kind)
            if updates:
                table = tables.from_changelog_stream(typed, schema.primary_key("word").build(), ChangelogMode.upsert())
            else:
                watermark = f"ts - INTERVAL '{delay}' SECOND"
                table = tables.from_data_stream(typed, schema.watermark("ts", watermark).build())
            tables.create_temporary_view("orders", table)
            row = DataTypes.ROW([DataTypes.FIELD("most", DataTypes.INT())])
            greatest = udaf(Greatest(), result_type=DataTypes.INT(), accumulator_type=row)
            tables.create_temporary_function("greatest_of", greatest)
            return tables.to_changelog_stream(tables.sql_query(query)).uid("out")

        self._halves.save(build, [[Row(**dict(zip(COLUMNS, order, strict=True))) for order in ORDERS]])
        return Savepoint.load(self._halves.path)


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[Queries]:
    made = Queries(tmp_path)
    yield made
    made.end()


def uid_of(savepoint: Savepoint, operator: str, state: str) -> str:
    (uid,) = {one.uid for one in savepoint.states() if (one.operator, one.name) == (operator, state)}
    return uid


def rows(savepoint: Savepoint, operator: str, state: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = savepoint.read_arrow(uid_of(savepoint, operator, state), state).to_pylist()
    return sorted(found, key=lambda row: json.dumps(row, default=str))


def columns(savepoint: Savepoint, operator: str, state: str) -> list[tuple[str, str, str]]:
    found = savepoint.columns(uid_of(savepoint, operator, state), state)
    return [(one.name, one.type, one.role) for one in found]


def test_the_aggregates_of_groups(queries: Queries) -> None:
    savepoint = queries.savepoint("""
        SELECT word, SUM(price * quantity) AS s, AVG(quantity) AS a, COUNT(*) AS n, MAX(ts) AS m,
            COUNT(DISTINCT quantity) FILTER (WHERE paid) AS d, LISTAGG(word) AS l, greatest_of(quantity) AS g
        FROM orders GROUP BY word
    """)
    names = [
        ("word", "STRING", "key"),
        ("SUM(price * quantity)", "DECIMAL(38, 2)", "aggregate"),
        ("AVG(quantity)", "INT", "aggregate"),
        ("COUNT(*)", "BIGINT", "aggregate"),
        ("MAX(ts)", "TIMESTAMP(3)", "aggregate"),
        ("COUNT(DISTINCT quantity) FILTER (WHERE paid)", "BIGINT", "aggregate"),
        ("LISTAGG(word)", "STRING", "aggregate"),
        ("AVG(quantity): sum", "BIGINT", "accumulator"),
        ("AVG(quantity): count", "BIGINT", "accumulator"),
        ("LISTAGG(word): values", "ARRAY<STRING>", "accumulator"),
        ("Greatest(quantity): accumulator", "ROW<`most` INT>", "accumulator"),
    ]
    assert columns(savepoint, "GroupAggregate", "groups") == names
    ink, pen = (list(row.values()) for row in rows(savepoint, "GroupAggregate", "groups"))
    assert ink[:7] == ["ink", Decimal("8.50"), 1, 3, at(3), 1, "ink,ink,ink"]
    assert ink[7:] == [5, 3, ["ink", "ink", "ink"], {"most": 2}]
    assert pen == ["pen", None, None, 1, at(2), 0, "pen", 0, 0, ["pen"], {"most": None}]
    assert rows(savepoint, "GroupAggregate", "distinct 4") == [{"word": "ink", "quantity": 2, "count": 2}]
    meaning = savepoint.meaning(uid_of(savepoint, "GroupAggregate", "groups"))
    assert meaning.startswith("PythonGroupAggregate(groupBy=[word], select=[word, SUM(price * quantity) AS s, ")


def test_groups_of_several_columns_that_are_forgotten(queries: Queries) -> None:
    savepoint = queries.savepoint(
        "SELECT word, quantity, COUNT(price) AS n FROM orders GROUP BY word, quantity", table_exec_state_ttl="1h"
    )
    found = rows(savepoint, "GroupAggregate", "groups")
    taken = datetime.fromtimestamp(savepoint._manifest.time / 1000, UTC)
    assert {row.pop("last_changed") for row in found} == {taken}
    assert [tuple(row.values()) for row in found] == [("ink", 1, 1, 1), ("ink", 2, 2, 2), ("pen", None, 1, 1)]
    assert list(found[0]) == ["word", "quantity", "COUNT(price)", "rows"]


def test_upserts_and_what_is_kept_for_rows_that_are_taken_back(queries: Queries) -> None:
    savepoint = queries.savepoint(
        "SELECT quantity, MAX(price) AS m, FIRST_VALUE(word) AS w FROM orders GROUP BY quantity", updates=True
    )
    last = [dict(zip(COLUMNS, order, strict=True)) for order in (ORDERS[3], ORDERS[2])]
    assert rows(savepoint, "ChangelogNormalize", "rows") == last
    uid = uid_of(savepoint, "ChangelogNormalize", "rows")
    assert savepoint.meaning(uid) == "ChangelogNormalize(key=[word])"
    values = [{"quantity": 2, "price": LOW, "count": 1}, {"quantity": None, "price": Decimal("3.00"), "count": 1}]
    assert rows(savepoint, "GroupAggregate", "distinct 0") == values
    pen, ink = ({**row} for row in reversed(rows(savepoint, "GroupAggregate", "groups")))
    assert ink == {
        "quantity": 2,
        "MAX(price)": LOW,
        "FIRST_VALUE(word)": "ink",
        "FIRST_VALUE(word): values": ["ink"],
        "rows": 1,
    }
    assert (pen["quantity"], pen["MAX(price)"]) == (None, Decimal("3.00"))


@pytest.mark.parametrize(
    ("window", "starts"),
    [
        (IN_WINDOWS, [0]),
        ("TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))", [-5, 0]),
        ("TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))", None),
        ("TABLE(SESSION(TABLE orders PARTITION BY word, DESCRIPTOR(ts), INTERVAL '7' SECOND))", [0]),
    ],
    ids=["tumble", "hop", "cumulate", "session"],
)
def test_the_aggregates_of_windows(queries: Queries, window: str, starts: list[int] | None) -> None:
    savepoint = queries.savepoint(
        f"SELECT word, window_start, SUM(quantity) AS s FROM {window} GROUP BY word, window_start, window_end"
    )
    found = [row for row in rows(savepoint, "WindowAggregate", "groups") if row["word"] == "ink"]
    ends = sorted(row.pop("window_end") for row in found)
    assert ends == ([at(5), at(10)] if starts is None else [at(start + 10) for start in starts])
    if starts is not None:
        assert sorted(row.pop("window_start") for row in found) == [at(start) for start in starts]
    assert [row for row in found if row != {"word": "ink", "SUM(quantity)": 5, "rows": 3}] == []


def test_rows_that_wait_for_their_place_in_time(queries: Queries) -> None:
    savepoint = queries.savepoint("SELECT word, ts FROM orders ORDER BY ts, word", delay=1)
    found = [{**row} for row in rows(savepoint, "TemporalSort", "waiting")]
    assert sorted(row.pop("arrival") for row in found) == [0]
    assert found == [{"word": "ink", "ts": at(3), "time": moment(3)}]
    assert rows(savepoint, "TemporalSort", "progress") == [{"last_time": moment(2)}]
    meaning = savepoint.meaning(uid_of(savepoint, "TemporalSort", "waiting"))
    assert meaning == "TemporalSort(orderBy=[ts ASC, word ASC])"


def test_values_of_windows_and_rows_of_sessions(queries: Queries) -> None:
    savepoint = queries.savepoint(
        f"SELECT word, COUNT(DISTINCT price) AS c FROM {IN_WINDOWS} GROUP BY word, window_start, window_end"
    )
    window = {"word": "ink", "window_start": at(0), "window_end": at(10)}
    expected = [{**window, "price": LOW, "count": 2}, {**window, "price": HIGH, "count": 1}]
    assert rows(savepoint, "WindowAggregate", "distinct 0")[:2] == expected

    sessions = "TABLE(SESSION(TABLE orders PARTITION BY word, DESCRIPTOR(ts), INTERVAL '7' SECOND))"
    savepoint = queries.savepoint(f"SELECT word, window_start, price FROM {sessions}")
    found = rows(savepoint, "WindowTableFunction", "groups")
    assert [(row["word"], row["position"], row["price"]) for row in found[:3]] == [
        ("ink", 1, LOW),
        ("ink", 2, HIGH),
        ("ink", 3, LOW),
    ]
    assert found[1] == {**window, "position": 2, "price": HIGH, "ts": at(1)}


def test_the_sides_of_joins(queries: Queries) -> None:
    on = "a.word = b.word AND a.quantity = b.quantity"
    savepoint = queries.savepoint(f"SELECT a.word, b.price FROM orders a LEFT JOIN orders b ON {on}")
    left = [("word", "STRING", "key"), ("quantity", "INT", "key")]
    counts = [("count", "BIGINT", "count"), ("matches", "BIGINT", "count")]
    assert columns(savepoint, "Join", "left") == [*left, *counts]
    assert columns(savepoint, "Join", "right") == [*left, ("price", "DECIMAL(10, 2)", "row"), counts[0]]
    assert [tuple(row.values()) for row in rows(savepoint, "Join", "left")] == [("ink", 1, 1, 1), ("ink", 2, 2, 2)]
    assert [tuple(row.values()) for row in rows(savepoint, "Join", "right")] == [
        ("ink", 1, HIGH, 1),
        ("ink", 2, LOW, 2),
    ]
    assert savepoint.meaning(uid_of(savepoint, "Join", "left")).startswith(
        "Join(joinType=[LeftOuterJoin], where=[(word = word0) AND (quantity = quantity0)]"
    )


def test_the_sides_of_joins_in_time(queries: Queries) -> None:
    near = "a.word = b.word AND a.ts BETWEEN b.ts - INTERVAL '2' SECOND AND b.ts"
    savepoint = queries.savepoint(f"SELECT a.word, b.price FROM orders a RIGHT JOIN orders b ON {near}")
    assert rows(savepoint, "IntervalJoin", "left")[0] == {"word": "ink", "ts": at(0), "time": moment(0), "count": 1}
    last = {"word": "ink", "price": HIGH, "ts": at(1), "time": moment(1), "count": 1, "matches": 1}
    assert last in rows(savepoint, "IntervalJoin", "right")

    in_windows = f"(SELECT word, price, paid, window_start, window_end FROM {IN_WINDOWS})"
    equal = " AND ".join(f"a.{name} = b.{name}" for name in ("word", "window_start", "window_end"))
    savepoint = queries.savepoint(f"SELECT a.word, b.price, b.paid FROM {in_windows} a JOIN {in_windows} b ON {equal}")
    window = {"word": "ink", "window_start": at(0), "window_end": at(10)}
    found = rows(savepoint, "WindowJoin", "right")
    row = {**window, "price": HIGH, "paid": False, "time": moment(9.999)}
    assert row in [{name: value for name, value in one.items() if name != "arrival"} for one in found]

    versions = "SELECT *, ROW_NUMBER() OVER (PARTITION BY word ORDER BY ts DESC) AS r FROM orders"
    savepoint = queries.savepoint(f"""
        WITH v AS (SELECT word, price, ts FROM ({versions}) WHERE r = 1)
        SELECT a.word, v.price FROM orders a JOIN v FOR SYSTEM_TIME AS OF a.ts ON a.word = v.word
    """)
    kinds = [(row["ts"], row["price"], row["kind"]) for row in rows(savepoint, "TemporalJoin", "right")]
    ink = sorted(kind for kind in kinds if kind[0] != at(2))
    assert ink == [(at(0), LOW, "+I"), (at(1), HIGH, "+U"), (at(3), LOW, "+U")]
    waiting = [row["time"] for row in rows(savepoint, "TemporalJoin", "left")]
    assert sorted(waiting) == [moment(0), moment(1), moment(2), moment(3)]


def test_deduplication_and_top_n(queries: Queries) -> None:
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY word ORDER BY {}) AS r FROM orders"
    savepoint = queries.savepoint(
        f"SELECT word, price, quantity, paid, ts FROM ({ranked.format('ts DESC')}) WHERE r = 1"
    )
    last = [dict(zip(COLUMNS, order, strict=True)) for order in (ORDERS[3], ORDERS[2])]
    assert rows(savepoint, "Rank", "first rows") == last
    assert columns(savepoint, "Rank", "first rows")[1] == ("price", "DECIMAL(10, 2)", "row")

    savepoint = queries.savepoint(f"SELECT word, price, r FROM ({ranked.format('price DESC')}) WHERE r <= 2")
    assert [tuple(row.values()) for row in rows(savepoint, "Rank", "partitions")] == [
        ("ink", 1, HIGH),
        ("ink", 2, LOW),
        ("pen", 1, Decimal("3.00")),
    ]
    meaning = savepoint.meaning(uid_of(savepoint, "Rank", "partitions"))
    assert "partitionBy=[word], orderBy=[price DESC], rankRange=[rankStart=1, rankEnd=2]" in meaning

    savepoint = queries.savepoint(f"""
        SELECT word, paid FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price) AS r
        FROM {IN_WINDOWS}) WHERE r = 1
    """)
    (first,) = rows(savepoint, "WindowRank", "rows")
    assert (first["window_end"], first["word"], first["price"], first["paid"]) == (at(10), "ink", LOW, True)


def test_over(queries: Queries) -> None:
    over = "OVER (PARTITION BY word ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    savepoint = queries.savepoint(f"SELECT word, price, SUM(quantity) {over} AS s FROM orders", delay=2)
    waiting = [{"word": "ink", "price": LOW, "quantity": 2, "ts": at(3), "time": moment(3), "arrival": 1}]
    waiting += [
        {"word": "pen", "price": Decimal("3.00"), "quantity": None, "ts": at(2), "time": moment(2), "arrival": 0}
    ]
    found = rows(savepoint, "OverAggregate", "waiting")
    assert [{**row, "arrival": 0} for row in found] == [{**row, "arrival": 0} for row in waiting]
    (group,) = rows(savepoint, "OverAggregate", "groups")
    assert group == {"word": "ink", "SUM(quantity)": 3, "last_time": moment(1), "rows": 2}
    frames = [(row["word"], row["quantity"], row["time"]) for row in rows(savepoint, "OverAggregate", "frames")]
    assert sorted(frames) == [("ink", 1, moment(1)), ("ink", 2, moment(0))]

    savepoint = queries.savepoint("SELECT word, SUM(quantity) OVER (PARTITION BY word ORDER BY price) AS s FROM orders")
    found = rows(savepoint, "OverAggregate", "partitions")
    assert [tuple(row.values()) for row in found[:3]] == [("ink", 1, LOW, 2), ("ink", 2, LOW, 2), ("ink", 3, HIGH, 1)]


def test_matches_that_are_under_way(queries: Queries) -> None:
    savepoint = queries.savepoint(
        """
        SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY word ORDER BY ts MEASURES a.price AS p, b.price AS q
            PATTERN (a b c) DEFINE b AS b.price > a.price, c AS c.quantity > 5)
        """,
        delay=2,
    )
    partial = rows(savepoint, "Match", "partial matches")
    places = [(row["match"], row["waits_for"], row["variable"], row["price"], row["time"]) for row in partial]
    assert places == [
        (1, "c", "a", LOW, moment(0)),
        (1, "c", "b", HIGH, moment(1)),
        (2, "b", "a", HIGH, moment(1)),
    ]
    assert {row["word"] for row in partial} == {"ink"}
    waiting = {(row["word"], row["price"], row["time"]) for row in rows(savepoint, "Match", "waiting events")}
    assert waiting == {("ink", LOW, moment(3)), ("pen", Decimal("3.00"), moment(2))}
    assert all("ts" not in row for row in partial), "it is the time"
    timers = [{"word": "ink", "time": moment(3)}, {"word": "pen", "time": moment(2)}]
    assert rows(savepoint, "Match", "event-time timers") == timers


def test_what_a_sink_that_overwrites_keeps(tmp_path: Path) -> None:
    env = environment()
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "first").write_text("ink,2\nink,3\npen,1\n")
    env.execute_sql(f"""
        CREATE TABLE orders (word STRING, quantity INT) WITH ('connector' = 'filesystem', 'path' = '{folder}',
            'format' = 'csv', 'source.monitor-interval' = '10 ms')
    """)
    env.execute_sql(f"""
        CREATE TABLE totals (word STRING, total INT, PRIMARY KEY (total) NOT ENFORCED) WITH (
            'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "totals.db"}', 'table-name' = 'totals')
    """)
    database = sqlite3.connect(tmp_path / "totals.db", timeout=120)
    database.execute("CREATE TABLE totals (word TEXT, total INT PRIMARY KEY)")
    client = env.execute_sql(
        "INSERT INTO totals SELECT word, SUM(quantity) FROM orders GROUP BY word ON CONFLICT DO DEDUPLICATE"
    ).get_job_client()
    assert client is not None
    try:
        assert eventually(lambda: len(database.execute("SELECT * FROM totals").fetchall()) == 2)
        savepoint = Savepoint.load(client.stop_with_savepoint(False, str(tmp_path)).result())
    finally:
        client.cancel().result()
    assert [tuple(row.values()) for row in rows(savepoint, "SinkMaterialize", "partitions")] == [
        (1, 1, "pen"),
        (5, 1, "ink"),
    ]
    assert savepoint.meaning(uid_of(savepoint, "SinkMaterialize", "partitions")).startswith("SinkMaterialize(key=[")
    (source,) = [uid for uid in savepoint.operators() if uid.startswith("sql-source")]
    (piece,) = savepoint.read_position(source).to_pylist()
    assert (piece["file"], piece["from"], piece["to"], piece["size"]) == (str(folder / "first"), 0, 18, 18)


GROUPS = "SELECT word, COUNT(*) AS n FROM orders GROUP BY word"


def test_a_savepoint_without_a_description_is_shown_as_it_is_stored(queries: Queries) -> None:
    savepoint = queries.savepoint(GROUPS)
    path = Path(savepoint.path)
    uid = uid_of(savepoint, "GroupAggregate", "groups")
    stored = ["key", "key_pickle", "value_pickle"]
    assert savepoint.read_arrow(uid, "groups", stored=True).column_names == stored
    described = json.loads((path / "tables.json").read_text())

    newer = {**described, "format": described["format"] + 1}
    (path / "tables.json").write_text(json.dumps(newer))
    assert Savepoint.load(str(path)).read_arrow(uid, "groups").column_names == stored

    (path / "tables.json").unlink()
    former = Savepoint.load(str(path))
    assert former.read_arrow(uid, "groups").column_names == stored
    assert (former.columns(uid, "groups"), former.meaning(uid)) == ([], "")
    assert sorted(former.items(uid, "groups")) == [("ink", (3,)), ("pen", (1,))]


def test_the_command_line_and_the_page_show_columns(queries: Queries, capsys: pytest.CaptureFixture[str]) -> None:
    savepoint = queries.savepoint(GROUPS)
    uid = uid_of(savepoint, "GroupAggregate", "groups")
    assert main(["state", savepoint.path]) == 0
    told = capsys.readouterr().out
    assert f"GroupAggregate  (uid {uid})\n  GroupAggregate(groupBy=[word], select=[word, COUNT(*) AS n])\n" in told
    assert "    word      STRING  key\n    COUNT(*)  BIGINT  aggregate\n" in told
    assert "script  (uid script)\n\n  how far it was read\n    position\n    1\n" in told

    assert main(["state", savepoint.path, "GroupAggregate", "groups", "--key", "INK"]) == 0
    told = capsys.readouterr().out
    assert "    word STRING  COUNT(*) BIGINT\n    ink                        3\n" in told
    # The path has all sorts of things in it.
    assert "pen" not in told.replace(savepoint.path, "")

    assert main(["state", savepoint.path, uid[:15], "--json", "--limit", "1"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["states"][0]["titles"], one["states"][0]["matching"]) == (["word", "COUNT(*)"], 2)
    assert len(one["states"][0]["rows"]) == 1

    assert main(["state", savepoint.path, "nobody"]) != 0
    assert "no operator 'nobody'" in capsys.readouterr().err

    page = state_rows(savepoint, uid, "groups", "pen", 0, 10)
    assert (page.columns, page.rows, page.matching, page.total) == (["word", "COUNT(*)"], [["pen", 1]], 1, 2)


def test_a_description_comes_back_from_its_file(queries: Queries) -> None:
    savepoint = queries.savepoint(GROUPS)
    assert tables_from_json((Path(savepoint.path) / "tables.json").read_text()) == savepoint._tables
    with pytest.raises(ValueError, match="lacks something"):
        tables_from_json('{"format": 1}')
