"""How a stream ends: it is printed, goes to a sink, or is collected by the program."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, overload

from firesteel.common.job_client import JobClient
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.connectors.base import Sink
from firesteel.datastream.connectors.transactions import TransactionSink
from firesteel.datastream.connectors.write_ahead import WriteAheadSink
from firesteel.datastream.functions import GenericWriteAheadSink, SinkFunction, TwoPhaseCommitSinkFunction
from firesteel.datastream.operator_settings import DataStreamSink, OperatorSettings
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import ProgramError, caller_location, short_repr
from firesteel.graph.specs import CollectSpec, OperatorSpec, PrintSpec, SinkFunctionSpec, SinkSpec
from firesteel.graph.transformations import Edge, Partitioning, Ship, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["StreamEnds"]


class StreamEnds(OperatorSettings):
    """What a stream is without its transformations: an output of an operator, where it goes, and how it can end."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        node: Transformation,
        partitioning: Partitioning,
        tag: OutputTag | None,
    ) -> None:
        super().__init__(env, node)
        self._partitioning = partitioning
        self._tag = tag

    @property
    def _type(self) -> TypeInformation | None:
        return self._tag.type_info if self._tag is not None else self.transformation.output_type

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints every record in the driver, with Flink's subtask prefix."""
        return self._sink("Print to Std. Out", PrintSpec(sink_identifier), self._type)

    def add_sink(
        self, sink_func: SinkFunction | TwoPhaseCommitSinkFunction | GenericWriteAheadSink | Sink
    ) -> DataStreamSink:
        """Ends the stream in a sink function, or in a sink that PyFlink's programs know as one."""
        if isinstance(sink_func, TwoPhaseCommitSinkFunction | GenericWriteAheadSink | Sink):
            return self.sink_to(sink_func)
        if not isinstance(sink_func, SinkFunction):
            raise ProgramError(f"add_sink() takes an instance of SinkFunction, got {short_repr(sink_func, 80)}.")
        return self._sink("Sink", SinkFunctionSpec(sink_func))

    def sink_to(self, sink: Sink | TwoPhaseCommitSinkFunction | GenericWriteAheadSink) -> DataStreamSink:
        """Ends the stream in a sink with a writer and a committer."""
        if isinstance(sink, TwoPhaseCommitSinkFunction):
            sink = TransactionSink(sink)
        elif isinstance(sink, GenericWriteAheadSink):
            sink = WriteAheadSink(sink)
        if not isinstance(sink, Sink):
            raise ProgramError(f"sink_to() takes an instance of Sink, got {short_repr(sink, 80)}.")
        return self._sink("Sink", SinkSpec(sink), self._type)

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, limit: None = None) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Runs the program and iterates over this stream's records while the job runs.

        With ``limit`` the first so many records as a list. Closing the iterator stops the job.
        """
        iterator, _ = self.collect_with_client(job_execution_name)
        if limit is None:
            return iterator
        with iterator:
            return [record for _, record in zip(range(limit), iterator, strict=False)]

    def collect_with_client(self, job_execution_name: str | None = None) -> tuple[CloseableIterator, JobClient]:
        """The records, and the job that they come from."""
        channel = uuid.uuid4().hex
        self._sink("Collect", CollectSpec(channel))
        return self._env._collect(job_execution_name, channel)

    # Building

    def _edge(self) -> Edge:
        return Edge(self._id, self._partitioning, self._tag.tag_id if self._tag is not None else None)

    def _sink(self, name: str, spec: OperatorSpec, shown: TypeInformation | None = None) -> DataStreamSink:
        sink = DataStreamSink(self._env, self._append(f"Sink: {name}" if name != "Sink" else name, spec, shown))
        # A sink may be given more subtasks.
        return sink._change(parallel=True) if not sink.transformation.parallel else sink

    def _append(
        self,
        name: str,
        spec: OperatorSpec,
        output_type: TypeInformation | None,
        inputs: list[Edge] | None = None,
    ) -> Transformation:
        if output_type is not None and not isinstance(output_type, TypeInformation):
            raise ProgramError(f"output_type must be one of Types, got {short_repr(output_type, 80)}.")
        node = self._env.program.add(
            name=name,
            spec=spec,
            inputs=tuple(inputs if inputs is not None else [self._edge()]),
            built_at=caller_location(),
            output_type=output_type,
        )
        if inputs is None and self._is_changelog_of_one():
            self._env.program.change(node.id, parallelism=1, parallel=False)
        return self._env.program.get(node.id)

    def _is_changelog_of_one(self) -> bool:
        """Whether these are batches of an operator that has one subtask only. Their rows may take back others, so they
        stay in their order: whoever comes next has one subtask, too, unless they are shared out in another way."""
        before = self._env.program.get(self._id)
        columnar = before.output_type is not None and before.output_type.columnar
        return columnar and not before.parallel and self._partitioning.ship is Ship.FORWARD
