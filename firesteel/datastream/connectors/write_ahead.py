"""A GenericWriteAheadSink as a sink: a batch's records of a subtask are a committable."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import GenericWriteAheadSink, SinkFunction

__all__ = ["WriteAheadSink"]

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


class WriteAheadSink(Sink):
    """What ``sink_to`` makes of a :class:`GenericWriteAheadSink`."""

    def __init__(self, function: GenericWriteAheadSink) -> None:
        self._function = function

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(context)

    def create_committer(self, context: CommitterContext) -> Committer:
        # A copy: what it opens must not travel to the tasks.
        return _Committer(copy.deepcopy(self._function), context)


class _Writer(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context = context
        self._values: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._values.append(value)

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return [(self._context.subtask(), self._context.current_processing_time(), values)] if values else []


class _Committer(Committer):
    def __init__(self, function: GenericWriteAheadSink, context: CommitterContext) -> None:
        self._function, self._context = function, context
        remembering = function.committer
        remembering.set_job_id(context.job_id())
        remembering.set_operator_id(context.sink_uid())
        remembering.open()
        remembering.create_resource()
        function.open(context.runtime_context())

    def commit(self, committables: list[Any]) -> None:
        remembering, checkpoint = self._function.committer, self._context.checkpoint_id()
        for subtask, timestamp, values in committables:
            if not remembering.is_checkpoint_committed(subtask, checkpoint):
                self._send(values, checkpoint, timestamp)
                remembering.commit_checkpoint(subtask, checkpoint)

    def _send(self, values: list[Any], checkpoint: int, timestamp: int) -> None:
        # Only those who send wait for it to load.
        from tenacity import RetryError, Retrying, retry_if_result, stop_before_delay, wait_exponential

        send = partial(self._function.send_values, values, checkpoint, timestamp)
        retrying = Retrying(
            stop=stop_before_delay(self._function.retry_seconds),
            wait=wait_exponential(FIRST_PAUSE, LONGEST_PAUSE),
            retry=retry_if_result(lambda sent: not sent),
        )
        try:
            retrying(send)
        except RetryError:
            raise ConnectionError(
                f"send_values() of {type(self._function).__name__} was not successful for "
                f"{self._function.retry_seconds} s, with {len(values)} records of checkpoint {checkpoint}."
            ) from None

    def close(self) -> None:
        try:
            self._function.close()
        finally:
            self._function.committer.close()
