"""The part of the golden program that libraries bring: SQL, patterns, and an operator of ``transform()``.

Golden data before version 2 has none of it. What ``goldenkit.py`` says of changes holds here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.cep import CEP, Pattern
from firesteel.common import Duration, Row, Types
from firesteel.datastream import CheckpointedFunction, DataStream, RuntimeContext, TimeDomain
from firesteel.datastream.functions import FunctionInitializationContext, FunctionSnapshotContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment
from firesteel.table.udf import AggregateFunction, udaf

__all__ = ["library_parts"]

_ROW = Types.ROW_NAMED(["k", "n", "price"], [Types.STRING(), Types.LONG(), Types.BIG_DEC()])
_IN_WINDOWS = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '0.010' SECOND))"
_RANKED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS r FROM orders"

QUERIES = {
    "groups": """
        SELECT k, COUNT(*) AS c, SUM(n) AS s, AVG(price) AS a, MIN(n) AS least, MAX(ts) AS latest,
            COUNT(DISTINCT n / 4) AS d, LISTAGG(CAST(n AS STRING)) AS l, spread(n) AS w
        FROM orders GROUP BY k
    """,
    # Of rows that are taken back. They come in one order: both operators have the same keys.
    "groups-of-updates": f"""
        SELECT k, COUNT(*) AS c, SUM(n) AS s, MAX(n) AS most, MIN(price) AS least
        FROM ({_RANKED.format("price DESC")}) WHERE r <= 2 GROUP BY k
    """,
    "distinct": "SELECT DISTINCT n / 5 AS fifth FROM orders",
    "tumbling": f"""
        SELECT k, window_start, COUNT(*) AS c, SUM(price) AS s FROM {_IN_WINDOWS}
        GROUP BY k, window_start, window_end
    """,
    "sessions": """
        SELECT k, window_start, window_end, MAX(n) AS m
        FROM TABLE(SESSION(TABLE orders PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.006' SECOND))
        GROUP BY k, window_start, window_end
    """,
    "window-join": f"""
        SELECT a.k, a.n, b.n AS m FROM (SELECT * FROM {_IN_WINDOWS}) a JOIN (SELECT * FROM {_IN_WINDOWS}) b
        ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end AND a.n < b.n
    """,
    "joined": "SELECT a.k, a.n, b.n AS m FROM orders a LEFT JOIN orders b ON a.k = b.k AND a.n = b.n + 3",
    "joined-in-time": """
        SELECT a.k, a.n, b.n AS m FROM orders a JOIN orders b
        ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '0.004' SECOND AND a.ts + INTERVAL '0.004' SECOND
    """,
    "joined-by-version": f"""
        WITH v AS (SELECT k, price, ts FROM ({_RANKED.format("ts DESC")}) WHERE r = 1)
        SELECT a.k, a.n, v.price FROM orders a JOIN v FOR SYSTEM_TIME AS OF a.ts ON a.k = v.k
    """,
    "last-rows": f"SELECT k, n FROM ({_RANKED.format('ts DESC')}) WHERE r = 1",
    "first-rows": f"SELECT k, n FROM ({_RANKED.format('ts')}) WHERE r = 1",
    "top": f"SELECT k, n, r FROM ({_RANKED.format('price DESC')}) WHERE r <= 2",
    "running": """
        SELECT k, n, SUM(n) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders
    """,
    "in-order": "SELECT k, n FROM orders ORDER BY ts",
    "rising": """
        SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.n AS first_n, LAST(b.n) AS last_n
        AFTER MATCH SKIP PAST LAST ROW PATTERN (a b{2}) DEFINE b AS b.n > a.n)
    """,
    "latest": "SELECT k, n FROM changes",
}


class Spread(AggregateFunction):
    """An aggregate of a user, with an accumulator."""

    def create_accumulator(self) -> Row:
        return Row(None, None)

    def accumulate(self, accumulator: Row, value: int) -> None:
        least, most = accumulator
        accumulator[0] = value if least is None else min(least, value)
        accumulator[1] = value if most is None else max(most, value)

    def get_value(self, accumulator: Row) -> int | None:
        least, most = accumulator
        return None if least is None else int(most - least)


def _queries(script: DataStream) -> dict[str, DataStream]:
    tables = StreamTableEnvironment.create(script._env)
    tables.get_config().set("table.local-time-zone", "UTC")
    orders = script.map(_order, _ROW).uid("orders").set_parallelism(1)
    schema = Schema.new_builder().column("k", "STRING NOT NULL").column("n", "BIGINT").column("price", "DECIMAL(10, 2)")
    changes = tables.from_changelog_stream(orders, schema.primary_key("k").build(), ChangelogMode.upsert())
    schema = Schema.new_builder().column("k", "STRING").column("n", "BIGINT").column("price", "DECIMAL(10, 2)")
    schema.column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime").watermark("ts", "SOURCE_WATERMARK()")
    tables.create_temporary_view("orders", tables.from_data_stream(orders, schema.build()))
    tables.create_temporary_view("changes", changes)
    accumulator = DataTypes.ROW([DataTypes.FIELD(name, DataTypes.BIGINT()) for name in ("least", "most")])
    spread = udaf(Spread(), result_type=DataTypes.BIGINT(), accumulator_type=accumulator)
    tables.create_temporary_function("spread", spread)
    return {name: tables.to_changelog_stream(tables.sql_query(text)) for name, text in QUERIES.items()}


def _order(value: Any) -> Row:
    key, number = value
    return Row(k=key, n=number, price=number % 7)


@dataclass(frozen=True)
class Sums:
    """Of the keys since the job began, and of a subtask since its last record; a timer that forgets a key."""

    milliseconds: int


@handles(Sums)
class SumsOperator(StreamOperator[Sums], CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.total = sum(self.saved.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.saved.update([self.total])

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process(self, records: Records) -> None:
        assert records.keys is not None
        assert records.timestamps is not None
        timers = self.context.timer_service()
        for key, (_, number), timestamp in zip(records.keys, records.values, records.timestamps, strict=True):
            self.context.set_current_key(key)
            if self.sum.value() is None:
                timers.register_event_time_timer(timestamp + self.spec.milliseconds)
            self.total += number
            self.sum.update((self.sum.value() or 0) + number)
            self.context.emit([(key, self.sum.value(), self.total)])

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        self.context.emit([(self.context.get_current_key(), self.sum.value(), domain.name)])
        self.sum.clear()


def _odd(value: Any) -> bool:
    return bool(value[1] % 2)


def _even(value: Any) -> bool:
    return not value[1] % 2


def _key(value: Any) -> Any:
    return value[0]


def _selected(match: dict[str, list[Any]]) -> Any:
    return {step: [number for _, number in events] for step, events in sorted(match.items())}


def library_parts(script: DataStream) -> dict[str, DataStream]:
    """By name what libraries make of the records."""
    keyed = script.key_by(_key, key_type=Types.STRING())
    pattern = Pattern.begin("odd").where(_odd).followed_by("even").where(_even).within(Duration.of_millis(9))
    return {
        **{f"sql-{name}": stream for name, stream in _queries(script).items()},
        "pattern": CEP.pattern(keyed, pattern).select(_selected),
        "sums-of-an-operator": keyed.transform("Sums", Sums(8)),
    }
