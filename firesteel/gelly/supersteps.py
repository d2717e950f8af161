"""Runs a program over the blocks of a graph, superstep by superstep.

In a superstep every block gets what it was (its state) and what other blocks sent it, and gives its new state and what
it sends. Both go through one shuffle; the graph itself lies still. Every superstep is one job of Spark, whose result is
a local checkpoint: plans and lineage stay as short as in the first superstep. The one before is let go.
"""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from firesteel.gelly.blocks import ADJACENCY, INDEX, MESSAGE, ROUTE, SCHEMA, STATE, STATS, Block, Cells, block_of
from firesteel.gelly.blocks import read_cells as _read
from firesteel.gelly.failures import user_errors
from firesteel.gelly.layout import Layout, collect_stats
from firesteel.gelly.shipping import over_tables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BlockProgram", "Checkpoints", "Outcome", "release", "run_supersteps"]


@dataclass
class Outcome:
    """What a block has to say at the end of a superstep."""

    state: Any
    outbox: dict[int, Any] = field(default_factory=dict)
    """What each block is to get."""
    stats: Any = None
    """What the driver is to know."""


class BlockProgram(ABC):
    """What happens in a superstep. Objects travel to workers."""

    @abstractmethod
    def start(self, block: Block) -> Any:
        """The state before the first superstep."""

    @abstractmethod
    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        """One superstep of one block; ``superstep`` counts from 1, ``shared`` is what :meth:`merge` gave."""

    @abstractmethod
    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        """In the driver: what all blocks are to know in the next superstep, and whether there is to be one."""

    @abstractmethod
    def results(self, block: Block, state: Any) -> list[pa.Array]:
        """The columns of the result, after the id."""


@dataclass(frozen=True)
class Checkpoints:
    """How lineage is cut: after every superstep in the memory and on the disks of executors, and where it is to be
    reliable, every few supersteps in the folder of ``SparkContext.setCheckpointDir``, too."""

    interval: int = 10
    reliable: bool = False

    def due(self, superstep: int) -> bool:
        return self.reliable and superstep % self.interval == 0


_RETRIES = 3
"""How often an iteration goes on from the same checkpoint."""


def run_supersteps(
    layout: Layout, program: BlockProgram, max_supersteps: int, schema: Any, checkpoints: Checkpoints | None = None
) -> DataFrame:
    """Runs a program until it has finished, and gives (id, …) as ``schema`` names it."""
    checkpoints = checkpoints or Checkpoints()
    blocks = len(layout.tokens)
    current = layout.rows.sparkSession.createDataFrame([], SCHEMA).repartition(blocks, "block")
    superstep, shared = 0, None
    safe = (superstep, shared, copy.deepcopy(program), current)
    go_on, retries = True, 0
    with _Caches() as caches:
        while go_on and superstep < max_supersteps:
            step = _Step(layout.tokens, program, superstep + 1, shared)
            following = over_tables(layout.rows, current, "block", step, SCHEMA)
            following = following.repartition(blocks, "block").sortWithinPartitions("block")
            try:
                with user_errors():
                    # Not eager: the job that asks for the statistics computes and keeps everything.
                    following = caches.add(following.localCheckpoint(eager=False))
                    stats = collect_stats(following)
            except Exception as error:
                retries += 1
                if not checkpoints.reliable or not _lost_blocks(error) or retries > _RETRIES:
                    raise
                superstep, shared, saved, current = safe
                program = copy.deepcopy(saved)
                continue
            caches.keep_last()
            current = following
            superstep += 1
            shared, go_on = program.merge(stats, superstep)
            if checkpoints.due(superstep):
                safe = (superstep, shared, copy.deepcopy(program), current.checkpoint())
                retries = 0
        with user_errors():
            function = _Results(layout.tokens, program, _names(schema))
            result = over_tables(layout.rows, current, "block", function, schema)
            return result.checkpoint() if checkpoints.reliable else result.localCheckpoint()


def _lost_blocks(error: Exception) -> bool:
    """Whether an executor was lost together with what a superstep had left there."""
    text = str(error)
    return "Checkpoint block" in text or "checkpoint block" in text


def _names(schema: Any) -> list[str]:
    return list(schema.names) if isinstance(schema, StructType) else StructType.fromDDL(schema).names


class _Caches(contextlib.AbstractContextManager["_Caches"]):
    """What supersteps have left in memory and on disk: at most two at once, none at the end."""

    def __init__(self) -> None:
        self._held: list[DataFrame] = []

    def add(self, frame: DataFrame) -> DataFrame:
        self._held.append(frame)
        return frame

    def keep_last(self) -> None:
        while len(self._held) > 1:
            release(self._held.pop(0))

    def __exit__(self, *details: object) -> None:
        while self._held:
            release(self._held.pop(0))


def release(frame: DataFrame) -> None:
    """Lets go of a local checkpoint. Spark itself does so when the JVM notices that nobody refers to it any more."""
    with contextlib.suppress(Exception):
        frame._jdf.queryExecution().logical().rdd().unpersist(False)


class _Step:
    def __init__(self, tokens: tuple[int, ...], program: BlockProgram, superstep: int, shared: Any) -> None:
        self.tokens, self.program, self.superstep, self.shared = tokens, program, superstep, shared

    def __call__(self, static: pa.Table, dynamic: pa.Table) -> pa.Table:
        cells = Cells()
        if not static.num_rows:
            return cells.table()
        token, block = _block(self.tokens, static)
        found = _read(dynamic.to_batches(), (STATE, MESSAGE))
        state = found.pop((STATE, 0)) if (STATE, 0) in found else self.program.start(block)
        inbox = {peer: value for (_, peer), value in found.items()}
        outcome = self.program.step(block, state, inbox, self.superstep, self.shared)
        cells.add(token, STATE, 0, outcome.state)
        cells.add(token, STATS, 0, outcome.stats)
        for peer, message in outcome.outbox.items():
            cells.add(self.tokens[peer], MESSAGE, block.number, message)
        return cells.table()


class _Results:
    def __init__(self, tokens: tuple[int, ...], program: BlockProgram, names: list[str]) -> None:
        self.tokens, self.program, self.names = tokens, program, names

    def __call__(self, static: pa.Table, dynamic: pa.Table) -> pa.Table:
        import pyarrow as pa

        _, block = _block(self.tokens, static)
        found = _read(dynamic.to_batches(), (STATE,))
        state = found[STATE, 0] if found else self.program.start(block)
        columns = [block.ids, *self.program.results(block, state)]
        return pa.table(columns, names=self.names)


def _block(tokens: tuple[int, ...], static: pa.Table) -> tuple[int, Block]:
    token = static["block"][0].as_py()
    return token, block_of(tokens.index(token), _read(static.to_batches(), (INDEX, ADJACENCY, ROUTE)))
