"""Queries over one stream of events that together have every operator of SQL with state.

All results have the same form: (kind, key, n, value). ``APPENDED`` give each row once and never take it back;
``CHANGED`` are changelogs, whose last row of each (kind, key, n) stands. What both come to does not depend on when
batches begin and end: no event is late, and ties are broken by the number of the event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from firesteel.common import Row, RowKind, Types
from firesteel.connectors.table.lookup import LookupTable
from firesteel.datastream import DataStream
from firesteel.table import (
    AggregateFunction,
    ChangelogMode,
    DataTypes,
    Schema,
    StreamTableEnvironment,
    TableAggregateFunction,
)
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.expressions import col
from firesteel.table.physical.lookups import register_lookup
from firesteel.table.udf import udaf, udtaf

__all__ = ["APPENDED", "CHANGED", "CHANGES", "EVENT", "declare", "event"]

KEYS = 6
EVENT = Types.ROW_NAMED(["k", "n", "v"], [Types.INT(), Types.LONG(), Types.LONG()])
_UPSERT = Types.ROW_NAMED(["p", "k", "n", "v"], [Types.LONG(), Types.INT(), Types.LONG(), Types.LONG()])
CHANGES = "changes"
"""The table of upserts, which is read by its primary key."""
MILLIS_PER_EVENT = 10

_LONG = "CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '2024-01-01 00:00:00', {}) AS BIGINT)"
_START, _END = _LONG.format("window_start"), _LONG.format("window_end")


def event(n: int) -> Row:
    """The event with a number."""
    return Row(k=n % KEYS, n=n, v=n * 37 % 101)


def _upsert(row: Any) -> Row:
    """A row for one of some hundred keys; each eleventh one deletes what its key has."""
    made = Row(p=row.n % 97, k=row.k, n=row.n, v=row.v)
    made.set_row_kind(RowKind.DELETE if row.n % 11 == 10 else RowKind.UPDATE_AFTER)
    return made


def _squares(table: DeclaredTable, path: str) -> LookupTable:
    return Squares()


def _windows(function: str, rest: str, source: str = "events") -> str:
    return f"TABLE({function}(TABLE {source}, DESCRIPTOR(ts), {rest}))"


_VIEWS = {
    "bursts": "SELECT * FROM events WHERE MOD(n / 120, 3) <> 0",
    "lefts": "SELECT *, n / 40 AS j FROM events WHERE MOD(n, 7) = 3",
    "rights": "SELECT *, n / 40 AS j FROM events WHERE MOD(n, 11) = 5",
    "in_order": "SELECT * FROM events WHERE MOD(n, 5) = 1 ORDER BY ts, v",
    "moments": "SELECT *, PROCTIME() AS pt FROM events",
    "rates": "SELECT k, v, ts FROM (SELECT k, v, ts, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS newest "
    "FROM events WHERE MOD(n, 9) = 4) WHERE newest = 1",
}
_TUMBLE = _windows("TUMBLE", "INTERVAL '2' SECOND")
_HOP = _windows("HOP", "INTERVAL '1' SECOND, INTERVAL '3' SECOND")
_CUMULATE = _windows("CUMULATE", "INTERVAL '1' SECOND, INTERVAL '3' SECOND")
_LEFT_WINDOWS = _windows("TUMBLE", "INTERVAL '2' SECOND", "lefts")
_RIGHT_WINDOWS = _windows("TUMBLE", "INTERVAL '2' SECOND", "rights")
_OVER = "SELECT '{}', k, n, SUM(v) OVER w * 1000 + COUNT(*) OVER w FROM events WINDOW w AS (PARTITION BY k {})"

APPENDED: dict[str, str] = {
    "tumble": f"SELECT 'tumble', k, {_END}, COUNT(*) * 1000000 + SUM(v) FROM {_TUMBLE} "
    "GROUP BY k, window_start, window_end",
    "hop": f"SELECT 'hop', k, {_END}, COUNT(DISTINCT v) * 1000 + MAX(v) "
    f"FROM {_HOP} GROUP BY k, window_start, window_end",
    "cumulate": f"SELECT 'cumulate', k, {_END}, largest(v) * 1000 + MIN(v) "
    f"FROM {_CUMULATE} "
    "GROUP BY k, window_start, window_end",
    "session": f"SELECT 'session', k, {_LONG.format('window_start')}, COUNT(*) * 1000000 + SUM(v) "
    "FROM TABLE(SESSION(TABLE bursts PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.7' SECOND)) "
    "GROUP BY k, window_start, window_end",
    "all windows": f"SELECT 'all windows', 0, {_END}, COUNT(*) * 1000000 + SUM(v) FROM {_TUMBLE} "
    "GROUP BY window_start, window_end",
    "grouped windows": f"SELECT 'grouped windows', CAST(m AS INT), {_END}, SUM(s) * 100 + COUNT(*) FROM ("
    "SELECT MOD(k, 2) AS m, window_start, window_end, SUM(v) AS s "
    f"FROM {_TUMBLE} GROUP BY k, window_start, window_end) GROUP BY m, window_start, window_end",
    "ordered": "SELECT 'ordered', k, n, v FROM in_order",
    "over": _OVER.format("over", "ORDER BY ts"),
    "over range": _OVER.format("over range", "ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW"),
    "over rows": "SELECT 'over rows', k, n, MAX(v) OVER w * 1000 + MIN(v) OVER w FROM events "
    "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 7 PRECEDING AND CURRENT ROW)",
    "interval": "SELECT 'interval', l.k, l.n * 100000 + r.n, l.v - r.v FROM lefts AS l JOIN rights AS r "
    "ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '1' SECOND AND r.ts + INTERVAL '2' SECOND",
    "interval left": "SELECT 'interval left', l.k, l.n * 100000 + COALESCE(r.n, 0), l.v FROM lefts AS l "
    "LEFT JOIN rights AS r ON l.k = r.k AND l.v = r.v "
    "AND l.ts BETWEEN r.ts - INTERVAL '1' SECOND AND r.ts + INTERVAL '2' SECOND",
    "temporal": "SELECT 'temporal', e.k, e.n, COALESCE(r.v, -1) FROM events AS e "
    "LEFT JOIN rates FOR SYSTEM_TIME AS OF e.ts AS r ON e.k = r.k",
    "window join": "SELECT 'window join', COALESCE(l.k, r.k), COALESCE(l.n, 0) * 100000 + COALESCE(r.n, 0), "
    "COALESCE(l.v, 0) - COALESCE(r.v, 0) "
    f"FROM (SELECT * FROM {_LEFT_WINDOWS}) AS l "
    f"FULL JOIN (SELECT * FROM {_RIGHT_WINDOWS}) AS r "
    "ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end",
    "window top": f"SELECT 'window top', k, {_START} * 10 + place, v * 1000000 + n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY v DESC, n) AS place "
    f"FROM {_TUMBLE}) WHERE place <= 2",
    "window last": f"SELECT 'window last', k, {_START}, n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts DESC) AS place "
    f"FROM {_TUMBLE}) WHERE place = 1",
    "pattern": "SELECT 'pattern', k, top_n, bottom_n FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES FIRST(down.n) AS top_n, LAST(down.n) AS bottom_n AFTER MATCH SKIP PAST LAST ROW PATTERN (down{2,} up) "
    "DEFINE down AS LAST(down.v, 1) IS NULL OR down.v < LAST(down.v, 1), up AS up.v > LAST(down.v))",
    "lookup": "SELECT 'lookup', e.k, e.n, s.square FROM moments AS e "
    "JOIN squares FOR SYSTEM_TIME AS OF e.pt AS s ON e.v = s.v",
}
"""Queries that give each row once."""

CHANGED: dict[str, str] = {
    "groups": "SELECT 'groups', k, n / 60, COUNT(*) * 1000000 + SUM(v) * 1000 + COUNT(DISTINCT v) FROM events "
    "GROUP BY k, n / 60",
    "regroups": "SELECT 'regroups', MOD(k, 2), CAST(0 AS BIGINT), SUM(c) * 1000000 + MAX(s) - MIN(s) FROM ("
    "SELECT k, COUNT(*) AS c, SUM(v) AS s FROM events GROUP BY k) GROUP BY MOD(k, 2)",
    "own groups": "SELECT 'own groups', k, n / 60, largest(v) FROM events GROUP BY k, n / 60",
    "own rows": "SELECT 'own rows', k, place, v FROM two_largest",
    "inner": "SELECT 'inner', l.k, l.n * 100000 + r.n, l.v - r.v FROM lefts AS l JOIN rights AS r ON l.j = r.j",
    "left": "SELECT 'left', l.k, l.n * 100000 + COALESCE(r.n, 0), l.v FROM lefts AS l "
    "LEFT JOIN rights AS r ON l.j = r.j AND r.v > l.v",
    "full": "SELECT 'full', COALESCE(l.k, r.k), COALESCE(l.n, 0) * 100000 + COALESCE(r.n, 0), "
    "COALESCE(l.v, 0) - COALESCE(r.v, 0) FROM lefts AS l FULL JOIN rights AS r ON l.j = r.j AND r.v = l.v",
    "semi": "SELECT 'semi', k, n, v FROM lefts WHERE j IN (SELECT j FROM rights WHERE v > 50)",
    "anti": "SELECT 'anti', k, n, v FROM lefts AS l WHERE NOT EXISTS (SELECT 1 FROM rights AS r "
    "WHERE r.j = l.j AND r.v > 60)",
    "top": "SELECT 'top', k, place, v * 1000000 + n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, n DESC) AS place FROM events) WHERE place <= 5",
    "top of groups": "SELECT 'top of groups', CAST(MOD(j, 4) AS INT), place, s * 1000000 + j FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY MOD(j, 4) ORDER BY s DESC, j) AS place "
    "FROM (SELECT n / 40 AS j, SUM(v) AS s FROM events GROUP BY n / 40)) WHERE place <= 3",
    "first": "SELECT 'first', k, j, n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY k, j ORDER BY ts) AS place FROM lefts) WHERE place = 1",
    "last": "SELECT 'last', k, j, n FROM ("
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY k, j ORDER BY ts DESC) AS place FROM lefts) WHERE place = 1",
    "sorted over": "SELECT 'sorted over', k, n, SUM(v) OVER (PARTITION BY j ORDER BY v, n) FROM lefts",
    "intersect": "SELECT 'intersect', CAST(v AS INT), j, COUNT(*) FROM ("
    "SELECT MOD(v, 5) AS v, j FROM lefts INTERSECT ALL SELECT MOD(v, 5) AS v, j FROM rights) GROUP BY v, j",
    "except": "SELECT 'except', CAST(v AS INT), j, COUNT(*) FROM ("
    "SELECT MOD(v, 5) AS v, j FROM lefts EXCEPT ALL SELECT MOD(v, 5) AS v, j FROM rights) GROUP BY v, j",
    "normalized": "SELECT 'normalized', MOD(k, 2), n / 100, COUNT(*) * 1000000 + SUM(v) FROM changes "
    "GROUP BY MOD(k, 2), n / 100",
}
"""Queries that change what they gave, and in the end have one row for each key."""


class Largest(AggregateFunction):
    """MAX as a user's function."""

    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: int) -> None:
        accumulator[:] = [max(value, *accumulator)] if accumulator else [value]

    def merge(self, accumulator: list[Any], others: list[list[Any]]) -> None:
        for other in others:
            for value in other:
                self.accumulate(accumulator, value)

    def get_value(self, accumulator: list[Any]) -> int | None:
        return accumulator[0] if accumulator else None

    def get_result_type(self) -> Any:
        return DataTypes.BIGINT()

    def get_accumulator_type(self) -> Any:
        return DataTypes.ARRAY(DataTypes.BIGINT())


class TwoLargest(TableAggregateFunction):
    """The two largest values of a group, and their places."""

    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: int) -> None:
        accumulator[:] = sorted([*accumulator, value], reverse=True)[:2]

    def emit_value(self, accumulator: list[Any]) -> Iterator[Row]:
        for place, value in enumerate(accumulator):
            yield Row(place, value)

    def get_result_type(self) -> Any:
        return "ROW<place BIGINT, v BIGINT>"

    def get_accumulator_type(self) -> Any:
        return "ARRAY<BIGINT>"


class Squares(LookupTable):
    """A table that is asked for keys."""

    def lookup(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        found = [value for value in keys.column("v").to_pylist() if value % 3]
        return pa.record_batch({"v": pa.array(found, pa.int64()), "square": pa.array([v * v for v in found])})


def declare(tables: StreamTableEnvironment, events: DataStream) -> None:
    """The tables and views that all queries read. Event time may go back by up to 0.4 s, watermarks by 0.5 s."""
    moment = f"TIMESTAMPADD(MILLISECOND, CAST(n * {MILLIS_PER_EVENT} - MOD(n * 7, 5) * 100 AS INT), "
    schema = (
        Schema.new_builder()
        .column("k", "INT")
        .column("n", "BIGINT")
        .column("v", "BIGINT")
        .column_by_expression("ts", moment + "TIMESTAMP '2024-01-01 00:00:00.000')")
        .watermark("ts", "ts - INTERVAL '0.5' SECOND")
        .build()
    )
    tables.create_temporary_view("events", tables.from_data_stream(events, schema))
    upserts = Schema.new_builder().column("p", "BIGINT NOT NULL").column("k", "INT").column("n", "BIGINT")
    upserts = upserts.column("v", "BIGINT").primary_key("p")
    changes = events.map(_upsert, output_type=_UPSERT).uid("upserts").set_parallelism(1)
    changing = tables.from_changelog_stream(changes, upserts.build(), ChangelogMode.upsert())
    tables.create_temporary_view(CHANGES, changing)
    for name, query in _VIEWS.items():
        tables.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
    tables.create_temporary_function("largest", udaf(Largest()))
    two = tables.from_path("events").group_by(col("k")).flat_aggregate(udtaf(TwoLargest())(col("v")))
    tables.create_temporary_view("two_largest", two.select(col("k"), col("place"), col("v")))
    register_lookup("squares", _squares)
    tables.execute_sql(
        "CREATE TABLE squares (v BIGINT, square BIGINT) WITH ('connector' = 'squares', 'lookup.cache' = 'PARTIAL')"
    )
