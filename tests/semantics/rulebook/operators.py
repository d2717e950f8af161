"""How the library's operators do it."""

from __future__ import annotations

from collections import Counter

from firesteel.common import Types
from firesteel.datastream import CheckpointedFunction, RuntimeContext, TimeDomain
from firesteel.datastream.functions import FunctionInitializationContext, FunctionSnapshotContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from rulebook.specs import Apart, Deduplicate, Join, Largest, Progress, Rules, Scale, Tally


@handles(Scale)
class ScaleOperator(StreamOperator[Scale]):
    def process(self, records: Records) -> None:
        self.context.emit([value * self.spec.factor for value in records.values], records.timestamps)


@handles(Apart)
class ApartOperator(StreamOperator[Apart]):
    def process(self, records: Records) -> None:
        odd = [value for value in records.values if value % 2]
        self.context.emit_to(self.spec.odd, odd)
        self.context.emit([value * self.spec.factor for value in records.values if not value % 2])


@handles(Deduplicate)
class DeduplicateOperator(StreamOperator[Deduplicate]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process(self, records: Records) -> None:
        assert records.keys is not None
        assert records.timestamps is not None
        context, timers = self.context, self.context.timer_service()
        first = []
        for key, value, timestamp in zip(records.keys, records.values, records.timestamps, strict=True):
            context.set_current_key(key)
            if self.seen.value() is None:
                self.seen.update(True)
                timers.register_event_time_timer(timestamp + self.spec.milliseconds)
                first.append((value, timestamp))
        context.emit([value for value, _ in first], [timestamp for _, timestamp in first])

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        self.seen.clear()
        self.context.emit([(self.context.get_current_key(), domain.name)], [timestamp])


@handles(Join)
class JoinOperator(StreamOperator[Join]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sides = [
            runtime_context.get_list_state(ListStateDescriptor(name, Types.PICKLED_BYTE_ARRAY()))
            for name in ("left", "right")
        ]

    def process(self, records: Records) -> None:
        assert records.keys is not None
        own, other = self.sides[records.input], self.sides[1 - records.input]
        for key, value in zip(records.keys, records.values, strict=True):
            self.context.set_current_key(key)
            own.add(value)
            self.context.emit([(value, match) if records.input == 0 else (match, value) for match in other.get()])


@handles(Rules)
class RulesOperator(StreamOperator[Rules], CheckpointedFunction):
    LIMIT = MapStateDescriptor("limit", Types.STRING(), Types.INT())

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.limit = context.get_operator_state_store().get_broadcast_state(self.LIMIT)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Broadcast state is saved by itself."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process(self, records: Records) -> None:
        if records.keys is None:
            for value in records.values:
                self.limit.put("limit", value)
            return
        for key, value in zip(records.keys, records.values, strict=True):
            if value < self.limit.get("limit"):
                self.context.set_current_key(key)
                self.count.update((self.count.value() or 0) + 1)
                self.context.emit([(value, self.count.value())])


@handles(Tally)
class TallyOperator(StreamOperator[Tally]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))
        self.batch: Counter[str] = Counter()

    def process(self, records: Records) -> None:
        self.batch.update(records.keys or ())

    def end_batch(self) -> None:
        if self.spec.prepared:
            self.context.prepare_keys(list(self.batch))
        totals = []
        for key, count in self.batch.items():
            self.context.set_current_key(key)
            self.total.update((self.total.value() or 0) + count)
            totals.append((key, self.total.value()))
        self.batch.clear()
        self.context.emit(totals)


@handles(Largest)
class LargestOperator(StreamOperator[Largest]):
    number = 0

    def process(self, records: Records) -> None:
        self.number = max(self.number, *records.values)

    def on_watermark(self, watermark: int) -> None:
        self.context.emit([(watermark, self.number)], [watermark])


@handles(Progress)
class ProgressOperator(StreamOperator[Progress], CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("records", Types.INT()))
        self.records = sum(self.saved.get())
        self.restored = context.is_restored()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.saved.update([self.records])

    def process(self, records: Records) -> None:
        self.records += len(records.values)

    def on_watermark(self, watermark: int) -> None:
        self.context.emit([(watermark, self.records)], [watermark])

    def end_batch(self) -> None:
        self.context.emit(["batch"])
