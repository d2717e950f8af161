"""Savepoints as tables: read with Spark, changed, made from nothing, and begun from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from savepointkit import Halves

from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.engine.manifest import stored_folder
from firesteel.engine.spark.state_frames import own_session
from firesteel.errors import SavepointError
from firesteel.state_processor import Savepoint, SavepointEditor
from firesteel.table import StreamTableEnvironment

COUNT = ValueStateDescriptor("count", Types.LONG())
STEPS = [[("a", 1), ("b", 2), ("a", 3), ("c", 4)]]


class Ledger(KeyedProcessFunction):
    """A declared value, a pickled one, a list and a map."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.note = runtime_context.get_state(ValueStateDescriptor("note", Types.PICKLED_BYTE_ARRAY()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.names = runtime_context.get_map_state(MapStateDescriptor("names", Types.LONG(), Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        before = self.note.value()
        self.note.update({"last": value[1]})
        self.seen.add(value[1])
        self.names.put(value[1], str(value[1]))
        ctx.timer_service().register_event_time_timer(10**12)
        yield value[0], self.count.value(), before, list(self.seen.get()), sorted(self.names.items())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer"


def ledger(stream: DataStream) -> DataStream:
    return stream.key_by(lambda record: record[0], key_type=Types.STRING()).process(Ledger()).uid("ledger")


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    made = Halves(tmp_path)
    made.save(ledger, STEPS)
    return made


def test_states_are_tables(halves: Halves) -> None:
    savepoint = Savepoint.load(halves.path)

    rows = {(row.key, row.value) for row in savepoint.read("ledger", "count").collect()}
    assert rows == {("a", 2), ("b", 1), ("c", 1)}
    assert savepoint.read("ledger", "count").selectExpr("sum(value)").first()[0] == 4  # type: ignore[index]
    lists = {(row.key, row.position, row.value) for row in savepoint.read("ledger", "seen").collect()}
    assert lists == {("a", 0, 1), ("a", 1, 3), ("b", 0, 2), ("c", 0, 4)}
    maps = {(row.key, row.map_key, row.value) for row in savepoint.read("ledger", "names").collect()}
    assert ("a", 3, "3") in maps
    assert dict(savepoint.items("ledger", "note")) == {"a": {"last": 3}, "b": {"last": 2}, "c": {"last": 4}}
    assert savepoint.read_arrow("ledger", "count").to_pandas()["value"].sum() == 4
    listed = {state.name: (state.kind, state.type, state.rows) for state in savepoint.states()}
    assert listed["count"] == ("value", "LONG", 3)
    assert listed["event-time timers"][2] == 3
    assert savepoint.position("script") == 1


def test_names_that_are_not_there_are_told(halves: Halves) -> None:
    savepoint = Savepoint.load(halves.path)
    with pytest.raises(SavepointError, match=r"no operator with uid 'nobody'. It has: script"):
        savepoint.read("nobody", "count")
    with pytest.raises(SavepointError, match=r"has no state 'sum'.*It has: 'count'"):
        savepoint.read("ledger", "sum")


def test_keys_are_deleted_and_values_changed(halves: Halves, tmp_path: Path) -> None:
    edited = Savepoint.load(halves.path).edit()
    edited.delete_keys("ledger", ["b"])
    edited.map_values("ledger", "count", lambda count: count * 100)
    edited.map_values("ledger", "note", lambda note: {**note, "seen": True})
    edited.map_values("ledger", "seen", lambda element: -element)
    edited.save(str(tmp_path / "edited"))

    halves.path = str(tmp_path / "edited")
    found = halves.resume(ledger, [*STEPS, [("a", 5), ("b", 6)]], 3)
    assert ("a", 201, {"last": 3, "seen": True}, [-1, -3, 5], [(1, "1"), (3, "3"), (5, "5")]) in found
    assert ("b", 1, None, [6], [(6, "6")]) in found
    # The timer of b went with it, and came again with its new record.
    assert sorted(one for one in found if one[1] == "timer") == [("a", "timer"), ("b", "timer"), ("c", "timer")]


def test_a_value_gets_another_type(halves: Halves, tmp_path: Path) -> None:
    class Named(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield self.count.value()

    edited = Savepoint.load(halves.path).edit().map_values("ledger", "count", lambda n: f"{n} times", Types.STRING())
    edited.save(str(tmp_path / "edited"))
    halves.path = str(tmp_path / "edited")

    def named(stream: DataStream) -> DataStream:
        return stream.key_by(lambda record: record[0], key_type=Types.STRING()).process(Named()).uid("ledger")

    assert halves.resume(named, [*STEPS, [("a", 5)]]) == ["2 times"]


def test_a_job_begins_with_a_table(tmp_path: Path) -> None:
    session = own_session()
    counts = session.createDataFrame([(f"k{n}", n) for n in range(100)], "key string, value int").repartition(3)
    made = SavepointEditor.new("ledger").write_state("ledger", COUNT, counts, Types.STRING())
    halves = Halves(tmp_path)
    halves.path = made.save(str(tmp_path / "made")).path

    found = halves.resume(ledger, [[("k7", 1), ("k99", 1), ("new", 1)]], 2)
    assert [(one[0], one[1]) for one in found if one[1] != "timer"] == [("k7", 8), ("k99", 100), ("new", 1)]


def test_what_a_table_lacks_is_told(halves: Halves, tmp_path: Path) -> None:
    frame = own_session().createDataFrame([("a", "x")], "key string, value string")
    edited = Savepoint.load(halves.path).edit()
    with pytest.raises(SavepointError, match=r"needs the columns key, map_key, value; the DataFrame lacks map_key"):
        edited.write_state(
            "ledger", MapStateDescriptor("names", Types.LONG(), Types.STRING()), frame, Types.STRING()
        ).save(str(tmp_path / "no"))
    with pytest.raises(SavepointError, match=r"must be declared"):
        edited.write_state("ledger", ValueStateDescriptor("note", Types.PICKLED_BYTE_ARRAY()), frame, Types.STRING())
    with pytest.raises(SavepointError, match=r"is there already"):
        Savepoint.load(halves.path).edit().save(halves.path)


def counted_by_query(stream: DataStream) -> DataStream:
    tables = StreamTableEnvironment.create(stream._env)
    words = stream.map(tuple, output_type=Types.TUPLE([Types.STRING(), Types.LONG()])).uid("words")
    tables.create_temporary_view("words", words)
    groups = "SELECT f0 AS word, SUM(f1) AS total FROM words GROUP BY f0"
    return tables.to_changelog_stream(tables.sql_query(groups)).uid("out")


def test_the_state_of_a_query_in_a_checkpoint(tmp_path: Path) -> None:
    """On Spark the description lies beside the checkpoint, and tasks make the columns. More queries, in memory:
    ``table/test_savepoints_of_queries``."""
    checkpoint = tmp_path / "checkpoint"
    Halves(tmp_path, "local").whole(counted_by_query, STEPS, 1, firesteel_checkpoint_dir=str(checkpoint))

    savepoint = Savepoint.load(str(checkpoint))
    (uid,) = {state.uid for state in savepoint.states() if state.name == "groups"}
    frame = savepoint.read(uid, "groups")
    assert frame.columns == ["f0", "SUM(f1)", "rows"]
    assert {tuple(row) for row in frame.collect()} == {("a", 4, 2), ("b", 2, 1), ("c", 4, 1)}

    edited = savepoint.edit().delete_keys(uid, ["a"]).rename_operator(uid, "groups").save(str(tmp_path / "edited"))
    again = Savepoint.load(edited.path)
    assert again.meaning("groups") == savepoint.meaning(uid) != ""
    assert sorted(again.read_arrow("groups", "groups").column("f0").to_pylist()) == ["b", "c"]
    stored_folder(str(checkpoint)).delete()
    assert not checkpoint.exists()
