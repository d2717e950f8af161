"""A later stage as a Spark operator: ``transformWithState`` by subtask in streams, ``mapInArrow`` in batch jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from firesteel.engine.payload import JobPayload
from firesteel.engine.spark.state_calls import defer_answers
from firesteel.runtime.partitions import partition_tokens

# Spark unpickles a processor in a process of its own for each stage, only to ask for its state's schema: what tasks
# need beyond that is imported in tasks.
if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["StageProcessor", "batch_stage", "streaming_stage"]

# Schemas as objects: a text would be parsed by a round trip to the JVM in every task.
_FRAME = StructType([StructField("r", IntegerType()), StructField("f", BinaryType())])
_KEY = StructType([StructField("k", BinaryType())])
_VALUE = StructType([StructField("v", BinaryType())])

TOGETHER = 256 << 10
"""So many bytes of cells are sent at once."""


class StageProcessor(StatefulProcessor):
    """Spark's grouping key is our subtask. The users' keys live inside the one map state."""

    def __init__(self, payload: JobPayload, stage: int, width: int) -> None:
        self._payload = payload
        self._stage = stage
        self._subtasks = {token: subtask for subtask, token in enumerate(partition_tokens(width))}

    def init(self, handle: StatefulProcessorHandle) -> None:
        defer_answers(handle)
        self._map = handle.getMapState("state", _KEY, _VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """As PySpark calls it, where :mod:`.arrow_tasks` does not."""
        import pandas as pd

        for tokens, cells in self.run(int(key[0]), (cell for frame in rows for cell in frame["f"])):
            yield pd.DataFrame({"r": tokens, "f": cells})

    def run(self, token: int, cells: Iterable[bytes]) -> Iterator[tuple[list[int], list[bytes]]]:
        """One batch of the subtask with this token: its frames, and the token of the subtask that each is for."""
        from firesteel.engine.spark import worker
        from firesteel.runtime.state.spark_store import SparkStore

        store = SparkStore(self._map)
        yield from together(worker.run_stage(self._payload, self._stage, self._subtasks[token], cells, store))

    def close(self) -> None:
        """Operators are closed by the last batch, not with every task."""


def together(cells: Iterable[tuple[int, bytes]]) -> Iterator[tuple[list[int], list[bytes]]]:
    """Small cells in few tables: turning a table into Arrow takes half a millisecond, however little is in it.

    >>> [tokens for tokens, _ in together([(1, b"a"), (2, bytes(TOGETHER)), (1, b"b"), (2, b"c")])]
    [[1, 2], [1, 2]]
    """
    tokens: list[int] = []
    waiting: list[bytes] = []
    size = 0
    for token, cell in cells:
        tokens.append(token)
        waiting.append(cell)
        size += len(cell)
        if size >= TOGETHER:
            yield tokens, waiting
            tokens, waiting, size = [], [], 0
    if tokens:
        yield tokens, waiting


def streaming_stage(frame: DataFrame, payload: JobPayload, stage: int, width: int) -> DataFrame:
    processor = StageProcessor(payload, stage, width)
    return frame.groupBy("r").transformWithStateInPandas(processor, _FRAME, "Update", "none")


def batch_stage(frame: DataFrame, payload: JobPayload, stage: int, width: int) -> DataFrame:
    """Without a streaming query there is no state store: a subtask's state lives as long as its one task."""
    return frame.repartition(width, "r").mapInArrow(_batch_task(payload, stage, width), _FRAME)


def _batch_task(
    payload: JobPayload, stage: int, width: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from firesteel.engine.spark import worker
        from firesteel.runtime.state.store import MemoryStore

        subtasks = {token: subtask for subtask, token in enumerate(partition_tokens(width))}
        source = iter(batches)
        first = next((batch for batch in source if batch.num_rows), None)
        if first is None:
            return
        subtask = subtasks[first.column(0)[0].as_py()]

        def cells() -> Iterator[bytes]:
            yield from first.column(1).to_pylist()
            for batch in source:
                yield from batch.column(1).to_pylist()

        for tokens, some in together(worker.run_stage(payload, stage, subtask, cells(), MemoryStore())):
            yield pa.RecordBatch.from_pydict({"r": pa.array(tokens, pa.int32()), "f": pa.array(some, pa.binary())})

    return run
