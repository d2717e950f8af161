"""Measuring a bounded job without its start-up: the part of it every program shares.

A job over ``n`` records takes ``start-up + n / rate``. Running it at two sizes and taking the slope between
them leaves the rate alone, whatever an engine's start-up costs. Only the standard library is used here, for
the programs run in environments of their own.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

from processes import processor_seconds
from sizes import SMALL

CLEAR = 0.25
"""The large run must take longer by at least this part of the small one, or the slope is mostly noise."""


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every program has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--records", type=int, default=5_000_000, help="records of the large run")
    parser.add_argument("--repeats", type=int, default=1, help="how often both sizes are run")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="how long the large run may take, else it gets fewer records")
    return parser


def progress(line: str) -> None:
    """A line that the runner shows while the program goes on."""
    print(f"# {line}", flush=True)


def seconds_of(job: Callable[[int], None], records: int) -> tuple[float, float]:
    """Of the clock, and of the processors: of this process and all that it started."""
    used, started = processor_seconds(), time.perf_counter()
    job(records)
    seconds, processors = time.perf_counter() - started, processor_seconds() - used
    progress(f"{records:,} records: {seconds:.1f} s, {processors:.1f} s of processors")
    return seconds, processors


def slope(job: Callable[[int], None], records: int, repeats: int, seconds: float | None = None) -> dict[str, object]:
    """Run ``job`` at both sizes, after one small run that only warms the process, and work out the rate."""
    small = max(1, records // SMALL)
    warm_up = seconds_of(job, small)[0]
    if seconds is not None and warm_up * SMALL > seconds:
        records = fewer(records, seconds_of(job, small)[0] * SMALL, seconds)
        small = max(1, records // SMALL)
    runs: dict[int, list[float]] = {small: [], records: []}
    used: dict[int, list[float]] = {small: [], records: []}
    for _ in range(repeats):
        for size, times in runs.items():
            taken, processors = seconds_of(job, size)
            times.append(taken)
            used[size].append(processors)
    more = statistics.median(used[records]) - statistics.median(used[small])
    return {
        "records": records,
        "rate": rate(records - small, statistics.median(runs[small]), statistics.median(runs[records])),
        "rates": [rate(records - small, *pair) for pair in zip(runs[small], runs[records], strict=True)],
        "processor_seconds_per_million": more / (records - small) * 1e6,
        "warm_up_seconds": warm_up,
        "small": {"records": small, "seconds": runs[small]},
        "large": {"records": records, "seconds": runs[records]},
    }


def fewer(records: int, expected: float, seconds: float) -> int:
    """As many records as fit into ``seconds``, if all would take ``expected``.

    That is too much rather than too little: the start of a job was counted five times.
    """
    if expected <= seconds:
        return records
    fitting = max(SMALL, int(records * seconds / expected))
    progress(f"only {fitting:,} records, to end in time")
    return fitting


def rate(records: int, small_seconds: float, large_seconds: float) -> float | None:
    """Records a second between the two sizes; None if start-up hides the difference."""
    taken = large_seconds - small_seconds
    return records / taken if taken > CLEAR * small_seconds else None


def report(result: dict[str, object]) -> None:
    """The one line that the runner reads."""
    print(json.dumps(result), flush=True)
