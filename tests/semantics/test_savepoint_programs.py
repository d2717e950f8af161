"""What a savepoint shows to others, and what a changed program makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from everykind import EveryKind, every_kind
from kit import first
from savepointkit import Halves

from firesteel.common import Row, Time, Types
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from firesteel.datastream.state import (
    ValueStateDescriptor,
)
from firesteel.datastream.window import EventTimeSessionWindows
from firesteel.errors import FiresteelError, JobExecutionError, SavepointError
from firesteel.state_processor import Savepoint
from firesteel.testing import Record, Watermark


def test_declared_keys_and_values_are_columns(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1), ("b", 2), ("a", 3)]], 2)
    states = {state["name"]: state for op in halves.manifest()["operators"] for state in op["states"]}

    def table(name: str) -> list[dict[str, Any]]:
        files = [Path(halves.path) / file["path"] for file in states[name]["files"]]
        return sorted((row for file in files for row in pq.read_table(file).to_pylist()), key=str)

    assert table("count") == [{"key": "a", "value": 2}, {"key": "b", "value": 1}]
    assert table("mean") == [{"key": "a", "value": {"f0": 4, "f1": 2}}, {"key": "b", "value": {"f0": 2, "f1": 1}}]
    assert table("seen")[0] == {"key": "a", "position": 0, "value": 1}
    assert table("squares")[0] == {"key": "a", "map_key": 1, "value": "1"}
    assert sorted(table("stamped")[0]) == ["key", "last_used", "value_pickle"]
    assert table("event-time timers") == [
        {"key": "a", "time": 1001},
        {"key": "a", "time": 1003},
        {"key": "b", "time": 1002},
    ]
    assert states["count"]["type"] == "LONG"


def test_a_key_that_is_not_declared_can_be_looked_for(halves: Halves) -> None:
    def build(stream: DataStream) -> DataStream:
        return stream.key_by(lambda record: (record[0], 1)).process(EveryKind()).uid("every")

    halves.save(build, [[("a", 1)]], 1)
    (file,) = Path(halves.path).glob("operators/every/count/*.parquet")
    assert pq.read_table(file).to_pydict()["key"] == ["('a', 1)"]


def test_the_manifest_knows_positions_and_watermarks(halves: Halves) -> None:
    halves.save(every_kind, [[Record(("a", 1), 5)], Watermark(7)], 2)
    operators = {op["uid"]: op for op in halves.manifest()["operators"]}
    assert operators["script"]["position"] == 2
    assert operators["every"]["watermark"] == 7
    assert operators["every"]["parallelism"] == 2


# Changed programs


def test_a_removed_operator_is_refused_unless_it_is_allowed(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1)]])

    def other(stream: DataStream) -> DataStream:
        return stream.map(str)

    with pytest.raises(SavepointError, match=r"has state of 'every kind' .uid every., which no operator.*takes over"):
        halves.resume(other, [[("a", 1)], [("b", 2)]])
    assert halves.resume(other, [[("a", 1)], [("b", 2)]], lenient=True) == ["('b', 2)"]


def test_operators_may_be_added_and_moved(halves: Halves) -> None:
    def more(stream: DataStream) -> DataStream:
        doubled = stream.map(lambda record: (record[0], record[1] * 2))
        keyed = doubled.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))
        return keyed.key_by(first, key_type=Types.STRING()).process(EveryKind()).uid("every")

    halves.save(every_kind, [[("a", 1), ("a", 2)]])
    found = halves.resume(more, [[("a", 1), ("a", 2)], [("a", 5)]], 3)
    assert found[0][:4] == ("a", 3, 10, 1 + 2 + 10)


class Valued(KeyedProcessFunction):
    def __init__(self, declared: Any, value: Any) -> None:
        self.declared, self.next = declared, value

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("held", self.declared))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield self.state.value()
        self.state.update(self.next)


def valued(declared: Any, value: Any) -> Any:
    return lambda stream: stream.key_by(first).process(Valued(declared, value)).uid("valued")


def test_a_changed_type_is_refused(halves: Halves) -> None:
    halves.save(valued(Types.LONG(), 1), [[("a", 1)]])
    with pytest.raises(JobExecutionError, match=r"value state of STRING in this program, but.*value state of LONG"):
        halves.resume(valued(Types.STRING(), "x"), [[("a", 1)], [("a", 2)]])


@dataclass
class Account:
    name: str


def test_a_dataclass_may_get_fields_with_defaults(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    anything = Types.PICKLED_BYTE_ARRAY()
    halves.save(valued(anything, Account("ada")), [[("a", 1)]])

    @dataclass
    class Newer:
        name: str
        balance: int = 5
        notes: list[str] = field(default_factory=list)

    Newer.__qualname__ = Newer.__name__ = "Account"
    monkeypatch.setattr(f"{__name__}.Account", Newer)
    (found,) = halves.resume(valued(anything, None), [[("a", 1)], [("a", 2)]])
    assert (found.name, found.balance, found.notes) == ("ada", 5, [])


def test_a_field_without_a_default_is_refused(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    anything = Types.PICKLED_BYTE_ARRAY()
    halves.save(valued(anything, Account("ada")), [[("a", 1)]])

    @dataclass
    class Newer:
        name: str
        balance: int

    Newer.__qualname__ = Newer.__name__ = "Account"
    monkeypatch.setattr(f"{__name__}.Account", Newer)
    with pytest.raises(SavepointError, match=r"Account has got a field 'balance' without a default"):
        halves.resume(valued(anything, None), [[("a", 1)], [("a", 2)]])


def test_a_row_may_get_fields(halves: Halves) -> None:
    before = Types.ROW_NAMED(["name"], [Types.STRING()])
    after = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    halves.save(valued(before, Row(name="ada")), [[("a", 1)]])
    assert halves.resume(valued(after, Row(name="b", age=1)), [[("a", 1)], [("a", 2)]]) == [Row(name="ada", age=None)]


def test_a_row_that_loses_a_field_is_refused(halves: Halves) -> None:
    before = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    after = Types.ROW_NAMED(["name"], [Types.STRING()])
    halves.save(valued(before, Row(name="ada", age=1)), [[("a", 1)]])
    with pytest.raises(JobExecutionError, match=r"what was saved of it is value state of ROW<name STRING, age INT>"):
        halves.resume(valued(after, Row(name="b")), [[("a", 1)], [("a", 2)]])


# Names


@pytest.mark.parametrize(
    ("one", "other"), [("user totals", "user_totals"), ("集計一", "集計二"), ("Total", "total"), ("a/b", "a_b")]
)
def test_uids_that_look_alike_keep_their_own_state(halves: Halves, one: str, other: str) -> None:
    def build(stream: DataStream) -> DataStream:
        sums = [stream.filter(lambda record, name=name: record[0] == name) for name in ("one", "other")]
        pairs = zip(sums, (one, other), strict=True)
        first_sum, second_sum = (s.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1])).uid(u) for s, u in pairs)
        return first_sum.union(second_sum)

    steps = [[("one", 10_000), ("other", 7)], [("one", 1), ("other", 1)]]
    halves.save(build, steps[:1])
    assert sorted(halves.resume(build, steps)) == [("one", 10_001), ("other", 8)]


def test_a_state_with_the_name_of_the_operators_own_is_refused(halves: Halves) -> None:
    class Named(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            context.global_state().get_state(ValueStateDescriptor(self.name, Types.LONG())).update(1)
            yield key

    def build(name: str) -> Any:
        function = Named()
        function.name = name
        windows = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
        return lambda stream: stream.key_by(first).window(windows).process(function)

    steps = [[Record(("a", 1), 3)], Watermark(99)]
    assert halves.whole(build("sessions"), steps) == ["a"]
    with pytest.raises(FiresteelError, match="keeps something of its own under the name 'session-windows'"):
        halves.whole(build("session-windows"), steps)


def test_a_renamed_operator_takes_its_state_along(halves: Halves, tmp_path: Path) -> None:
    def build(uid: str) -> Any:
        return lambda stream: stream.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1])).uid(uid)

    halves.save(build("user totals"), [[("a", 1)]])
    edited = Savepoint.load(halves.path).edit().rename_operator("user totals", "累計").save(str(tmp_path / "edited"))
    halves.path = edited.path
    assert halves.resume(build("累計"), [[("a", 1)], [("a", 2)]]) == [("a", 3)]
