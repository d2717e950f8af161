"""Tasks of later stages take Arrow batches and give Arrow batches, in workers that are forked from our own process.

PySpark gives a function of ``transformWithStateInPandas`` frames of pandas, and makes Arrow of those it returns, which
takes two milliseconds a task. There is no variant of it for Arrow. So where PySpark's worker reads such a function and
finds it to be a stage of ours, it gets another one, which does the same steps in the same order:

1. the processor's ``init``, then the state server learns that it is done;
2. for each key the server learns the key, then the rows are worked on;
3. the server learns that rows, timers (there are none) and the task are done.

All else is PySpark's: the task's messages, its streams, what it reports. Where its worker looks different than
expected, its own way is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.engine.spark.stage import StageProcessor

__all__ = ["install", "run_task"]

_NEEDED = ("read_udfs", "read_command", "ArrowStreamSerializer", "PythonEvalType", "StatefulProcessorApiClient")


def install(worker: Any) -> bool:
    """Puts the reader of functions into PySpark's worker module. Returns whether that looks as expected."""
    kind = getattr(getattr(worker, "PythonEvalType", None), "SQL_TRANSFORM_WITH_STATE_PANDAS_UDF", None)
    if kind is None or not all(callable(getattr(worker, name, None)) for name in _NEEDED):
        return False
    worker.read_udfs = _Reader(worker, kind).read_udfs
    return True


class _Reader:
    def __init__(self, worker: Any, kind: int) -> None:
        self._worker = worker
        self._kind = kind
        self._read: Callable[..., Any] = worker.read_udfs
        self._last: tuple[bytes, Any] = b"", None
        """The function that was read last, as it came and as it is: every batch of a stage brings the same."""

    def read_udfs(self, pickler: Any, functions: Any, kind: int, runner_conf: Any, eval_conf: Any) -> Any:
        stage = None
        columns = functions[0].args if kind == self._kind and len(functions) == 1 else []
        # How many numbers follow, how many keys there are, the key's column, the columns of a row: token and frame.
        if len(columns) == 5 and columns[:2] == [4, 1] and not runner_conf.udf_profiler:
            stage = self._stage(pickler, functions[0].udfs)
        if stage is None:
            return self._read(pickler, functions, kind, runner_conf, eval_conf)
        client = self._worker.StatefulProcessorApiClient(
            eval_conf.state_server_socket_port, eval_conf.grouping_key_schema
        )
        serializer = self._worker.ArrowStreamSerializer(write_start_stream=True)
        return partial(run_task, stage, client, (columns[2], columns[4])), None, serializer, serializer

    def _stage(self, pickler: Any, commands: Any) -> StageProcessor | None:
        """The stage that the command of a task is for; None where it is another's."""
        from firesteel.engine.spark.stage import StageProcessor

        if len(commands) != 1:
            return None
        command = bytes(commands[0])
        if command != self._last[0]:
            function, _ = self._worker.read_command(pickler, commands[0])
            self._last = command, getattr(getattr(function, "__self__", None), "_stateful_processor", None)
        processor = self._last[1]
        return processor if isinstance(processor, StageProcessor) else None


def run_task(
    stage: StageProcessor,
    client: Any,
    columns: tuple[int, int],
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """One batch of a task; ``columns`` are those of key and frame. What goes wrong in it, or in the state server, is
    raised, and Spark commits nothing."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    states = type(client.handle_state)
    stage.init(StatefulProcessorHandle(client))
    client.set_handle_state(states.INITIALIZED)
    for token, rows in groupby(_rows(batches, columns), itemgetter(0)):
        client.set_implicit_key((token,))
        for tokens, cells in stage.run(token, (cell for _, cell in rows)):
            yield _batch(tokens, cells)
    client.set_handle_state(states.DATA_PROCESSED)
    client.set_handle_state(states.TIMER_PROCESSED)
    client.remove_implicit_key()
    stage.close()
    client.set_handle_state(states.CLOSED)


def _rows(batches: Iterable[pa.RecordBatch], columns: tuple[int, int]) -> Iterator[tuple[int, bytes]]:
    keys, frames = columns
    for batch in batches:
        yield from zip(batch.column(keys).to_pylist(), batch.column(frames).to_pylist(), strict=True)


def _batch(tokens: list[int], cells: list[bytes]) -> pa.RecordBatch:
    """As Spark expects it: one column with all of a row."""
    import pyarrow as pa

    arrays = [pa.array(tokens, pa.int32()), pa.array(cells, pa.binary())]
    return pa.RecordBatch.from_arrays([pa.StructArray.from_arrays(arrays, ["r", "f"])], ["_0"])
