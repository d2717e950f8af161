"""Operators that libraries and programs bring: between the public contract and a task stand these two."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from functools import partial
from itertools import groupby
from typing import Any

from firesteel.datastream.operators import Records, StreamOperator, StreamOperatorContext
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import ProgramError
from firesteel.graph.specs import TransformSpec
from firesteel.runtime.context import OperatorContext, TimerlessService, UnkeyedTimerService
from firesteel.runtime.copies import detached
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.grouping import KeyGroups
from firesteel.runtime.operators.base import Operator, Placement, Port
from firesteel.runtime.operators.connected import Input
from firesteel.runtime.operators.keyed import Firing, KeyedProcessOperator, either
from firesteel.runtime.outputs import Output
from firesteel.runtime.state.backend import NO_KEY
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["KeyedTransformOperator", "TransformOperator"]


class _Context(OperatorContext, StreamOperatorContext):
    """The runtime context of a function, and what an operator can do beyond it."""

    timers: TimerService
    out: Output

    def timer_service(self) -> TimerService:
        return self.timers

    def set_current_key(self, key: Any) -> None:
        backend = self._backend()
        if backend.lazy:
            # It may be any key, not only one of those that came with the records.
            backend.ensure(key)
        backend.key = key

    def get_current_key(self) -> Any:
        return self._backend().key

    def prepare_keys(self, keys: Collection[Any]) -> None:
        self._backend().prepare(keys)

    def emit(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.out.emit(self._checked(values, timestamps), timestamps)

    def emit_to(self, output_tag: OutputTag, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.out.emit_side(output_tag, self._checked(values, timestamps), timestamps)

    def _checked(self, values: list[Any], timestamps: list[int] | None) -> list[Any]:
        if timestamps is not None and len(timestamps) != len(values):
            raise ProgramError(
                f"Operator {self.node.name!r} emits {len(values)} records with {len(timestamps)} timestamps: each "
                "record needs one, or pass None."
            )
        if self.keyed is not None and self.keyed.shared:
            return list(map(detached, values))
        return values


class _Custom(Operator):
    """Hands the calls of a task on to the operator that the spec's class is registered for."""

    function: StreamOperator[Any]

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        with self.described():
            self.function = self.spec.operator(self.spec.spec)
        context = _Context(**vars(self.context))
        context.out = self.out
        context.timers = self.timer_service()
        self.function.context = self.context = context

    def timer_service(self) -> TimerService:
        return UnkeyedTimerService(self.clock)

    @contextlib.contextmanager
    def described(self, *element: Any) -> Iterator[None]:
        """Says which operator failed, unless it was another one, behind this one."""
        try:
            yield
        except OperatorFailure:
            raise
        except Exception as error:
            raise self.failure(error, *element) from error

    def port(self, ordinal: int) -> Port:
        return Input(partial(self.take, ordinal), partial(self.take_keyed, ordinal))

    def take(self, ordinal: int, values: list[Any], timestamps: list[int] | None) -> None:
        """Records of an input without keys."""
        with self.without_key():
            self.function.process(Records(values, timestamps, None, ordinal))

    def take_keyed(self, ordinal: int, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        """Records of an input with keys."""
        self.hand(Records(values, timestamps, keys, ordinal))

    def hand(self, records: Records) -> None:
        with self.described():
            self.function.process(records)

    def on_watermark(self, watermark: int) -> None:
        super().on_watermark(watermark)
        with self.without_key():
            self.function.on_watermark(watermark)

    def send_watermark(self, origin: int, watermark: int) -> None:
        super().send_watermark(origin, self.function.output_watermark(watermark))

    def finish(self, last: bool) -> None:
        with self.without_key():
            self.function.end_batch()
        super().finish(last)

    @contextlib.contextmanager
    def without_key(self) -> Iterator[None]:
        """For what belongs to no record: the key of the last one must not be taken for the current key."""
        if self.backend is not None:
            self.backend.key = NO_KEY
        with self.described():
            yield


class TransformOperator(_Custom):
    """An operator whose inputs have no keys."""


class KeyedTransformOperator(_Custom, KeyedProcessOperator):
    """An operator with the states and timers of keys. One of its inputs may have none: it gets no key from there."""

    def timer_service(self) -> TimerService:
        if type(self.function).on_timer is StreamOperator.on_timer:
            return _NoOnTimer(self.clock)
        return self._timers

    def take_keyed(self, ordinal: int, keys: list[Any], values: list[Any], timestamps: list[int] | None) -> None:
        if self._groups is not None:
            self._groups.add(keys, values, timestamps, ordinal)
            return
        self.backend.prepare(keys)
        super().take_keyed(ordinal, keys, values, timestamps)

    def run_groups(self, groups: KeyGroups) -> None:
        for key, ordinals, values, timestamps in groups.merged_groups():
            self.clock.watermark = MIN_TIMESTAMP
            self.backend.prepare((key,))
            for ordinal, run in groupby(range(len(values)), ordinals.__getitem__):
                chosen = list(run)
                piece = slice(chosen[0], chosen[-1] + 1)
                stamps = None if timestamps is None else timestamps[piece]
                self.hand(Records(values[piece], stamps, [key] * len(chosen), ordinal))
            self.end_group(key)

    def _fire_until(self, queue: TimerQueue, limit: int, timed: bool) -> None:
        on_timer, backend, domain = self.function.on_timer, self.backend, self._context.domain
        for time, key in queue.due(limit):
            # A timer set meanwhile may belong to a key that was not read yet.
            backend.ensure(key)
            backend.key = key
            with self.described(Firing(time, key)):
                on_timer(time, domain)


class _NoOnTimer(TimerlessService):
    def _refuse(self) -> ProgramError:
        return ProgramError("The operator has no on_timer(), so a timer could never fire. Override on_timer().")


either(TransformOperator, KeyedTransformOperator, TransformSpec)
