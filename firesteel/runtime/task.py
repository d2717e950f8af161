"""A task: subtask *i* of every operator of one stage, fed with one batch's frames and giving out frames.

This is what runs inside a Spark Python worker, and (with a store in memory) inside tests. It knows nothing of Spark.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import decode_header, encode_header
from firesteel.durable.headers import OperatorHeader, StoreHeader
from firesteel.errors import SerializationError
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import Ship
from firesteel.runtime.batch_counts import BatchCounts
from firesteel.runtime.driver_results import ResultFile
from firesteel.runtime.frames import (
    DRIVER,
    Element,
    Frame,
    FrameSpool,
    Mark,
    Step,
    Watermark,
    decode,
    header_of,
)
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.operators import Operator, Port, create_operator
from firesteel.runtime.operators.sources import SourceOperator
from firesteel.runtime.operators.timestamps import TimestampsOperator
from firesteel.runtime.outputs import DirectReceiver, Sender, counter_of, is_columnar
from firesteel.runtime.pace import Pace
from firesteel.runtime.snapshots.restoring import RESTORE, Restorer, restored_frames
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.stopwatch import OUTSIDE, OWN, Stopwatch
from firesteel.runtime.task_log import working_for
from firesteel.runtime.wiring import Wiring

__all__ = ["StageTask"]


class StageTask:
    """The operators of one stage in one subtask. It is built once and serves many batches."""

    def __init__(self, job: JobSpec, stage: int, subtask: int, results: str | None = None) -> None:
        """``results``: a folder that the driver can read, for results that are too large to go through Spark."""
        self._job = job
        self._stage = stage
        self._subtask = subtask
        self._outbox: list[Frame] = []
        self._driver_sequence = 0
        self._driver_bytes = 0
        self._results = ResultFile(results, job, stage, subtask)
        self._pace = Pace()
        self._weighed_from = self._pace.weighed_from
        self._weight = 0
        self._time = 0
        self._operators: dict[int, Operator] = {}
        self._senders: dict[Sender, Operator] = {}
        self._wiring = Wiring(job, stage, subtask)
        self._inputs = self._wiring.inputs
        self._ports: dict[int, tuple[Operator, Port, int]] = {}
        """By exchange the operator that it feeds, the input of it, and the operator's place on the stopwatch."""
        self._counters: dict[int, Callable[[list[Any]], int]] = {}
        """By exchange how its records are counted."""
        # Records that go to everybody come before the others of their batch, as programs with rules rely on.
        self._whole = {id: e.edge.partitioning.ship is Ship.BROADCAST for id, e in self._inputs.items()}
        self._counts = BatchCounts(stage, subtask, self._operators)
        self._places: dict[int, int] = {}
        """By operator its place on the stopwatch."""
        self._token: bytes | None = None
        self._header: StoreHeader | None = None
        """What ``outdated`` read, for the batch that follows."""
        self._open: list[Operator | Sender] = []
        """Whose functions were opened and are to be closed."""
        self._build()

    # Construction

    def _build(self) -> None:
        graph = self._job.graph.graph
        for placement in self._wiring.placements(self._to_driver):
            node_id = placement.node.id
            self._operators[node_id] = create_operator(placement)
            self._places[node_id] = OWN + len(self._operators)
        self._nodes = [operator.node for operator in self._operators.values()]
        self._watch = Stopwatch(OWN + 1 + len(self._operators), self._job.busy_time)
        for node_id, operator in self._operators.items():
            for edge in graph.outputs(node_id):
                exchange = self._wiring.exchange_of(edge)
                receivers = operator.out.main if edge.tag is None else operator.out.side.setdefault(edge.tag, [])
                if exchange is None:
                    target = self._operators[edge.target]
                    place = self._places[edge.target]
                    receivers.append(DirectReceiver(target, node_id, edge.ordinal, self._watch, place))
                    self._counts.chain(operator, edge.tag, edge.target)
                    continue
                sender = _sender_class(graph.nodes[node_id])(
                    exchange,
                    self._subtask,
                    self._wiring.origins[node_id],
                    self._outbox.append,
                    graph.nodes[node_id],
                    graph.nodes[edge.target],
                    self._job.max_record,
                )
                self._senders[sender] = operator
                receivers.append(sender)
        for exchange_id, exchange in self._inputs.items():
            if exchange.edge.target in self._operators:
                operator = self._operators[exchange.edge.target]
                place = self._places[exchange.edge.target]
                self._ports[exchange_id] = (operator, operator.port(exchange.edge.ordinal), place)
                self._counters[exchange_id] = counter_of(graph.nodes[exchange.edge.source])
                self._counts.exchange(exchange_id, exchange.edge.target)

    def _to_driver(self, kind: str, node_id: int, payload: Any) -> None:
        content = self._results.packed(kind, node_id, payload)
        self._driver_bytes += len(content)
        self._outbox.append(Frame(DRIVER, 0, self._stage, self._subtask, self._driver_sequence, self._time, content))
        self._driver_sequence += 1

    @property
    def description(self) -> str:
        """What this task is part of, in a line for people."""
        names = ", ".join(operator.node.name for operator in self._operators.values())
        return f"job {self._job.name!r}, operators {names}"

    @property
    def place(self) -> dict[str, Any]:
        """Who is at work now, as attributes of log records."""
        if self._watch.place <= OWN:
            return {}
        node = self._nodes[self._watch.place - OWN - 1]
        return {"operator": node.name, "subtask": self._subtask, "parallelism": node.parallelism}

    @property
    def job_parallelism(self) -> int:
        """The parallelism of the job's widest operator."""
        return self._job.graph.parallelism

    # Running

    def outdated(self, store: StateStore) -> bool:
        """Whether the functions have seen a batch that the store has not, or the store one that they have not.

        Then what they hold in their fields is worth nothing: a new task must start from the store.
        """
        if self._token is None:
            return False
        self._header = self._read_header(store)
        return self._header.token != self._token

    @staticmethod
    def _read_header(store: StateStore) -> StoreHeader:
        (kept,) = store.get_many([HEADER])
        return decode_header(kept)

    def run_source(self, share: SourceShare) -> Iterator[Frame]:
        """Stage 0: reads this subtask's share of every source."""
        with _without_gc(), self._at_work():
            self._counts.pending = share.pending
            assigners = [o for o in self._operators.values() if isinstance(o, SourceOperator | TimestampsOperator)]
            for assigner in assigners:
                assigner.paused = assigner.node.id in share.paused
                if isinstance(assigner, SourceOperator):
                    assigner.splits = share.splits_of(assigner.node.id)
            # Copies: the share may come a second time.
            kept = {assigner.node.id: dict(share.kept.get(assigner.node.id, {})) for assigner in assigners}
            header = StoreHeader(None, {a.node.uid: OperatorHeader(event_time=kept[a.node.id]) for a in assigners})
            self._begin(None, header, share.time)
            for assigner in assigners:
                assigner.event_time.repeat()
            if share.restored is not None:
                yield from restored_frames(self._job.graph, self._subtask, share.restored, share.time)
            yield from self._read_in_steps(share)
            yield from self._finish(share.last, kept)

    def _read_in_steps(self, share: SourceShare) -> Iterator[Frame]:
        """A step of each source in turn, so that their event times move side by side."""
        sources = {node_id: one for node_id, one in self._operators.items() if isinstance(one, SourceOperator)}
        readings = {
            node_id: source.read(
                share.shares.get(node_id, ()), node_id in share.ended, self._pace, share.steps.get(node_id, 0)
            )
            for node_id, source in sources.items()
        }
        read = self._counts.read = dict.fromkeys(sources, 0)
        while readings:
            for node_id, reading in list(readings.items()):
                self._watch.switch(self._places[node_id])
                for count in reading:
                    if count is None:
                        break
                    read[node_id] += count
                    self._weigh(count)
                    yield from self._drain()
                else:
                    del readings[node_id]
            if readings:
                self._end_step({})
                yield from self._drain()
        for node_id, source in sources.items():
            if is_columnar(source.node):
                read[node_id] = source.out.records

    def _end_step(self, received: dict[Operator, list[tuple[tuple[int, int, int], int]]]) -> None:
        """Event time moves within the batch: by what was received, and where it is assigned."""
        for sender in self._senders:
            sender.begin_step()
        for operator in self._each_operator():
            if operator in received:
                operator.receive_watermarks(received[operator])
            if isinstance(operator, SourceOperator | TimestampsOperator):
                operator.event_time.step()
        for sender in self._senders:
            sender.end_step()

    def run(self, cells: Iterable[bytes], store: StateStore) -> Iterator[Frame]:
        """A later stage: processes the frames meant for it and passes on the others."""
        spool = FrameSpool(self._job.frames_memory)
        restored = FrameSpool(self._job.frames_memory)
        foreign: list[bytes] = []
        time = None
        for cell in cells:
            header = header_of(cell)
            time = header[5]
            if header[0] == self._stage:
                (restored if header[2] == RESTORE else spool).add(cell)
            else:
                foreign.append(cell)
                if len(foreign) > 16:
                    yield from self._relay(foreign)
        yield from self._relay(foreign)
        if time is None:
            return
        with _without_gc(), self._at_work():
            yield from self._process(spool, restored, store, time)

    def _process(self, spool: FrameSpool, restored: FrameSpool, store: StateStore, time: int) -> Iterator[Frame]:
        header = self._header or self._read_header(store)
        self._header = None
        if restored:
            self._restore(restored, store, header, time)
        # What operators hold in memory is worth something only if the last batch that this store has seen is the one
        # they held it from. A token per attempt tells: a failed attempt's token never gets into the store.
        unchanged = header.token is not None and header.token == self._token
        # Until this batch has got to its end, nothing in memory is worth keeping.
        self._token = None
        for operator in self._operators.values():
            operator.store_unchanged = unchanged
        self._begin(store, header, time)
        for operator in self._each_operator():
            operator.on_processing_time(time)
        last, received = False, self._counts.received
        channels = [self._channel(*place, frames) for place, frames in spool.channels()]
        while channels:
            watermarks: dict[Operator, list[tuple[tuple[int, int, int], int]]] = {}
            for channel in list(channels):
                edge, upstream, elements = channel
                operator, port, place = self._ports[edge]
                self._watch.switch(place)
                for element in elements:
                    if isinstance(element, Step):
                        moved = watermarks.setdefault(operator, [])
                        moved += [((edge, upstream, origin), value) for origin, value in element.watermarks.items()]
                        if self._whole[edge]:
                            continue
                        break
                    if isinstance(element, Mark):
                        last = last or element.last
                        for origin, (watermark, idle_timeout) in element.watermarks.items():
                            operator.receive_watermark((edge, upstream, origin), watermark)
                            operator.receive_activity((edge, upstream, origin), idle_timeout)
                    elif isinstance(element, Watermark):
                        operator.receive_watermark((edge, upstream, element.origin), element.value)
                    else:
                        received[edge][0] += self._counters[edge](element[1])
                        if operator.valve is not None:
                            operator.valve.wake(edge, upstream)
                        for count in _feed(port, self._pace, *element):
                            self._weigh(count)
                            yield from self._drain()
                    yield from self._drain()
                else:
                    channels.remove(channel)
            if watermarks:
                self._end_step(watermarks)
                yield from self._drain()
        spool.close()
        if not last:
            for operator in self._each_operator():
                operator.on_processing_time(time)
        yield from self._finish(last, {})
        # Only now is everything computed: what the batch changed goes to the store in one sweep.
        for operator in self._each_operator():
            try:
                store.write(operator.changes())
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                # Python says it in three ways, all with this word; anything else is none of the user's doing.
                if "pickle" not in str(error):
                    raise
                raise operator.failure(SerializationError(f"State that cannot be pickled: {error}.")) from error
        self._token = uuid.uuid4().bytes
        store.write([(HEADER, encode_header(replace(header, token=self._token)))])

    def _channel(self, edge: int, upstream: int, frames: Iterator[bytes]) -> tuple[int, int, Iterator[Element]]:
        """One channel of a batch with its elements in order, taken out of their frames when it is their turn."""
        received = self._counts.received[edge]

        def elements() -> Iterator[Element]:
            for frame in frames:
                received[1] += len(frame)
                received[2] += 1
                yield from decode(frame)

        return edge, upstream, elements()

    def _restore(self, frames: FrameSpool, store: StateStore, header: StoreHeader, time: int) -> None:
        restorer = Restorer(store, header, self._job.tables, time)
        for cell in frames.in_order():
            for chunk in decode(cell):
                restorer.take(chunk)
        restorer.finish()

    def _relay(self, foreign: list[bytes]) -> Iterator[Frame]:
        yield from map(Frame.of, foreign)
        foreign.clear()

    def _weigh(self, records: int) -> None:
        """After each call of the operators: how much came of it, and how many records the next call may have."""
        weight = sum([operator.out.weight for operator in self._operators.values()]) + self._results.taken
        self._pace.observe(records, weight - self._weight)
        self._weight = weight
        self._set_weighing()

    def _set_weighing(self) -> None:
        least = self._pace.weighed_from
        if least != self._weighed_from:
            self._weighed_from = least
            for operator in self._operators.values():
                operator.out.weighed_from = least

    def _begin(self, store: StateStore | None, header: StoreHeader, time: int) -> None:
        self._time = time
        self._driver_sequence = self._driver_bytes = 0
        self._results.begin()
        self._pace.begin()
        self._set_weighing()
        self._outbox.clear()
        self._counts.begin()
        for sender in self._senders:
            sender.begin(time)
        for operator in self._each_operator():
            operator.begin(store, header.operator(operator.node.uid), time)  # type: ignore[arg-type]
        if not self._open:
            self._open_functions()

    def _open_functions(self) -> None:
        try:
            for operator in self._each_operator():
                operator.open()
                self._open.append(operator)
            for sender, operator in self._senders.items():
                sender.open(operator.context)
                self._open.append(sender)
        except Exception:
            with contextlib.suppress(Exception):
                self.close()
            raise

    def _finish(self, last: bool, kept: dict[int, dict[str, Any]]) -> Iterator[Frame]:
        for operator in self._each_operator():
            operator.finish(last)
        for sender, operator in self._senders.items():
            self._watch.switch(self._places[operator.node.id])
            sender.finish(last)
        # What comes after it is part of the next report.
        times = self._watch.take()
        sent = self._driver_bytes + self._results.written
        report = self._counts.report(last, kept, times, self._places, self._senders, sent)
        self._to_driver("report", 0, report)
        self._results.close()
        for operator in self._each_operator():
            operator.snapshot()
        if last:
            self.close()
        yield from self._drain()

    def _each_operator(self) -> Iterator[Operator]:
        """All of them, one after the other at work."""
        for node_id, operator in self._operators.items():
            self._watch.switch(self._places[node_id])
            yield operator
        self._watch.switch(OWN)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Around a batch: before and after it the task waits."""
        self._watch.switch(OWN)
        try:
            with working_for(self):
                yield
        finally:
            self._watch.switch(OUTSIDE)

    def _drain(self) -> Iterator[Frame]:
        if self._outbox:
            frames, self._outbox[:] = list(self._outbox), []
            worker = self._watch.switch(OUTSIDE)
            yield from frames
            self._watch.switch(worker)

    def close(self) -> None:
        """Closes the user's functions, once: after the last record, or when the job ends otherwise."""
        opened, self._open = self._open, []
        failures = []
        for one in opened:
            try:
                one.close()
            except Exception as error:
                failures.append(error)
        if failures:
            # Nothing stays open because something else failed to close; the first failure is reported.
            raise failures[0]


def _sender_class(source: StreamNode) -> type[Sender]:
    """What sends the records of an operator to another stage."""
    if not is_columnar(source):
        return Sender
    # Only here: other jobs need no Arrow.
    from firesteel.runtime.columns.sending import ColumnSender

    return ColumnSender


@contextlib.contextmanager
def _without_gc() -> Iterator[None]:
    """Reference counting frees what a batch makes; looking for cycles again and again only costs."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _feed(port: Port, pace: Pace, keys: list[Any] | None, values: list[Any], times: list[int] | None) -> Iterator[int]:
    """Hands a chunk to an operator's input in pieces, so that results never pile up beyond a piece's. Yields how many
    records each piece had."""
    start, size = 0, len(values)
    while start < size:
        piece = slice(start, min(start + pace.records, size))
        stamps = None if times is None else times[piece]
        if keys is None:
            port.process(values[piece], stamps)
        else:
            port.process_keyed(keys[piece], values[piece], stamps)
        start = piece.stop
        yield piece.stop - piece.start
