"""What the programs for PyFlink and for Firesteel share: the modules of the engine, its settings, source and sink."""

import argparse
import importlib
from collections.abc import Callable
from typing import Any

import measure
from processes import Peaks


def arguments(description: str) -> argparse.ArgumentParser:
    parser = measure.arguments(description)
    parser.add_argument("--engine", choices=["firesteel", "pyflink"], default="firesteel")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap", help="of Firesteel")
    parser.add_argument("--show", action="store_true", help="run once and print the results instead of measuring")
    return parser


class Engine:
    """The modules of the engine under test, by PyFlink's names, and how a job on it begins and ends.

    What a function uses must not be reached through this object: workers cannot import this module.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.common = self.module("common")
        self.datastream = self.module("datastream")
        self.state = self.module("datastream.state")
        self.window = self.module("datastream.window")

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.options.engine}.{name}")

    def environment(self) -> Any:
        """An environment with PyFlink's settings tuned; Firesteel accepts and ignores them."""
        configuration = self.common.Configuration()
        configuration.set_string("python.state.cache-size", "20000")
        configuration.set_string("python.fn-execution.bundle.size", "100000")
        if self.options.engine == "firesteel":
            configuration.set_string("state.backend.type", self.options.backend)
        env = self.datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(self.options.parallelism)
        return env

    def numbers(self, env: Any, records: int) -> Any:
        """The numbers below ``records``."""
        source = self.module("datastream.connectors.number_seq").NumberSequenceSource(0, max(1, records) - 1)
        return env.from_source(source, self.common.WatermarkStrategy.no_watermarks(), "numbers")

    def numbers_in_order(self, env: Any, records: int) -> Any:
        """The same for event time. PyFlink would read the two halves of the numbers side by side, so that one half of
        the events is far ahead of the watermark; with one reader they come in order, dealt out to all subtasks."""
        return self.numbers(env, records).set_parallelism(1)

    def discard(self, stream: Any) -> None:
        """Each record reaches a Python function at the very end, and nothing is printed."""
        kept = stream if self.options.show else stream.filter(lambda record: False)
        kept.print()

    def measure(self, job: Callable[[int], None]) -> None:
        measure_job(job, self.options)


def measure_job(job: Callable[[int], None], options: argparse.Namespace) -> None:
    """Print the rate of a job, and the most memory that its processes had; or only what the job shows."""
    if options.show:
        job(options.records)
        return
    peaks = Peaks()
    peaks.start()
    result = measure.slope(job, options.records, options.repeats, options.seconds)
    measure.report(result | {"memory": peaks.stop()})
