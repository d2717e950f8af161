"""The environment: where a program starts, and where it is executed."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firesteel.common.configuration import Configuration
from firesteel.common.default_configuration import default_configuration
from firesteel.common.duration_settings import check_durations
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.tracebacks import shortened, wants_full_traces
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.socket import SocketSource
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.connectors.text import TextFileSource
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.file_source import FileSource
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.dependencies import Dependencies, check_executable
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.formats.avro import AvroInputFormat
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.datastream.state_backend import StateBackend
from firesteel.errors import (
    ConfigurationError,
    FiresteelError,
    ProgramError,
    TypeMismatchError,
    caller_location,
    short_repr,
)
from firesteel.filesystems import StorageOptions
from firesteel.graph.job_graph import JobGraph, build_job_graph
from firesteel.graph.plan import plan_json
from firesteel.graph.specs import SourceSpec
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.graph.transformations import Program

if TYPE_CHECKING:
    from firesteel.engine.job import EngineJob
    from firesteel.engine.submission import Submission

__all__ = ["StreamExecutionEnvironment"]

DEFAULT_JOB_NAME = "Firesteel Streaming Job"


class StreamExecutionEnvironment:
    """Builds streams and runs them.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_parallelism(2).get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._program = Program()
        self._configuration = default_configuration()
        self._config = ExecutionConfig()
        self._mode = RuntimeExecutionMode.STREAMING
        self.dependencies = Dependencies()
        """What the job brings for its functions: files, requirements, archives; another environment may be given it."""
        self._state_backend: StateBackend | None = None
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._apply(self._configuration)
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """An environment with the settings of the configuration file, then the submission's, then these."""
        return StreamExecutionEnvironment(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Takes over settings; they win over those of the configuration file."""
        self._configuration.add_all(configuration)
        self._apply(configuration)

    def _apply(self, configuration: Configuration) -> None:
        check_durations(configuration)
        self._config.configure(configuration)
        mode = configuration.get_string("execution.runtime-mode", "")
        if mode:
            try:
                self._mode = RuntimeExecutionMode[mode.upper()]
            except KeyError:
                raise ConfigurationError(
                    f"execution.runtime-mode must be STREAMING, BATCH or AUTOMATIC, got {mode!r}."
                ) from None

    @contextmanager
    def changed_settings(self, configuration: Configuration) -> Iterator[None]:
        """Settings for what is built and run meanwhile; those of the program come back."""
        kept = self._configuration, self._config, self._mode
        self._configuration, self._config = Configuration(kept[0]), copy.copy(kept[1])
        try:
            self.configure(configuration)
            yield
        finally:
            self._configuration, self._config, self._mode = kept

    @property
    def program(self) -> Program:
        """What has been built so far: for libraries that look at streams, or run some of them on their own."""
        return self._program

    # Settings

    def get_configuration(self) -> Configuration:
        """All settings by key, as in Flink's Java API; those of ``set_...`` methods are in :meth:`get_config`."""
        return self._configuration

    def get_config(self) -> ExecutionConfig:
        """Settings of the whole job."""
        return self._config

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Sets the number of subtasks of operators that do not say otherwise."""
        self._config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The number of subtasks of operators that do not say otherwise."""
        own = self._config.get_parallelism()
        return own if own > 0 else self.get_default_local_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Sets the number of key groups of operators that do not say otherwise."""
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, or -1 where none was set."""
        return self._config.get_max_parallelism()

    def get_default_local_parallelism(self) -> int:
        """The number of cores of this machine."""
        return self._configuration.get_integer("firesteel.default-local-parallelism", os.cpu_count() or 1)

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Chooses where keyed state lives, whatever the configuration says."""
        if not isinstance(state_backend, StateBackend):
            raise ProgramError(
                f"set_state_backend() takes a StateBackend such as EmbeddedRocksDBStateBackend(), got "
                f"{short_repr(state_backend, 80)}."
            )
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """The backend that the program chose; None leaves it to the configuration."""
        return self._state_backend

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted for compatibility: Spark's store always writes a log of changes."""
        self._configuration.set_boolean("state.changelog.enabled", enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set, or None."""
        return self._configuration.get_boolean("state.changelog.enabled", None)

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Has the job restarted from its last checkpoint after a failure, and checkpoints kept where a folder is set.

        There is a checkpoint after every micro-batch, and micro-batches follow one another as soon as there is input:
        ``interval`` is no pause between them, but how long one may take under a backlog, in milliseconds (a second at
        least).

        >>> StreamExecutionEnvironment().enable_checkpointing(10_000).get_checkpoint_interval()
        10000
        """
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """All settings of checkpoints."""
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints; -1 without checkpoints."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What checkpoints promise."""
        return self.get_checkpointing_consistency_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """What checkpoints promise."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were asked for."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints were asked for in any case."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go whose directory is not named."""
        self._configuration.set_string("execution.checkpointing.savepoint-dir", str(directory))
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go whose directory is not named, or None."""
        return self._configuration.get_string("execution.checkpointing.savepoint-dir", "") or None

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Sets the parallelism that applies where nothing else does."""
        self._configuration.set_integer("firesteel.default-local-parallelism", parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Chooses between STREAMING, BATCH (bounded sources only, final results only) and AUTOMATIC."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ProgramError(f"set_runtime_mode() takes a RuntimeExecutionMode, got {short_repr(execution_mode)}.")
        self._mode = execution_mode
        return self

    def get_runtime_mode(self) -> RuntimeExecutionMode:
        """The mode that was chosen; STREAMING where none was."""
        return self._mode

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """How long a record may wait for those beside it, in milliseconds. Micro-batches are sized so that records
        take about so long, on top of what a micro-batch costs. -1 leaves it out, for the most throughput.

        A backlog is worked off in long batches all the same: that is when its last record is through soonest. Where
        nothing is set, micro-batches take a second at most.
        """
        if timeout_millis == -1:
            self._configuration.set_boolean("execution.buffer-timeout.enabled", False)
        else:
            self._configuration.set_integer("execution.buffer-timeout.interval", timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """The buffer timeout that was set in milliseconds, -1 where it is off; 100 by default."""
        if not self._configuration.get_boolean("execution.buffer-timeout.enabled", True):
            return -1
        return self._configuration.get_duration_ms("execution.buffer-timeout.interval", 100)

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Shows every operator as a task of its own."""
        self._configuration.set_boolean("pipeline.operator-chaining.enabled", False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may be chained."""
        return self._configuration.get_boolean("pipeline.operator-chaining.enabled", True)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators of different maximum parallelism may be chained."""
        key = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
        return self._configuration.get_boolean(key, True)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Makes a slot sharing group known, with its resources."""
        self._slot_sharing_groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    def add_python_file(self, file_path: str) -> None:
        """Ships a file, folder or zip to the workers, where this job, and no other, can import it."""
        self.dependencies = self.dependencies.with_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Ships the packages of a requirements file to the workers, installed once for all jobs of this process."""
        self.dependencies = self.dependencies.with_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Ships a zip or tar file, unpacked to a folder of that name (the file's, if none is given).

        Functions find the folder with ``runtime_context.get_distributed_cache().get_file(target_dir)``, and on Spark by
        a relative path, since it is in the workers' working directory. Modules in it can be imported by
        ``target_dir.module``.
        """
        self.dependencies = self.dependencies.with_archive(archive_path, target_dir)

    def set_python_executable(self, python_exec: str) -> None:
        """Accepts the Python that workers run with, and refuses others: it is chosen by what starts the program."""
        check_executable(python_exec)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Ships a file or folder. ``runtime_context.get_distributed_cache().get_file(name)`` says where it is."""
        self.dependencies = self.dependencies.with_cached_file(name, file_path, executable)

    # Sources

    def from_collection(self, collection: list[Any], type_info: TypeInformation | None = None) -> DataStream:
        """A bounded stream of the elements of a collection."""
        elements = list(collection)
        if type_info is not None:
            check, convert = type_info.checker(), type_info.converter()
            if check is not None and not all(map(check, elements)):
                index = next(i for i, element in enumerate(elements) if type_info.explain(element) is not None)
                raise TypeMismatchError(
                    f"from_collection() at {caller_location()}: element {index}: {type_info.explain(elements[index])}"
                )
            if convert is not None:
                elements = list(map(convert, elements))
        return self._source("Source: Collection Source", CollectionSource(elements), type_info, parallel=False)

    def from_source(
        self,
        source: Source[Any, Any],
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream of what a source reads, with event time by the given strategy."""
        if not isinstance(source, Source):
            raise ProgramError(f"from_source() takes an instance of Source, got {short_repr(source, 80)}.")
        given = watermark_strategy
        source = source.with_storage(StorageOptions.of(self._configuration.to_dict()))
        # One that says nothing leaves event time to the source.
        silent = given.kind == "none" and given.timestamp_assigner is None and given.idle_timeout_ms is None
        strategy = None if silent else given
        return self._source(
            f"Source: {source_name}", source, type_info or source.get_produced_type(), strategy=strategy
        )

    def add_source(
        self,
        source_func: Source[Any, Any],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream of what a source reads that PyFlink's programs know as a source function, such as ``RMQSource``."""
        if not isinstance(source_func, Source):
            raise ProgramError(f"add_source() takes an instance of Source, got {short_repr(source_func, 80)}.")
        return self.from_source(source_func, WatermarkStrategy.no_watermarks(), source_name, type_info)

    def create_input(self, input_format: AvroInputFormat, type_info: TypeInformation | None = None) -> DataStream:
        """A bounded stream of what an :class:`~firesteel.datastream.formats.avro.AvroInputFormat` reads."""
        if not isinstance(input_format, AvroInputFormat):
            raise ProgramError(
                f"create_input() takes an AvroInputFormat, got {short_repr(input_format, 80)}. For other files there "
                "is from_source() with a FileSource."
            )
        source = FileSource.for_bulk_file_format(input_format.format, input_format.path).build()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Custom File Source", type_info)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8", errors: str = "strict") -> DataStream:
        """A bounded stream of the lines of a file, or of all files of a folder, that are there now: a path, or a URI
        such as ``s3://bucket/folder``.

        Files that end in ``.gz``, ``.bz2`` or ``.zst`` are decompressed. Bytes that are no text in the character set
        fail the job, with file and line; ``errors="replace"`` puts U+FFFD in their place, as PyFlink does. A job that
        goes on from a checkpoint or savepoint also reads files and lines that were added since.
        """
        source = TextFileSource(file_path, charset_name, errors, StorageOptions.of(self._configuration.to_dict()))
        return self._source("Source: Text File", source, Types.STRING(), parallel=False)

    def socket_text_stream(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = -1) -> DataStream:
        """A stream of text from a socket, without end (or until the other side has gone ``max_retry`` times).

        The connection is made anew when it breaks; -1 tries for ever, 0 ends the stream with the connection. Text is
        written to the job's directory before it counts, so a restarted job loses nothing of it.
        """
        source = SocketSource(hostname, port, delimiter, max_retry)
        return self._source("Source: Socket Stream", source, Types.STRING(), parallel=False)

    def _source(
        self,
        name: str,
        source: Source[Any, Any],
        type_info: TypeInformation | None,
        parallel: bool = True,
        strategy: WatermarkStrategy | None = None,
    ) -> DataStream:
        enumerator, reader = source.create_enumerator(), source.create_reader()
        for made, kind in ((enumerator, SplitEnumerator), (reader, SourceReader)):
            if not isinstance(made, kind):
                raise ProgramError(
                    f"A source's enumerator and reader are a SplitEnumerator and a SourceReader; "
                    f"{type(source).__name__} makes {short_repr(made, 80)} where a {kind.__name__} should be."
                )
        node = self._program.add(
            name=name,
            spec=SourceSpec(enumerator, reader, strategy, self._config.get_auto_watermark_interval()),
            inputs=(),
            built_at=caller_location(),
            output_type=type_info,
            parallel=parallel,
        )
        return DataStream(self, node)

    # Execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the program and waits for its end.

        Ctrl-C and SIGTERM stop the job after the batch that is under way. Its checkpoint stays, if it has one.
        """
        try:
            return self._submit(job_name).wait()
        except FiresteelError as error:
            # Waiting for it has added frames that are not the user's.
            raise shortened(error, wants_full_traces(self._configuration))  # noqa: B904 - it decides about causes

    def execute_async(self, job_name: str = DEFAULT_JOB_NAME) -> JobClient:
        """Starts the program and returns a handle on it."""
        return self._submit(job_name)

    def get_execution_plan(self) -> str:
        """The program as JSON: operators, how they are connected, chained and placed on stages."""
        return plan_json(self._job_graph(to_look_at=True))

    def _submit(self, job_name: str | None) -> EngineJob:
        # Here, not at the top: building a program must not load the engine (or pyspark).
        from firesteel.engine import submit

        submission = self._submission(job_name)
        self._program.forget_sinks()
        return submit(submission)

    def _collect(self, job_name: str | None, channel: str) -> tuple[CloseableIterator, JobClient]:
        client = self._submit(job_name)
        records = CloseableIterator(
            client.collect(channel), client.stop_collecting, lambda: client.stop_collecting(interrupted=True)
        )
        return records, client

    def _job_graph(self, to_look_at: bool = False) -> JobGraph:
        longest = self._config.get_max_parallelism()
        graph = build_stream_graph(
            self._program,
            self.get_parallelism(),
            longest if longest > 0 else None,
            self.is_chaining_enabled(),
            to_look_at,
        )
        return build_job_graph(graph)

    def _submission(self, job_name: str | None) -> Submission:
        from firesteel.engine.submission import Submission

        # Once more: the settings of tables, for one, are set one by one.
        check_durations(self._configuration)
        graph = self._job_graph()
        mode = self._mode
        if mode is RuntimeExecutionMode.AUTOMATIC:
            mode = RuntimeExecutionMode.BATCH if graph.graph.bounded else RuntimeExecutionMode.STREAMING
        if mode is RuntimeExecutionMode.BATCH and not graph.graph.bounded:
            endless = (number for number, one in graph.graph.enumerators.items() if not one.bounded)
            first = graph.graph.nodes[next(endless)]
            raise ProgramError(
                f"BATCH mode needs sources that end, but {first.name!r} (built at {first.built_at}) does not. "
                "Use RuntimeExecutionMode.STREAMING or AUTOMATIC."
            )
        return Submission(
            name=job_name or DEFAULT_JOB_NAME,
            graph=graph,
            batch_mode=mode is RuntimeExecutionMode.BATCH,
            configuration=Configuration(self._configuration),
            state_backend=self._state_backend,
            job_parameters=dict(self._config.get_global_job_parameters()),
            dependencies=self.dependencies.configured(self._configuration),
        )
