"""The ends of a stream. What must reach the driver travels there with the batch's other frames."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.connectors.base import WriterContext
from firesteel.errors import ConnectorError
from firesteel.graph.specs import CollectSpec, PrintSpec, SinkFunctionSpec, SinkSpec
from firesteel.runtime.context import SinkContext
from firesteel.runtime.crash_points import CrashPoint
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.operators.base import Operator, Placement, handles
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["CollectOperator", "PrintOperator", "SinkFunctionOperator", "SinkOperator"]


@handles(PrintSpec)
class PrintOperator(Operator):
    """Lines with Flink's prefix. They are made where the data is and printed by the driver, batch by batch."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        number = str(self.subtask + 1) if self.node.parallelism > 1 else ""
        parts = [part for part in (self.spec.identifier or "", number) if part]
        self._prefix = f"{':'.join(parts)}> " if parts else ""
        declared = self.node.output_type
        self._format = declared.formatter() if declared is not None else str

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        texts = self.apply_to_all(self._format, values)
        prefix = self._prefix
        kind = "stderr" if self.spec.to_stderr else "stdout"
        self.placement.to_driver(kind, self.node.id, "".join([f"{prefix}{text}\n" for text in texts]))


@handles(CollectSpec)
class CollectOperator(Operator):
    """Records on their way to ``execute_and_collect``."""

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        try:
            self.placement.to_driver("collect", self.node.id, values)
        except OperatorFailure:
            raise
        except Exception as error:
            raise self.failure(error) from error


@handles(SinkFunctionSpec)
class SinkFunctionOperator(Operator):
    """A user's SinkFunction, called for each record where the record is."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        self._context = SinkContext(self.clock)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        invoke, context, clock = self.spec.function.invoke, self._context, self.clock
        clock.timestamp = MIN_TIMESTAMP
        value: Any = None
        try:
            for index, value in enumerate(values):
                if timestamps is not None:
                    clock.timestamp = timestamps[index]
                invoke(value, context)
        except Exception as error:
            raise self.failure(error, value) from error


@handles(SinkSpec)
class SinkOperator(Operator):
    """A sink's writer: what a batch prepared is committed by the driver when the batch is logged."""

    def open(self) -> None:
        context = WriterContext(
            self.placement.identity,
            self.subtask,
            self.node.parallelism,
            runtime=self.context,
            clock=lambda: self.clock.processing_time,
            watermark=lambda: self.clock.watermark,
            input_type=self.node.output_type,
            storage=self.placement.storage,
        )
        try:
            self._writer = self.spec.sink.create_writer(context)
        except Exception as error:
            raise self.failure(error) from error
        self._context = SinkContext(self.clock)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        if self._writer.write_all is not None:
            self._write_all(values, timestamps)
            return
        write, context, clock = self._writer.write, self._context, self.clock
        clock.timestamp = MIN_TIMESTAMP
        value: Any = None
        try:
            for index, value in enumerate(values):
                if timestamps is not None:
                    clock.timestamp = timestamps[index]
                write(value, context)
        except Exception as error:
            raise self.failure(error, value) from error

    def _write_all(self, values: list[Any], timestamps: list[int] | None) -> None:
        source = iter(values)
        try:
            self._writer.write_all(source, timestamps)
        except ConnectorError as error:
            # What it is about may have been written long before.
            raise self.failure(error) from error
        except Exception as error:
            taken = len(values) - source.__length_hint__()  # type: ignore[attr-defined]
            raise self.failure(error, *values[max(taken - 1, 0) : taken]) from error

    def finish(self, last: bool) -> None:
        crash = self.placement.crash_points.reach
        try:
            crash(CrashPoint.BEFORE_PREPARE)
            self._writer.flush(last)
            committables = self._writer.prepare_commit()
            crash(CrashPoint.PREPARED)
            if committables:
                self.placement.to_driver("commit", self.node.id, committables)
        except OperatorFailure:
            raise
        except Exception as error:
            raise self.failure(error) from error

    def next_processing_timer(self) -> int | None:
        try:
            moment: int | None = self._writer.wake_at()
        except Exception as error:
            raise self.failure(error) from error
        return moment

    def close(self) -> None:
        try:
            self._writer.close()
        except Exception as error:
            raise self.failure(error) from error
