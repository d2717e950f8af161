# ruff: noqa: E501 (queries stand in one line each)
"""Queries over windows and the tables that they read, for Firesteel and for PyFlink alike.

    python tests/table/window_programs.py pyflink > tests/table/windows_by_pyflink.json

records what PyFlink gives for them. A program is SQL, or an expression of the Table API over the table ``t``.
"""

from __future__ import annotations

import importlib
import json
import sys
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

_NULL = None
T = [
    (0, "a", 1, 0.1, "1.50"),
    (1, "b", 2, 0.2, "2.25"),
    (3, "a", 3, 0.3, "0.10"),
    (2, "a", _NULL, _NULL, _NULL),
    (3, "a", 5, 0.7, "9.99"),
    (3, "b", 2, 0.1, "1.00"),
    (6, "a", -7, 1e18, "-3.33"),
    (7, "b", 4, 0.5, "4.00"),
    (8, "a", 3, -1e18, "7.77"),
    (12, "a", 9, 0.25, "0.01"),
    (12, "c", 1, 0.75, "5.55"),
    (21, "b", 8, 0.125, "6.00"),
]
U = [(1, "a", 10), (2, "b", 20), (4, "a", 30), (7, "c", 40), (8, "a", 50), (13, "c", 60), (22, "b", _NULL)]


def _array(values: list[Any], kind: str) -> str:
    shown = ["CAST(NULL AS STRING)" if value is None else f"'{value}'" for value in values]
    return f"CAST(ARRAY[{', '.join(shown)}][CAST(n AS INT)] AS {kind})"


def _table(name: str, rows: list[tuple[Any, ...]], columns: list[tuple[str, str]], zoned: bool = False) -> str:
    computed = [
        f"{column} AS {_array([row[at] for row in rows], kind)}" for at, (column, kind) in enumerate(columns, 1)
    ]
    seconds = f"ARRAY[{', '.join(str(row[0]) for row in rows)}][CAST(n AS INT)]"
    begin = "1704067200" if zoned else "TIMESTAMP '2024-01-01 00:00:00.000'"
    moment = (
        f"TO_TIMESTAMP_LTZ(({begin} + {seconds}) * 1000, 3)" if zoned else f"TIMESTAMPADD(SECOND, {seconds}, {begin})"
    )
    return (
        f"CREATE TABLE {name} (n BIGINT, {', '.join(computed)}, ts AS {moment}, "
        "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        f"'fields.n.start' = '1', 'fields.n.end' = '{len(rows)}')"
    )


_COLUMNS = [("k", "STRING"), ("v", "BIGINT"), ("d", "DOUBLE"), ("m", "DECIMAL(10, 2)")]
TABLES = [
    _table("t", T, _COLUMNS),
    _table("u", U, [("k", "STRING"), ("x", "INT")]),
    _table("z", T, _COLUMNS, zoned=True),
    "CREATE TEMPORARY VIEW plain AS SELECT k, CAST(ts AS TIMESTAMP(3)) AS ts FROM t",
    "CREATE TEMPORARY VIEW p AS SELECT k, v, d, PROCTIME() AS pt FROM t",
]
TUMBLE = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
W, WU, WZ = TUMBLE.format("t"), TUMBLE.format("u"), TUMBLE.format("z")
HOP = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))"
CUMULATE = "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND))"
SESSION = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
ROWS2 = "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
RANGE3 = "WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW)"
ALL = "WINDOW w AS (PARTITION BY k ORDER BY ts)"
ALL_ROWS = "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
MANY = "SUM(v) OVER w, COUNT(v) OVER w, AVG(v) OVER w, MIN(v) OVER w, MAX(v) OVER w"
JOIN = (
    "SELECT L.k, L.v, R.x, L.window_end FROM (SELECT * FROM {0}) L {2} JOIN (SELECT * FROM {1}) R "
    "ON L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end"
).format
TOP = (
    "SELECT k, v, window_end{2} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end{1} "
    "ORDER BY {0}) AS rn FROM {3}) WHERE rn <= {4}"
).format

PROGRAMS: dict[str, str] = {
    "over range": f"SELECT k, v, {MANY} FROM t {ALL}",
    "over rows": f"SELECT k, v, {MANY} FROM t {ALL_ROWS}",
    "over two rows": f"SELECT k, v, {MANY} FROM t {ROWS2}",
    "over three seconds": f"SELECT k, v, {MANY} FROM t {RANGE3}",
    "over doubles, rows": f"SELECT k, d, SUM(d) OVER w, AVG(d) OVER w, MAX(d) OVER w FROM t {ROWS2}",
    "over doubles, time": f"SELECT k, d, SUM(d) OVER w, AVG(d) OVER w, MIN(d) OVER w FROM t {RANGE3}",
    "over decimals": f"SELECT k, m, SUM(m) OVER w, AVG(m) OVER w, MAX(m) OVER w FROM t {RANGE3}",
    "over without a partition": "SELECT k, v, COUNT(*) OVER (ORDER BY ts ROWS 3 PRECEDING) FROM t WHERE k <> 'c'",
    "over distinct": f"SELECT k, v, COUNT(DISTINCT v) OVER w, SUM(DISTINCT v) OVER w FROM t {ROWS2}",
    "over distinct, all": f"SELECT k, v, COUNT(DISTINCT v) OVER w FROM t {ALL}",
    "over first and last": f"SELECT k, v, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w FROM t {ALL}",
    "over first and last of rows": f"SELECT k, v, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w FROM t {ROWS2}",
    "over lag": f"SELECT k, v, LAG(v) OVER w, LAG(v, 2) OVER w FROM t {ALL}",
    "over lag with a default": f"SELECT k, v, LAG(v, 2, CAST(99 AS BIGINT)) OVER w FROM t WHERE v IS NOT NULL {ALL}",
    "over lag of text": f"SELECT k, v, LAG(k, 1, 'none') OVER w FROM t {ALL}",
    "over row_number": f"SELECT k, v, ROW_NUMBER() OVER w FROM t {ALL}",
    # Flink counts rows of the same time one by one, also in RANK and DENSE_RANK: here no two are of the same time.
    "over rank": f"SELECT k, v, RANK() OVER w, DENSE_RANK() OVER w, SUM(v) OVER w FROM t WHERE v <> 5 {ALL}",
    "over in another order": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY v) FROM t",
    "row_number in another order": "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) FROM t",
    "over in another order of what changes": "SELECT c, k, SUM(s) OVER (PARTITION BY c ORDER BY k) FROM (SELECT k, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY k)",
    "over expressions": "SELECT UPPER(k), SUM(v * 2 + 1) OVER (PARTITION BY UPPER(k) ORDER BY ts) + 1 FROM t WHERE v > 0",
    "over listagg": f"SELECT k, LISTAGG(CAST(v AS STRING)) OVER w FROM t {ALL}",
    "over the clock": "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY pt), COUNT(*) OVER (PARTITION BY k ORDER BY pt) FROM p",
    "over the clock, rows": "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY pt ROWS 1 PRECEDING) FROM p",
    "over of an over": "SELECT k, s, MAX(s) OVER (PARTITION BY k ORDER BY ts) FROM (SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM t)",
    "groups of an over": "SELECT k, MAX(s) FROM (SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) AS s FROM t) GROUP BY k",
    "over of windows": f"SELECT k, c, SUM(c) OVER (PARTITION BY k ORDER BY window_time) FROM (SELECT k, window_time, COUNT(*) AS c FROM {W} GROUP BY k, window_start, window_end, window_time)",
    "over variance": f"SELECT k, VAR_POP(d) OVER w, STDDEV_SAMP(v) OVER w FROM t {ROWS2}",
    "windows as a table": f"SELECT k, v, window_start, window_end, window_time FROM {W}",
    "hops as a table": f"SELECT k, v, window_start, window_end FROM {HOP} WHERE v > 3",
    "cumulate as a table": f"SELECT k, v, window_start, window_end FROM {CUMULATE} WHERE v > 3",
    "session": f"SELECT k, window_start, window_end, window_time, COUNT(*), SUM(v) FROM {SESSION} GROUP BY k, window_start, window_end, window_time",
    "session without a partition": "SELECT window_start, window_end, COUNT(*), MAX(v) FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND)) GROUP BY window_start, window_end",
    "session as a table": f"SELECT k, v, window_start, window_end FROM {SESSION}",
    "groups in sessions": "SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND)) GROUP BY k, window_start, window_end",
    "session, distinct": f"SELECT k, window_end, COUNT(DISTINCT v) FROM {SESSION} GROUP BY k, window_start, window_end",
    "windows of windows": f"SELECT window_start, window_end, SUM(c), MAX(c) FROM (SELECT k, window_start, window_end, COUNT(*) AS c FROM {W} GROUP BY k, window_start, window_end) GROUP BY window_start, window_end",
    "cascade": f"WITH five AS (SELECT k, window_time AS rt, COUNT(*) AS c FROM {W} GROUP BY k, window_start, window_end, window_time) SELECT k, window_end, SUM(c) FROM TABLE(TUMBLE(TABLE five, DESCRIPTOR(rt), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end",
    "expressions of windows": f"SELECT k, EXTRACT(SECOND FROM window_end), COUNT(*) FROM {W} WHERE window_end > TIMESTAMP '2024-01-01 00:00:05' GROUP BY k, window_start, window_end",
    "zoned windows": f"SELECT k, window_start, window_end, COUNT(*) FROM {WZ} GROUP BY k, window_start, window_end",
    "zoned days": "SELECT k, window_start, window_end, SUM(v) FROM TABLE(TUMBLE(TABLE z, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY k, window_start, window_end",
    "window inner join": JOIN(W, WU, "INNER"),
    "window left join": JOIN(W, WU, "LEFT"),
    "window right join": JOIN(W, WU, "RIGHT").replace("L.window_end FROM", "R.window_end FROM"),
    "window full join": JOIN(W, WU, "FULL"),
    "window join with a condition": JOIN(W, WU, "LEFT") + " AND L.v * 10 < R.x",
    "window semi join": f"SELECT L.k, L.v FROM (SELECT * FROM {W}) L WHERE EXISTS (SELECT * FROM (SELECT * FROM {WU}) R WHERE L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end)",
    "window anti join": f"SELECT L.k, L.v FROM (SELECT * FROM {W}) L WHERE NOT EXISTS (SELECT * FROM (SELECT * FROM {WU}) R WHERE L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end)",
    "join of aggregated windows": f"SELECT L.k, L.c, R.s FROM (SELECT k, window_start, window_end, COUNT(*) AS c FROM {W} GROUP BY k, window_start, window_end) L JOIN (SELECT k, window_start, window_end, SUM(x) AS s FROM {WU} GROUP BY k, window_start, window_end) R ON L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end",
    "window top 2": TOP("v DESC", "", ", rn", W, 2),
    "window top 2 without the place": TOP("v", "", "", W, 2),
    "window top 1 of each key": TOP("v DESC", ", k", "", W, 1),
    "window deduplication, first": TOP("ts", ", k", "", W, 1),
    "window deduplication, last": TOP("ts DESC", ", k", "", W, 1),
    "top of aggregated windows": f"SELECT k, window_end, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rn FROM (SELECT k, window_start, window_end, SUM(v) AS s FROM {HOP} GROUP BY k, window_start, window_end)) WHERE rn <= 1",
    "grouping sets": "SELECT k, v, COUNT(*), GROUPING(k), GROUPING_ID(k, v) FROM t GROUP BY GROUPING SETS ((k), (v), ())",
    "rollup": "SELECT k, v, SUM(d) FROM t WHERE v < 5 GROUP BY ROLLUP (k, v)",
    "cube": "SELECT k, v, COUNT(*), MAX(v) FROM t WHERE v < 4 GROUP BY CUBE (k, v)",
    "grouping sets with keys": "SELECT k, v, COUNT(*), GROUPING(v) FROM t GROUP BY k, GROUPING SETS ((v), ())",
    "grouping sets in windows": f"SELECT k, window_start, window_end, COUNT(*), SUM(v), GROUPING(k) FROM {W} GROUP BY window_start, window_end, GROUPING SETS ((k), ())",
    "rollup in windows": f"SELECT k, v, window_end, COUNT(*) FROM {W} GROUP BY window_start, window_end, ROLLUP (k, v)",
    "group window tumble": "SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND), TUMBLE_END(ts, INTERVAL '5' SECOND), TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND), SUM(v) FROM t GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
    "group window hop": "SELECT k, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND), COUNT(*) FROM t GROUP BY k, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "group window session": "SELECT k, SESSION_START(ts, INTERVAL '2' SECOND), SESSION_END(ts, INTERVAL '2' SECOND), SUM(v), COUNT(*) FROM t GROUP BY k, SESSION(ts, INTERVAL '2' SECOND)",
    "first and last": "SELECT k, FIRST_VALUE(v), LAST_VALUE(v), FIRST_VALUE(m), LAST_VALUE(ts) FROM t GROUP BY k",
    "first and last of what changes": "SELECT c, FIRST_VALUE(s), LAST_VALUE(s) FROM (SELECT k, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY k) GROUP BY c",
    "listagg": "SELECT k, LISTAGG(CAST(v AS STRING)), LISTAGG(CAST(m AS STRING), '|') FROM t GROUP BY k",
    "listagg of what changes": "SELECT c, LISTAGG(k) FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k) GROUP BY c",
    "listagg distinct": "SELECT k, LISTAGG(DISTINCT CAST(v AS STRING)) FROM t GROUP BY k",
    "collect": "SELECT k, COLLECT(v) FROM t WHERE v IS NOT NULL GROUP BY k",
    "array_agg": "SELECT k, ARRAY_AGG(v) FROM t WHERE v IS NOT NULL GROUP BY k",
    "variance of doubles": "SELECT k, VAR_POP(d), VAR_SAMP(d), STDDEV_POP(d), STDDEV_SAMP(d) FROM t WHERE d < 1 AND d > -1 GROUP BY k",
    "variance of numbers": "SELECT k, VAR_POP(v), VAR_SAMP(v), STDDEV_POP(v), STDDEV_SAMP(v), VARIANCE(v) FROM t GROUP BY k",
    "variance of decimals": "SELECT k, VAR_POP(m), STDDEV_SAMP(m) FROM t GROUP BY k",
    "aggregates in windows": f"SELECT k, window_end, FIRST_VALUE(v), LAST_VALUE(v), LISTAGG(CAST(v AS STRING)), VAR_POP(v) FROM {W} GROUP BY k, window_start, window_end",
    "single value": "SELECT k, SINGLE_VALUE(v) FROM t WHERE k = 'c' GROUP BY k",
    "json objects": "SELECT k, JSON_OBJECTAGG(KEY CAST(n AS STRING) VALUE v), JSON_OBJECTAGG(KEY CAST(n AS STRING) VALUE v ABSENT ON NULL) FROM t GROUP BY k",
    "json arrays": "SELECT k, JSON_ARRAYAGG(v), JSON_ARRAYAGG(v NULL ON NULL) FROM t GROUP BY k",
}
"""SQL by name. The first column is the key of the rows."""

EXPRESSIONS: dict[str, str] = {
    "table tumble": 't.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("w").start, col("w").end, col("w").rowtime, col("v").sum)',
    "table slide": 't.window(Slide.over(lit(10).seconds).every(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("w").start.alias("b"), col("v").max.alias("m"))',
    "table session": 't.window(Session.with_gap(lit(2).seconds).on(col("ts")).alias("w")).group_by(col("k"), col("w")).select(col("k"), col("w").start.alias("b"), col("w").end.alias("e"), col("v").count.alias("c"))',
    "table windows without keys": 't.window(Tumble.over(lit(10).seconds).on(col("ts")).alias("w")).group_by(col("w")).select(col("w").end.alias("e"), col("v").sum.alias("s"))',
    "table over range": 't.over_window(Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")).select(col("k"), col("v"), col("v").sum.over(col("w")), col("v").max.over(col("w")).alias("m"))',
    "table over rows": 't.over_window(Over.partition_by(col("k")).order_by(col("ts")).preceding(row_interval(1)).following(CURRENT_ROW).alias("w")).select(col("k"), col("v"), col("v").sum.over(col("w")).alias("s"))',
    "table over time": 't.over_window(Over.partition_by(col("k")).order_by(col("ts")).preceding(lit(3).seconds).following(CURRENT_RANGE).alias("w")).select(col("k"), col("v"), col("v").count.over(col("w")).alias("s"))',
    "table over without bounds": 't.over_window(Over.partition_by(col("k")).order_by(col("ts")).alias("w")).select(col("k"), col("v"), col("v").min.over(col("w")).alias("s"))',
    "table over everything": 't.over_window(Over.order_by(col("ts")).preceding(UNBOUNDED_ROW).alias("w")).select(col("n"), col("v").count.over(col("w")).alias("s"))',
}

REFUSED: dict[str, str] = {
    "descending": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts DESC) FROM t",
    "following": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t",
    "two following": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "two windows": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts), MAX(v) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) FROM t",
    "two partitions": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts), MAX(v) OVER (ORDER BY ts) FROM t",
    "no order": "SELECT k, SUM(v) OVER (PARTITION BY k) FROM t",
    "two orders": "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts, v) FROM t",
    "lead": "SELECT k, LEAD(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
    "ntile": "SELECT k, NTILE(2) OVER (PARTITION BY k ORDER BY ts) FROM t",
    "percent_rank": "SELECT k, PERCENT_RANK() OVER (PARTITION BY k ORDER BY ts) FROM t",
    "row_number and sum": "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts), SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
    "updates": "SELECT k, SUM(c) OVER (PARTITION BY k ORDER BY p) FROM (SELECT k, c, PROCTIME() AS p FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k))",
    "window without a watermark": "SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE plain, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end",
    "group window without a watermark": "SELECT v, COUNT(*) FROM t GROUP BY v, TUMBLE(v, INTERVAL '5' SECOND)",
    "lag with a frame": "SELECT k, LAG(v) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) FROM t",
    "partition of tumble": "SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end",
    "cumulate": "SELECT k, COUNT(*) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end",
}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return sorted([plain(key), plain(content)] for key, content in value.items())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def environment(library: str, zone: str = "UTC") -> Any:
    """A table environment of one library with the tables."""
    table = importlib.import_module(f"{library}.table")
    env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    if library == "firesteel":
        env.get_config().set("firesteel.master", "memory")
    env.get_config().set("table.local-time-zone", zone)
    for statement in TABLES:
        env.execute_sql(statement)
    return env


def evaluated(library: str, env: Any, expression: str) -> Any:
    """A table of the Table API."""
    windows, expressions = (importlib.import_module(f"{library}.table.{part}") for part in ("window", "expressions"))
    names = {**vars(expressions), **vars(windows)}
    return eval(expression, {**names, "t": env.from_path("t")})


def changes(result: Any) -> list[list[Any]]:
    """The kind and the values of each row."""
    with result.collect() as rows:
        return [[str(row.get_row_kind()), plain(list(row))] for row in rows]


def zone_of(name: str) -> str:
    return "Asia/Shanghai" if name.startswith("zoned") else "UTC"


def _recorded(library: str) -> dict[str, Any]:
    found: dict[str, Any] = {"changes": {}, "refused": {}}
    environments = {zone: environment(library, zone) for zone in ("UTC", "Asia/Shanghai")}
    env = environments["UTC"]
    for name, query in {**PROGRAMS, **REFUSED}.items():
        try:
            found["changes"][name] = changes(environments[zone_of(name)].execute_sql(query))
        except Exception as error:  # What it refuses is recorded, too.
            lines = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
            found["refused"][name] = (lines or [str(error)])[-1][:300]
        print(name, file=sys.stderr)
    for name, expression in EXPRESSIONS.items():
        try:
            found["changes"][name] = changes(evaluated(library, env, expression).execute())
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
            found["refused"][name] = (lines or [str(error)])[-1][:300]
    return found


if __name__ == "__main__":
    json.dump(_recorded(sys.argv[1]), sys.stdout, indent=1)
