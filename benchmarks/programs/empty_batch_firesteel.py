"""What a micro-batch costs that has next to nothing to do, part by part, with one and three keyed stages.

A socket sends a line now and then. Each makes a micro-batch of a single record, and Spark tells how long it
spent in which part of it. How much processor time that took, of which processes and threads, means something on a
machine that others use, too.
"""

import argparse
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

from measure import report
from processes import processor_ms

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.engine.spark.session import active_queries

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batches", type=int, default=10, help="micro-batches that count")
parser.add_argument("--warm-up", type=int, default=3, help="micro-batches before them")
parser.add_argument("--timeout", type=float, default=180, help="seconds to wait for them")
options = parser.parse_args()
PERIOD = 1.5


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


def serve(server: socket.socket, ended: threading.Event) -> None:
    """Send a line to the one who calls, again and again."""
    connection, _ = server.accept()
    with connection:
        number = 0
        while not ended.wait(PERIOD):
            connection.sendall(f"line {number}\n".encode())
            number += 1


def progresses(known: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """The micro-batches so far of the one query that runs, those that really ran. Spark has the last ones only."""
    for progress in (progress for query in active_queries() for progress in query.recentProgress):
        if "addBatch" in progress["durationMs"]:
            known[progress["batchId"]] = progress
    return [known[batch] for batch in sorted(known)]


def measure(stages: int) -> dict[str, float]:
    """The median milliseconds of every part of a micro-batch, and the milliseconds of processor time it took."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server, ended), daemon=True).start()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        stream = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
        for _ in range(stages):
            stream = stream.key_by(lambda line: line, Types.STRING()).process(CountPerKey(), Types.STRING())
        stream.filter(lambda line: False).print()
        client = env.execute_async(f"{stages} keyed stages")
        deadline = time.monotonic() + options.timeout
        before, counted = processor_ms(), 0
        known: dict[int, dict[str, Any]] = {}
        while len(found := progresses(known)) < options.warm_up + options.batches:
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {len(found)} micro-batches in {options.timeout} s")
            if len(found) <= options.warm_up:
                before, counted = processor_ms(), len(found)
            time.sleep(0.5)
        used, counted = processor_ms() - before, len(found) - counted
        client.cancel().result()
        ended.set()
    durations = [progress["durationMs"] for progress in found[options.warm_up :]]
    parts = sorted({part for duration in durations for part in duration})
    times = {part: statistics.median(duration.get(part, 0) for duration in durations) for part in parts}
    return {**times, **{f"processor: {kind}": total / counted for kind, total in sorted(used.items())}}


report({"one_keyed_stage_ms": measure(1), "three_keyed_stages_ms": measure(3)})
