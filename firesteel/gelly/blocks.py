"""A graph in blocks, the form that iterations work on.

Vertices are spread over blocks by a hash of their id, edges go with their source. A block is one partition of Spark and
fits into the memory of one Python worker. Inside it vertices have numbers 0, 1, 2, …, and edges are arrays of such
numbers, so that a superstep is work on whole arrays.

How a message finds its vertex: a block lists the different targets of its edges once, ordered by their blocks
(:class:`Adjacency`), and sends each other block its part of the list. That block looks up the numbers of its vertices
(:attr:`Block.routes`). From then on a message is a value at a place of that list: no ids travel any more, and messages
for the same vertex are combined before they are sent.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from firesteel.errors import ProgramError, short_repr

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ADJACENCY",
    "INDEX",
    "MESSAGE",
    "ROUTE",
    "SCHEMA",
    "STATE",
    "STATS",
    "Adjacency",
    "Array",
    "Assembly",
    "Block",
    "Cells",
    "assemble",
    "block_of",
    "read_cells",
    "resolve",
]

Array = npt.NDArray[Any]

INDEX, ADJACENCY, ROUTE, STATE, MESSAGE, STATS = range(6)
"""What a row holds."""

CELL = 4 << 20
"""How many bytes a cell has at most. Spark has several rows of a task in the JVM's heap at once."""


@dataclass(frozen=True)
class Adjacency:
    """The edges that begin in a block."""

    source: Array
    """The number of each edge's source in this block. Ascending where the block was assembled ``by_source``."""
    place: Array
    """The place of each edge's target in ``targets``."""
    starts: Array
    """Where the targets of each block begin in the list of targets, and the end of the list."""
    targets: pa.Array | None
    """The different targets, ordered by block, where they were asked for."""
    values: pa.Array | None
    """The value of each edge, where they were asked for."""

    @property
    def targets_count(self) -> int:
        return int(self.starts[-1])


@dataclass(frozen=True)
class Block:
    """One block of a graph, and how the others' messages reach its vertices."""

    number: int
    ids: pa.Array
    values: pa.Array | None
    adjacency: Adjacency
    routes: dict[int, Array]
    """For each block that sends messages here: the numbers of its targets, in the order in which it lists them."""

    @property
    def size(self) -> int:
        return len(self.ids)

    def split(self, values: Array) -> dict[int, Array]:
        """An array with an entry for each target, as what each block gets of it."""
        starts = self.adjacency.starts
        filled = np.flatnonzero(np.diff(starts))
        return {int(block): values[starts[block] : starts[block + 1]] for block in filled}

    def push_sum(self, values: Array) -> dict[int, Array]:
        """Sends along each edge a number; they are added up for each target. ``values`` has one for each edge."""
        edges = self.adjacency
        return self.split(np.bincount(edges.place, weights=values, minlength=edges.targets_count))

    def push_min(self, values: Array) -> dict[int, Array]:
        """The same with the least instead of the sum."""
        edges = self.adjacency
        least = np.full(edges.targets_count, np.inf)
        np.minimum.at(least, edges.place, values)
        return self.split(least)

    def received_sum(self, inbox: dict[int, Array]) -> Array:
        """What was sent with :meth:`push_sum`, for each vertex."""
        total = np.zeros(self.size)
        for sender, values in inbox.items():
            # A sender lists a vertex once, so no two values of it meet.
            total[self.routes[sender]] += values
        return total

    def received_min(self, inbox: dict[int, Array]) -> Array:
        least = np.full(self.size, np.inf)
        for sender, values in inbox.items():
            route = self.routes[sender]
            least[route] = np.minimum(least[route], values)
        return least

    def pull(self, values: Array) -> dict[int, Array]:
        """Sends the value of each vertex back to all blocks that have edges to it."""
        return {sender: values[route] for sender, route in self.routes.items()}

    def pulled(self, inbox: dict[int, Array]) -> Array:
        """What was sent with :meth:`pull`, for each edge: the value of its target."""
        edges = self.adjacency
        values = np.zeros(edges.targets_count)
        for sender, sent in inbox.items():
            values[edges.starts[sender] : edges.starts[sender + 1]] = sent
        taken: Array = values[edges.place]
        return taken


# Rows


class Cells:
    """Rows (block, kind, peer, part, payload) as they are collected."""

    def __init__(self) -> None:
        self.block: list[int] = []
        self.kind: list[int] = []
        self.peer: list[int] = []
        self.part: list[int] = []
        self.payload: list[Any] = []

    def add(self, block: int, kind: int, peer: int, value: Any) -> None:
        """Adds a value, in as many rows as it takes."""
        data = memoryview(pickle.dumps(value, protocol=5))
        for part, begin in enumerate(range(0, len(data), CELL)):
            self.block.append(block)
            self.kind.append(kind)
            self.peer.append(peer)
            self.part.append(part)
            self.payload.append(data[begin : begin + CELL])

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table().to_batches(max_chunksize=8)

    def table(self) -> pa.Table:
        import pyarrow as pa

        numbers = (pa.array(column, pa.int32()) for column in (self.block, self.kind, self.peer, self.part))
        return pa.table([*numbers, pa.array(self.payload, pa.binary())], names=ROW)


ROW = ["block", "kind", "peer", "part", "payload"]
SCHEMA = "block int, kind int, peer int, part int, payload binary"


def read_cells(batches: Iterable[pa.RecordBatch], kinds: tuple[int, ...]) -> dict[tuple[int, int], Any]:
    """The values of some kinds in rows of one block, by kind and peer."""
    found: dict[tuple[int, int], dict[int, Any]] = {}
    for batch in batches:
        kind, peer, part = (batch.column(name).to_pylist() for name in ("kind", "peer", "part"))
        payload = batch.column("payload")
        for row in range(batch.num_rows):
            if kind[row] in kinds:
                found.setdefault((kind[row], peer[row]), {})[part[row]] = payload[row].as_buffer()
    return {key: _value([parts[part] for part in sorted(parts)]) for key, parts in found.items()}


def _value(parts: list[Any]) -> Any:
    return pickle.loads(parts[0] if len(parts) == 1 else b"".join(parts))


# Assembling


@dataclass(frozen=True)
class Assembly:
    """How blocks are made: runs in workers."""

    tokens: tuple[int, ...]
    """For each block the number that Spark's hash sends to its own partition."""
    vertex_value: bool
    edge_value: bool
    by_source: bool
    """Whether edges are ordered by source and targets keep their ids: for functions that look at single edges."""


def assemble(assembly: Assembly, number: int, rows: pa.Table) -> Cells:
    """The rows of a block: its index, its edges, and for each other block the targets that it will send to.

    ``rows`` has vertices (``target_block`` is -1) and edges (``source``, ``target``, ``value``).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_vertex = pc.equal(rows["target_block"], -1)
    vertices = rows.filter(is_vertex)
    ids = _combined(vertices["source"])
    if len(pc.unique(ids)) != len(ids):
        counts = pc.value_counts(ids)
        twice = next(entry["values"] for entry in counts.to_pylist() if entry["counts"] > 1)
        raise ProgramError(f"Vertex {short_repr(twice)} is there more than once; ids of vertices have to be different.")
    edges = rows.filter(pc.invert(is_vertex))
    source = pc.index_in(_combined(edges["source"]), value_set=ids)
    if source.null_count:
        missing = edges["source"].filter(pc.is_null(source))[0].as_py()
        raise _missing(missing, "source")
    source_numbers = source.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    encoded = _combined(edges["target"]).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    of_code = np.zeros(len(encoded.dictionary), np.int32)
    of_code[codes] = edges["target_block"].to_numpy()
    order = np.argsort(of_code, kind="stable")
    place_of_code = np.empty(len(order), np.int32)
    place_of_code[order] = np.arange(len(order), dtype=np.int32)
    places = place_of_code[codes]
    starts = np.searchsorted(of_code[order], np.arange(len(assembly.tokens) + 1))
    targets = encoded.dictionary.take(pa.array(order))
    values = _combined(edges["value"]) if assembly.edge_value else None
    if assembly.by_source:
        by_source = np.argsort(source_numbers, kind="stable")
        source_numbers, places = source_numbers[by_source], places[by_source]
        values = None if values is None else values.take(pa.array(by_source))
    cells = Cells()
    token = assembly.tokens[number]
    cells.add(token, INDEX, 0, (ids, _combined(vertices["vertex"]) if assembly.vertex_value else None))
    kept = targets if assembly.by_source else None
    cells.add(token, ADJACENCY, 0, Adjacency(source_numbers, places, starts, kept, values))
    for block in np.flatnonzero(np.diff(starts)):
        part = targets.slice(starts[block], starts[block + 1] - starts[block])
        # A slice would take its whole array along.
        cells.add(assembly.tokens[block], ROUTE, number, part.take(pa.array(np.arange(len(part)))))
    return cells


def resolve(assembly: Assembly, number: int, rows: Iterable[pa.RecordBatch]) -> Cells:
    """Looks up the vertices that other blocks will send to."""
    import pyarrow.compute as pc

    found = read_cells(rows, (INDEX, ADJACENCY, ROUTE))
    token = assembly.tokens[number]
    cells = Cells()
    # No vertex of this hash: then nothing begins here either.
    ids = found[INDEX, 0][0] if (INDEX, 0) in found else None
    if ids is not None:
        cells.add(token, STATS, 0, len(ids))
    for (kind, peer), value in found.items():
        if kind != ROUTE:
            cells.add(token, kind, peer, value)
            continue
        if ids is None:
            raise _missing(value[0].as_py(), "target")
        route = pc.index_in(value, value_set=ids)
        if route.null_count:
            raise _missing(value.filter(pc.is_null(route))[0].as_py(), "target")
        cells.add(token, kind, peer, route.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))
    return cells


def block_of(number: int, found: dict[tuple[int, int], Any]) -> Block:
    """A block out of its rows."""
    ids, values = found[INDEX, 0]
    routes = {peer: value for (kind, peer), value in found.items() if kind == ROUTE}
    return Block(number, ids, values, found[ADJACENCY, 0], routes)


def _missing(vertex: Any, end: str) -> ProgramError:
    return ProgramError(
        f"An edge names vertex {short_repr(vertex)} as its {end}, but there is no such vertex. validate() finds such "
        "edges; Graph.from_data_set(edges) makes the vertices that edges name."
    )


def _combined(column: Any) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        # Older versions give an array of chunks back where there is none.
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
