"""Whether a small micro-batch costs the same however large the state is.

A job gives each of N keys a value of 100 characters, in batches as large as they come. Then follow batches of 1,000
records that read and write the values of keys here and there; Spark tells how long each took. This is done with few
keys and with many.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import measure
from filling import ENDLESS, Numbers, Replace
from processes import Peaks

from firesteel.common import Configuration, JobClient, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine.spark.session import active_queries

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=10_000_000, help="the many keys")
parser.add_argument("--few", type=int, default=10_000, help="the few keys")
parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
parser.add_argument("--batches", type=int, default=40, help="small micro-batches that count")
parser.add_argument("--warm-up", type=int, default=20, help="small micro-batches before them")
parser.add_argument("--batch", type=int, default=1_000, help="records of a small micro-batch")
options = parser.parse_args()

LIMITS = {
    "state.backend.rocksdb.memory.fixed-per-slot": "512 mb",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "512",
}
"""What Python workers with the rocksdb backend, and RocksDB in the JVM, may take; these are the defaults."""

HASHMAP_BYTES_A_KEY = 1_000
"""A generous guess at what a key takes in the workers and on the way into the store."""


def submit(keys: int) -> JobClient:
    configuration = Configuration.from_dict({**LIMITS, "state.backend.type": options.backend})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    numbers = env.from_source(Numbers(keys, options.batch), WatermarkStrategy.no_watermarks(), "numbers")
    users = numbers.map(
        lambda n: (f"user-{n * 2654435761 % keys}", n), Types.TUPLE([Types.STRING(), Types.LONG()])
    ).key_by(lambda user: user[0], Types.STRING())
    users.process(Replace(), Types.LONG()).filter(lambda length: False).print()
    return env.execute_async(f"{keys} keys")


def progresses() -> list[dict[str, Any]]:
    """The last micro-batches of the one query that runs, those that really ran."""
    found = [progress for query in active_queries() for progress in query.recentProgress]
    return [progress for progress in found if "addBatch" in progress["durationMs"]]


def filled(progress: dict[str, Any], keys: int) -> bool:
    """Whether a micro-batch began with all keys filled."""
    start = json.loads(progress["sources"][0]["startOffset"] or "null")
    return start is not None and all(position >= keys for position in start["positions"].values())


def run(keys: int) -> dict[str, Any]:
    """The time to fill so many keys, the median duration of the small batches after it, and the memory."""
    peaks = Peaks()
    peaks.start()
    begun = time.perf_counter()
    client = submit(keys)
    ended = client.get_job_execution_result()
    small: dict[int, dict[str, float]] = {}
    fill_seconds = 0.0
    while len(small) < options.warm_up + options.batches:
        if ended.done():
            ended.result()
            raise RuntimeError("the job ended before there were enough batches")
        for progress in progresses():
            if filled(progress, keys):
                fill_seconds = fill_seconds or time.perf_counter() - begun
                small.setdefault(progress["batchId"], progress["durationMs"])
        time.sleep(0.3)
    memory = peaks.stop()
    client.cancel().result()
    durations = [small[batch] for batch in sorted(small)][options.warm_up :]
    totals = [duration["triggerExecution"] for duration in durations]
    measure.progress(f"{keys:,} keys: filled in {fill_seconds:.0f} s, then {statistics.median(totals):.0f} ms a batch")
    return {
        "keys": keys,
        "fill_seconds": fill_seconds,
        "batch_ms": statistics.median(totals),
        "batch_ms_lowest": min(totals),
        "batch_ms_highest": max(totals),
        "batches": len(totals),
        "memory": memory,
    }


def available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return ENDLESS


def main() -> None:
    needed = options.records * HASHMAP_BYTES_A_KEY
    if options.backend == "hashmap" and available_bytes() < needed:
        measure.report({"skipped": f"hashmap would need about {needed / 2**30:.0f} GiB of memory"})
        return
    run(options.few)  # only warms the process: a JVM compiles for its first minute, and that must not count for the few
    few, many = run(options.few), run(options.records)
    cost = many["batch_ms"] / few["batch_ms"]
    measure.report({"few_keys": few, "many_keys": many, "cost": cost, "limits": LIMITS})


main()
