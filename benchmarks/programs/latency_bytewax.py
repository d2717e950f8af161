"""Lines of a socket and a count per key with Bytewax, without recovery, in two threads of one process: the results of
two processes would have to be brought together first."""

import socket
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import delays
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from cluster import run_in_threads
from measure import arguments

options = arguments(__doc__).parse_args()
PAUSE = timedelta(milliseconds=1)


class LinePartition(StatefulSourcePartition[str, None]):
    def __init__(self) -> None:
        self._connection = socket.create_connection(("127.0.0.1", delays.PORT))
        self._connection.setblocking(False)
        self._rest = b""

    def next_batch(self) -> Iterable[str]:
        try:
            data = self._connection.recv(1 << 16)
        except BlockingIOError:
            return []
        if not data:
            raise StopIteration
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode() for line in lines]

    def next_awake(self) -> datetime:
        return datetime.now(UTC) + PAUSE

    def snapshot(self) -> None:
        return None


class Lines(FixedPartitionedSource[str, None]):
    def list_parts(self) -> list[str]:
        return ["socket"]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> LinePartition:
        return LinePartition()


class NotePartition(StatelessSinkPartition[str]):
    def write_batch(self, items: list[str]) -> None:
        for item in items:
            FOUND.note(item)


class Note(DynamicSink[str]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> NotePartition:
        return NotePartition()


FOUND = delays.Delays()


def count(state: int | None, line: str) -> tuple[int, str]:
    counted = (state or 0) + 1
    return counted, f"{line},{counted}"


def dataflow() -> Dataflow:
    flow = Dataflow("latency")
    lines = op.input("lines", flow, Lines())
    counts = op.stateful_map("counts", op.key_on("keyed", lines, lambda line: line.split(",")[0]), count)
    op.output("note", op.map("values", counts, lambda pair: pair[1]), Note())
    return flow


run_in_threads(dataflow, options.parallelism)
