"""The program behind the golden checkpoints and savepoints: state of every kind, in two halves.

``tools/make_golden.py`` runs the first half and keeps what it has written; ``tests/unit/test_golden.py`` and
``tests/recovery/test_golden_spark.py`` go on from there. Golden data of former versions stays as it is, so nothing here
may change that such data depends on: uids, names and types of states, the steps of the first half. A new kind of state
gets an operator of its own, and the golden data of the present version is made anew.
"""

from __future__ import annotations

import ast
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from goldenlibraries import library_parts

from firesteel.common import Duration, Encoder, Instant, Row, RowKind, Time, Types, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    CoProcessFunction,
    DataStream,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    CountEvictor,
    CountWindow,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.durable.versions import STORE
from firesteel.testing import ListSource, ProcessingTime, Record, Watermark

GOLDEN = Path(__file__).parent / "golden"
PRESENT = f"v{STORE.version}"
SETTINGS = {"firesteel.batch.max-records": "8", "restart-strategy.type": "none"}
PARALLELISM = 2
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
BIG = 300
"""Elements of the collections that are kept in blocks."""


def _records(*numbers: int) -> list[Record]:
    return [Record((f"k{number % 3}", number), number) for number in numbers]


FIRST = [
    ProcessingTime(1_000),
    [*_records(1, 2, 3), Watermark(3)],
    [*_records(4, 5, 6, 7), Watermark(6)],
    ProcessingTime(2_000),
    [*_records(11, 12, 13), Watermark(12)],
]
"""Each is a micro-batch."""

REST = [
    [*_records(14, 13, 8, 15), Watermark(15)],
    ProcessingTime(9_000),
    [*_records(16, 21, 22), Watermark(22), *_records(40, 41), Watermark(60)],
]


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + _number(value), accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def _number(value: Any) -> Any:
    return value[1] if isinstance(value, tuple) else value


def values_of_ours(number: int) -> list[Any]:
    """Objects of Firesteel's own classes that a user may well keep in state."""
    return [
        Row(name="row", number=number),
        Row.of_kind(RowKind.DELETE, number, None),
        RowKind.UPDATE_AFTER,
        Instant(number, 5),
        Time.seconds(number),
        Duration.of_millis(number),
        TimeWindow(number, number + 1),
        CountWindow(number),
        GlobalWindow.get(),
        Decimal(number),
    ]


class EveryKind(KeyedProcessFunction):
    """A state of each kind, with and without a time to live, collections small and in blocks, timers of both kinds."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.milliseconds(5_500)).build()
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        stamped = ValueStateDescriptor("stamped", Types.PICKLED_BYTE_ARRAY())
        marks = MapStateDescriptor("marks", Types.LONG(), Types.STRING())
        recent = ListStateDescriptor("recent", Types.LONG())
        for descriptor in (stamped, marks, recent):
            descriptor.enable_time_to_live(ttl)
        context = runtime_context
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.row = context.get_state(
            ValueStateDescriptor("row", Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()]))
        )
        self.ours = context.get_state(ValueStateDescriptor("ours", Types.PICKLED_BYTE_ARRAY()))
        self.seen = context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.many = context.get_list_state(ListStateDescriptor("many", Types.LONG()))
        self.squares = context.get_map_state(MapStateDescriptor("squares", Types.LONG(), Types.STRING()))
        self.table = context.get_map_state(MapStateDescriptor("table", Types.LONG(), Types.LONG()))
        self.most = context.get_reducing_state(ReducingStateDescriptor("most", max, Types.LONG()))
        self.mean = context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), pair))
        self.stamped, self.marks = context.get_state(stamped), context.get_map_state(marks)
        self.recent = context.get_list_state(recent)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        key, number = value
        self.count.update((self.count.value() or 0) + 1)
        before = self.row.value()
        self.row.update(Row(key=key, number=number))
        ours = self.ours.value()
        self.ours.update(values_of_ours(number))
        if number in (2, 3):
            # Big from now on, and one that was big and is gone.
            self.many.add_all(list(range(BIG)))
            self.table.put_all({entry: entry * entry for entry in range(BIG)})
        if number == 6:
            self.many.clear()
            self.seen.clear()
        self.seen.add(number)
        self.many.add(number)
        self.squares.put(number, str(number * number))
        self.table.put(number, -number)
        self.most.add(number)
        self.mean.add(number)
        self.stamped.update({"last": number})
        self.marks.put(number % 2, f"m{number}")
        self.recent.add(number)
        timers = ctx.timer_service()
        timers.register_event_time_timer(20 + number)
        timers.register_processing_time_timer(5_000 + number)
        if number == 7:
            timers.delete_event_time_timer(24)
        many, table = list(self.many.get()), dict(self.table.items())
        yield key, self.count.value(), before, ours, list(self.seen.get()), len(many), sum(many), len(table)
        yield key, sum(table.values()), sorted(self.squares.items()), self.most.get(), self.mean.get()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        expiring = self.stamped.value(), sorted(self.marks.items()), list(self.recent.get())
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, expiring


class Journal(FlatMapFunction, CheckpointedFunction):
    """Lists of a subtask, of all subtasks together, and bytes."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("mine", Types.LONG()))
        self.shared = store.get_union_list_state(ListStateDescriptor("everybody's", Types.LONG()))
        self.mine, self.found = list(self.saved.get()), sorted(self.shared.get())
        self.raw = b"".join(context.get_raw_operator_states())

    def flat_map(self, value: Any) -> Iterator[Any]:
        if self.found:
            # Only after a restart, once per subtask.
            yield "found", self.found, sum(self.raw) == sum(self.mine)
            self.found = []
        self.mine.append(value[1])
        yield value[1], sum(self.mine)

    def snapshot_state(self, context: Any) -> None:
        self.saved.update(self.mine)
        self.shared.update(self.mine)
        context.set_raw_operator_state(bytes(self.mine))


class UnderRules(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value[1], sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(f"rule {value % 4}", value)
        rules.remove(f"rule {(value + 1) % 4}")


class General(EventTimeTrigger):
    """A trigger that no short way is made for."""


class Shown(ProcessWindowFunction):
    """What a window holds, and how many windows the key had before: state of windows and of keys."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        fired.update((fired.value() or 0) + 1)
        window = context.window()
        span = (window.start, window.end) if isinstance(window, TimeWindow) else repr(window)
        yield key, span, fired.value(), [_number(element) for element in elements]

    def clear(self, context: Any) -> None:
        pass


class Meeting(MergingWindowAssigner[Any, TimeWindow]):
    """A merging assigner that is not one of ours."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 6)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[1], right[1], ctx.get_timestamp()


class Either(CoProcessFunction):
    """Two inputs that share the state of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield "left", value[1], self.last.value()
        self.last.update(value[1])

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield "right", value[1], self.last.value()
        self.last.update(-value[1])


def _key(value: Any) -> Any:
    return value[0]


def _larger(left: Any, right: Any) -> Any:
    return left if left[1] > right[1] else right


def _text(name: str) -> Any:
    def text(value: Any) -> str:
        # The text of a row alone does not say what it does.
        return f"{name} {value.get_row_kind()}{value!r}" if isinstance(value, Row) else f"{name} {value!r}"

    return text


def build(env: StreamExecutionEnvironment, whole: bool, version: str = PRESENT) -> DataStream:
    """The program, as lines of text of all that comes out; without the second half it waits for more.

    ``version``: with the operators that golden data of this version has.
    """
    env.set_parallelism(PARALLELISM)
    none = WatermarkStrategy.no_watermarks()
    steps = [*FIRST, *REST] if whole else FIRST
    script = env.from_source(ListSource(steps, ends=whole), none, "script").uid("script").set_parallelism(1)
    last = 4 * len(steps)
    numbers = env.from_collection(list(range(1, last + 1)), Types.LONG()).uid("numbers").set_parallelism(1)
    keyed = script.key_by(_key, key_type=Types.STRING())
    ms = Time.milliseconds
    parts: dict[str, DataStream] = {
        "every kind": keyed.process(EveryKind()),
        "running": keyed.reduce(_larger),
        "tumbling": keyed.window(TumblingEventTimeWindows.of(ms(10))).reduce(_larger, Shown()),
        "tumbling-general": keyed.window(TumblingEventTimeWindows.of(ms(10))).trigger(General()).reduce(_larger),
        "sliding": keyed.window(SlidingEventTimeWindows.of(ms(10), ms(5))).allowed_lateness(5).aggregate(Mean()),
        "sessions": keyed.window(EventTimeSessionWindows.with_gap(ms(6))).reduce(_larger, Shown()),
        "sessions-late": keyed.window(EventTimeSessionWindows.with_gap(ms(6))).allowed_lateness(9).aggregate(Mean()),
        "sessions-elements": keyed.window(EventTimeSessionWindows.with_gap(ms(6))).process(Shown()),
        "meetings": keyed.window(Meeting()).reduce(_larger, Shown()),
        "evicted": keyed.window(TumblingEventTimeWindows.of(ms(20))).evictor(CountEvictor.of(2)).process(Shown()),
        "counted": keyed.count_window(2).reduce(_larger),
        "by-clock": keyed.window(TumblingProcessingTimeWindows.of(ms(5_000))).process(Shown()),
        "by-clock-sessions": keyed.window(ProcessingTimeSessionWindows.with_gap(ms(3_000))).aggregate(Mean()),
        "joined": keyed.interval_join(script.map(_shifted).key_by(_key)).between(ms(-2), ms(4)).process(Pairs()),
        "either": keyed.connect(script.key_by(_key)).process(Either()),
        "under-rules": keyed.connect(numbers.broadcast(RULES)).process(UnderRules()),
        "journal": script.rebalance().flat_map(Journal()),
        "sums": numbers.map(lambda n: ("k", n)).key_by(_key).reduce(lambda a, b: ("k", a[1] + b[1])),
    }
    if version != "v1":
        parts |= library_parts(script)
    lines = [part.uid(name).map(_text(name), Types.STRING()).uid(f"{name}-text") for name, part in parts.items()]
    return lines[0].union(*lines[1:])


def _shifted(value: Any) -> Any:
    return value[0], value[1] + 1000


FOUND = "journal ('found'"
"""How the lines begin that only a job that goes on gives."""


def to_files(lines: DataStream, folder: Path) -> None:
    """Into files that go on over batches, so that each batch prepares something and commits it."""
    sink = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    lines.sink_to(sink.build()).uid("files")


def unpacked(version: str, name: str, folder: Path) -> Path:
    """A copy of golden files, to go on from."""
    with tarfile.open(GOLDEN / version / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    for file in (folder / name).glob("checkpoint/query/state/*/_metadata/v2/0"):
        # Spark notes the whole path of a schema there, so a folder that was moved has to be told.
        moved = re.sub(r'"file:[^"]*?/checkpoint/query/', f'"file:{folder / name}/checkpoint/query/', file.read_text())
        file.write_text(moved)
        file.with_name(".0.crc").unlink()
    return folder / name


def lines_of(version: str) -> tuple[Counter[str], Counter[str]]:
    """What the first half of the program gave, and what all of it gives."""
    found = json.loads((GOLDEN / version / "lines.json").read_text())
    return Counter(found["first"]), Counter(found["whole"])


def check(found: Counter[str], expected: Counter[str], version: str) -> None:
    """Every result once, and every subtask of the journal has found what all of them had."""
    first, _ = lines_of(version)
    mine = sorted(ast.literal_eval(line.removeprefix("journal "))[0] for line in first if line.startswith("journal"))
    restored = [line for line in found.elements() if line.startswith(FOUND)]
    assert found - Counter(restored) == expected
    assert restored == [f"journal ('found', {mine}, True)"] * PARALLELISM
