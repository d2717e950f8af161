"""Where an operator's results go: to the next operator of the task, or into frames for another stage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import ProgramError, TypeMismatchError, UnstableKeyError
from firesteel.graph.job_graph import Exchange
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import Partitioning, Ship
from firesteel.runtime.calls import call_for_each
from firesteel.runtime.failures import describe
from firesteel.runtime.frames import MAX_RECORD, Frame, Mark, Step, Watermark, encode
from firesteel.runtime.keys import KeyRoutes
from firesteel.runtime.pace import WEIGHED_FROM, about
from firesteel.runtime.records import record_too_large, unpicklable
from firesteel.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from firesteel.runtime.operators.base import Operator

__all__ = ["DirectReceiver", "Output", "Receiver", "Sender", "Targets", "counter_of", "is_columnar"]

FRAME_BYTES = 1 << 20
MAX_BUFFERED_BYTES = 64 << 20
"""A sender holds no more bytes than about this, however few records they are."""


class Receiver(Protocol):
    """One edge out of an operator."""

    def take(self, values: list[Any], timestamps: list[int] | None) -> None: ...

    def watermark(self, origin: int, value: int) -> None: ...

    def idle(self, origin: int, timeout: int) -> None: ...


class DirectReceiver:
    """The next operator of the same task, called directly."""

    def __init__(self, operator: Operator, source: int, ordinal: int, watch: Stopwatch, place: int) -> None:
        """``place``: the operator's on the stopwatch."""
        self._operator = operator
        self._source = source
        self._watch = watch
        self._place = place
        self.take: Callable[[list[Any], list[int] | None], None] = watch.timed(place, operator.port(ordinal).process)

    def watermark(self, origin: int, value: int) -> None:
        outer = self._watch.switch(self._place)
        self._operator.receive_watermark((-1 - self._source, 0, origin), value)
        self._watch.switch(outer)

    def idle(self, origin: int, timeout: int) -> None:
        self._operator.receive_activity((-1 - self._source, 0, origin), timeout)


def is_columnar(node: StreamNode) -> bool:
    """Whether an operator gives out batches of rows."""
    return node.output_type is not None and node.output_type.columnar


def counter_of(node: StreamNode) -> Callable[[list[Any]], int]:
    """How the records that an operator gives out are counted: rows, where they are batches."""
    return _rows if is_columnar(node) else len


def _rows(batches: list[Any]) -> int:
    return sum([batch.num_rows for batch in batches])


class Output:
    """An operator's output: what it declares is checked, then handed to every edge."""

    def __init__(self, node: StreamNode, subtask: int) -> None:
        self._node = node
        self._subtask = subtask
        self.main: list[Receiver] = []
        self.side: dict[str, list[Receiver]] = {}
        self._fits: dict[TypeInformation, tuple[Any, Any]] = {}
        declared = node.output_type
        self._check = declared.checker() if declared is not None else None
        self._convert = declared.converter() if declared is not None else None
        self._count: Callable[[list[Any]], int] = counter_of(node)
        self.records = 0
        """Records that went out in this batch, side outputs left out."""
        self.side_records: dict[str, int] = {}
        """The same for each side output that had any."""
        self.weight = 0
        """About how many bytes went through, where many records came at once."""
        self.weighed_from = 1
        """How many those are, at least: see :attr:`.pace.Pace.weighed_from`."""

    def trust(self) -> None:
        """Values are known to be what the operator declares: they are handed on as they are."""
        self._check = self._convert = None

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        if not values:
            return
        if self._check is not None and not all(map(self._check, values)):
            raise self._mismatch(values)
        if self._convert is not None:
            values = list(map(self._convert, values))
        count = self._count(values)
        self.records += count
        if count >= self.weighed_from:
            self.weight += about(values)
        for receiver in self.main:
            receiver.take(values, timestamps)

    def emit_tagged(self, values: list[Any], timestamps: list[int] | None) -> None:
        """Emits what a process function yielded: plain values, and ``(OutputTag, value)`` for side outputs."""
        if not [v for v in values if v.__class__ is tuple and v and isinstance(v[0], OutputTag)]:
            self.emit(values, timestamps)
            return
        plain: list[Any] = []
        plain_times: list[int] | None = None if timestamps is None else []
        tagged: dict[str, tuple[list[Any], list[int]]] = {}
        for index, value in enumerate(values):
            if value.__class__ is tuple and len(value) == 2 and isinstance(value[0], OutputTag):
                side, side_times = tagged.setdefault(value[0].tag_id, ([], []))
                side.append(self._fit_side(value[0], value[1]))
                if timestamps is not None:
                    side_times.append(timestamps[index])
            else:
                plain.append(value)
                if timestamps is not None and plain_times is not None:
                    plain_times.append(timestamps[index])
        self.emit(plain, plain_times)
        for tag, (side, side_times) in tagged.items():
            self.side_records[tag] = self.side_records.get(tag, 0) + len(side)
            for receiver in self.side.get(tag, ()):
                receiver.take(side, None if timestamps is None else side_times)

    def emit_side(self, tag: OutputTag, values: list[Any], timestamps: list[int] | None) -> None:
        """Emits values for one side output."""
        receivers = self.side.get(tag.tag_id, ())
        fitting = [self._fit_side(tag, value) for value in values]
        self.side_records[tag.tag_id] = self.side_records.get(tag.tag_id, 0) + len(fitting)
        for receiver in receivers:
            receiver.take(fitting, timestamps)

    def _fit_side(self, tag: OutputTag, value: Any) -> Any:
        if tag.type_info is None:
            return value
        fit = self._fits.get(tag.type_info)
        if fit is None:
            # Made once: checkers and converters are compiled.
            fit = self._fits[tag.type_info] = (tag.type_info.checker(), tag.type_info.converter())
        check, convert = fit
        if check is not None and not check(value):
            error = TypeMismatchError(f"Side output {tag.tag_id!r}: {tag.type_info.explain(value)}")
            raise describe(error, self._node.name, self._node.built_at, self._subtask, value)
        return value if convert is None else convert(value)

    def begin(self) -> None:
        """A batch starts."""
        self.records = 0
        self.side_records = {}

    @property
    def all_records(self) -> int:
        """Records that went out in this batch, to whomever."""
        return self.records + sum(self.side_records.values())

    def watermark(self, origin: int, value: int) -> None:
        for receiver in self._receivers():
            receiver.watermark(origin, value)

    def idle(self, origin: int, timeout: int) -> None:
        for receiver in self._receivers():
            receiver.idle(origin, timeout)

    def _receivers(self) -> Iterator[Receiver]:
        yield from self.main
        for receivers in self.side.values():
            yield from receivers

    def _mismatch(self, values: list[Any]) -> Exception:
        declared = self._node.output_type
        assert declared is not None
        wrong = next(value for value in values if declared.explain(value) is not None)
        error = TypeMismatchError(f"{declared.explain(wrong)} (declared as the output type of {self._node.name!r})")
        return describe(error, self._node.name, self._node.built_at, self._subtask, wrong)


Targets = Callable[[list[Any]], tuple[list[Any] | None, list[int] | None]]


class Sender:
    """One exchange, seen from one sending subtask: packs records into frames for each target subtask."""

    def __init__(
        self,
        exchange: Exchange,
        subtask: int,
        origins: frozenset[int],
        ship: Callable[[Frame], None],
        source: StreamNode,
        target: StreamNode,
        max_record: int = MAX_RECORD,
    ) -> None:
        self._exchange = exchange
        self._subtask = subtask
        self._origins = origins
        self._ship = ship
        self._source = source
        self._target = target
        self._width = exchange.receivers
        self._max_record = max_record
        self._limit = 4096
        self._time = 0
        self.sent = 0
        """Bytes that were sent in this batch."""
        self.frames = 0
        """Frames that they were."""
        self._targets = self._strategy(exchange.edge.partitioning)
        self.begin(0)

    def open(self, context: RuntimeContext) -> None:
        """Opens a key selector or partitioner that is a function object, once per subtask."""
        for function in self._functions():
            try:
                function.open(context)
            except Exception as error:
                raise self._failed(type(function).__name__, error) from error

    def close(self) -> None:
        for function in self._functions():
            try:
                function.close()
            except Exception as error:
                raise self._failed(type(function).__name__, error) from error

    def _functions(self) -> list[Any]:
        partitioning = self._exchange.edge.partitioning
        return [f for f in (partitioning.selector, partitioning.partitioner) if f is not None]

    def begin(self, time: int) -> None:
        self._time = time
        # Chosen by what a replay repeats, so that a replayed batch goes the same ways.
        self._random = random.Random(f"{time}|{self._subtask}|{self._exchange.id}")
        self._turn = self._random.randrange(self._width)
        self._unsent = self._unweighed = self._weight = self.sent = 0
        self.frames = 0
        self._sequence = [0] * self._width
        self._elements: list[list[Any]] = [[] for _ in range(self._width)]
        self._fresh_buffers()
        self._watermarks: dict[int, tuple[int | None, int | None]] = dict.fromkeys(self._origins, (None, None))
        self._stepping: dict[int, int] | None = None

    def _fresh_buffers(self) -> None:
        self._keys: list[list[Any]] = [[] for _ in range(self._width)]
        self._values: list[list[Any]] = [[] for _ in range(self._width)]
        self._times: list[list[int]] = [[] for _ in range(self._width)]
        self._buffered = 0
        self._timed = False

    def take(self, values: list[Any], timestamps: list[int] | None) -> None:
        if self._buffered and self._timed is not (timestamps is not None):
            self._seal()
        self._timed = timestamps is not None
        keys, targets = self._targets(values)
        if targets is None:
            for target in self._everywhere():
                self._append(target, keys, values, timestamps)
        else:
            self._scatter(targets, keys, values, timestamps)
        count = len(values)
        self._buffered += count
        self._unweighed += count
        if count and self._unweighed >= WEIGHED_FROM:
            self._weight += about(values) * self._unweighed // count
            self._unweighed = 0
        self._sent_later(count)

    def _everywhere(self) -> range:
        """The targets of records that all go the same way: every subtask (broadcast) or a single one."""
        if self._exchange.edge.partitioning.ship is Ship.BROADCAST:
            return range(self._width)
        only = self._subtask if self._exchange.edge.partitioning.ship is Ship.FORWARD else 0
        return range(only, only + 1)

    def _append(self, target: int, keys: list[Any] | None, values: list[Any], times: list[int] | None) -> None:
        self._values[target] += values
        if keys is not None:
            self._keys[target] += keys
        if times is not None:
            self._times[target] += times

    def _scatter(self, targets: list[int], keys: list[Any] | None, values: list[Any], times: list[int] | None) -> None:
        to_values = [buffer.append for buffer in self._values]
        if keys is None:
            for target, value in zip(targets, values, strict=True):
                to_values[target](value)
        else:
            to_keys = [buffer.append for buffer in self._keys]
            for target, key, value in zip(targets, keys, values, strict=True):
                to_keys[target](key)
                to_values[target](value)
        if times is not None:
            to_times = [buffer.append for buffer in self._times]
            for target, time in zip(targets, times, strict=True):
                to_times[target](time)

    def _strategy(self, partitioning: Partitioning) -> Targets:
        width = self._width
        match partitioning.ship:
            case Ship.HASH:
                return self._by_key(getattr(partitioning.selector, "func", partitioning.selector.get_key))
            case Ship.CUSTOM:
                return self._by_partitioner(partitioning)
            case Ship.REBALANCE | Ship.RESCALE:
                return self._in_turn
            case Ship.SHUFFLE:
                return lambda values: (None, self._random.choices(range(width), k=len(values)))
            case _:
                return lambda values: (None, None)

    def _in_turn(self, values: list[Any]) -> tuple[None, list[int]]:
        first, lanes = self._turn, self._lanes()
        self._turn = (first + len(values)) % len(lanes)
        return None, [lanes[(first + index) % len(lanes)] for index in range(len(values))]

    def _lanes(self) -> list[int]:
        """The subtasks that this one may send to: all of them, or with RESCALE its own share."""
        width, senders = self._width, self._exchange.senders
        if self._exchange.edge.partitioning.ship is Ship.REBALANCE:
            return list(range(width))
        if senders >= width:
            return [self._subtask * width // senders]
        return [lane for lane in range(width) if lane * senders // width == self._subtask]

    def _by_key(self, selector: Callable[[Any], Any]) -> Targets:
        width = self._width
        routes = KeyRoutes(width, self._target.max_parallelism)

        def by_key(values: list[Any]) -> tuple[list[Any], list[int] | None]:
            keys = call_for_each(selector, values, failed=partial(self._failed, "key selector"))
            try:
                # A dict look-up per record; a key is hashed by us when it is first seen.
                return keys, routes.of(keys)
            except (TypeError, UnstableKeyError):
                raise self._bad_key(keys, values, routes) from None

        return by_key

    def _bad_key(self, keys: list[Any], values: list[Any], routes: KeyRoutes) -> Exception:
        for key, value in zip(keys, values, strict=True):
            try:
                routes.__missing__(key)
            except (TypeError, UnstableKeyError) as error:
                return self._failed("key_by", error, value)
        raise AssertionError("no key of this chunk was refused a second time")

    def _by_partitioner(self, partitioning: Partitioning) -> Targets:
        select = getattr(partitioning.selector, "func", partitioning.selector.get_key)
        partition = getattr(partitioning.partitioner, "func", partitioning.partitioner.partition)

        def by_partitioner(values: list[Any]) -> tuple[None, list[int]]:
            targets = []
            for value in values:
                try:
                    target = partition(select(value), self._width)
                    if not isinstance(target, int) or not 0 <= target < self._width:
                        raise ProgramError(
                            f"A partitioner must return an int from 0 to {self._width - 1}, it returned {target!r}."
                        )
                except Exception as error:
                    raise self._failed("partition_custom", error, value) from error
                targets.append(target)
            return None, targets

        return by_partitioner

    def _failed(self, what: str, error: BaseException, *element: Any) -> Exception:
        name = f"{what} between {self._source.name!r} and {self._target.name!r}"
        return describe(error, name, self._target.built_at, self._subtask, *element)

    def watermark(self, origin: int, value: int) -> None:
        known = self._watermarks[origin][0]
        if known is None or value > known:
            self._watermarks[origin] = (value, None)
            if self._stepping is not None:
                self._stepping[origin] = value
            else:
                self._between(Watermark(origin, value))

    def begin_step(self) -> None:
        """A step of the batch ends: the watermarks that move now go out together, behind all records."""
        self._stepping = {}

    def end_step(self) -> None:
        watermarks, self._stepping = self._stepping or {}, None
        self._between(Step(watermarks))

    def _between(self, element: Watermark | Step) -> None:
        """Puts something between the records before and those to come, for every target subtask."""
        self._seal()
        for elements in self._elements:
            elements.append(element)
        self._sent_later(1)

    def idle(self, origin: int, timeout: int) -> None:
        self._watermarks[origin] = (self._watermarks[origin][0], timeout)

    def _seal(self) -> None:
        """Closes the current chunks, so that what follows stands behind them."""
        for target, values in enumerate(self._values):
            if values:
                keys, times = self._keys[target], self._times[target]
                self._elements[target].append((keys or None, values, times if self._timed else None))
        self._fresh_buffers()

    def _sent_later(self, count: int) -> None:
        """Counts what waits for its frame, watermarks too: memory must not grow with the batch."""
        self._unsent += count
        if self._unsent >= self._limit or self._weight >= MAX_BUFFERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        buffered, self._unsent = self._unsent, 0
        self._unweighed = self._weight = 0
        self._seal()
        largest = 0
        for target in range(self._width):
            if self._elements[target]:
                largest = max(largest, self._send(target))
        if largest:
            # The next frame should come near to FRAME_BYTES; records of one stream are alike in size.
            self._limit = min(max(buffered * FRAME_BYTES // largest, 256), 131_072)

    def _send(self, target: int) -> int:
        try:
            payload = encode(self._elements[target])
        except Exception as error:
            raise unpicklable(error, self._unsent_to(target), self._source, self._subtask) from error
        if len(payload) > self._max_record:
            self._check_records(target)
        self.sent += len(payload)
        self.frames += 1
        exchange = self._exchange
        self._ship(
            Frame(
                exchange.to_stage,
                target,
                exchange.id,
                self._subtask,
                self._sequence[target],
                self._time,
                payload,
            )
        )
        self._sequence[target] += 1
        self._elements[target] = []
        return len(payload)

    def _unsent_to(self, target: int) -> list[Any]:
        chunks = [e for e in self._elements[target] if not isinstance(e, Watermark | Step | Mark)]
        return [value for chunk in chunks for value in chunk[1]]

    def _check_records(self, target: int) -> None:
        """A frame as large as no record may be: it may consist of several that are not."""
        error = record_too_large(self._unsent_to(target), self._max_record)
        if error is not None:
            raise describe(error, self._source.name, self._source.built_at, self._subtask)

    def finish(self, last: bool) -> None:
        """Ends the batch: every target subtask gets the mark, whether it got records or not."""
        self._seal()
        mark = Mark(self._watermarks, last)
        for target in range(self._width):
            self._elements[target].append(mark)
            self._send(target)
