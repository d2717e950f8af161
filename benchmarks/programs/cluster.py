"""Running a Bytewax dataflow on this machine: in two processes, or in two threads of one.

Bytewax's own ``-w 2`` gives two threads, which share Python's interpreter lock; two processes with one worker
each are what its documentation calls a cluster, here on loopback.
"""

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterable

from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

BATCH = 1_000
"""Records that a source hands over at once: large enough for the calls not to count."""


LISTENING = 0.3
"""Seconds until a process listens; the next one, calling too early, would wait for a whole second."""


class NumberPartition(StatelessSourcePartition[int]):
    def __init__(self, start: int, end: int) -> None:
        self.next, self.end = start, end

    def next_batch(self) -> Iterable[int]:
        if self.next >= self.end:
            raise StopIteration
        start, self.next = self.next, min(self.next + BATCH, self.end)
        return range(start, self.next)


class Numbers(DynamicSource[int]):
    """The numbers below ``records``, an equal share of them from each worker."""

    def __init__(self, records: int) -> None:
        self.records = records

    def build(self, step_id: str, worker_index: int, worker_count: int) -> NumberPartition:
        return NumberPartition(
            self.records * worker_index // worker_count, self.records * (worker_index + 1) // worker_count
        )


class DiscardPartition(StatelessSinkPartition[object]):
    def write_batch(self, items: list[object]) -> None:
        pass


class Discard(DynamicSink[object]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> DiscardPartition:
        return DiscardPartition()


def free_addresses(count: int) -> list[str]:
    """Addresses on loopback that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def run_in_threads(flow: Callable[[], Dataflow], workers: int) -> None:
    cluster_main(flow(), [], 0, worker_count_per_proc=workers)


def run_one(flow: Callable[[], Dataflow], addresses: list[str], index: int) -> None:
    cluster_main(flow(), addresses, index, worker_count_per_proc=1)


def run_in_processes(flow: Callable[[], Dataflow], workers: int) -> None:
    context = multiprocessing.get_context("fork")
    addresses = free_addresses(workers)
    processes = [context.Process(target=run_one, args=(flow, addresses, i)) for i in range(workers)]
    for index, process in enumerate(processes):
        if index:
            time.sleep(LISTENING)  # never after the last one: its work would hide in the sleep
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a Bytewax process ended with exit code {process.exitcode}")
