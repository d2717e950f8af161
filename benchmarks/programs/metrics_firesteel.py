"""What measuring costs: the same job with it and without it, by turns in one process, in seconds of the processor.

Without: no time of operators, no reporter. With: the time of every operator, and a reporter with the interval that
reporters have by default. What tasks count per frame (records, bytes) is part of both: it has no switch.

The engine in memory runs the same tasks as Spark's workers do, and nothing else is in the way: what is measured is the
part that measuring could slow down. Seconds of the processor, because those of the clock belong to all programs of a
machine; the order changes with every pair. One pair says little on a machine that is shared: runs differ by a
twentieth. So there are many short ones, and beside the ratio stands what the stopwatch and the reports themselves took,
which is known to a hundredth.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from measure import progress, report

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.metrics.reporters import MetricReporter, ReporterSettings, Sample
from firesteel.runtime import task
from firesteel.runtime.stopwatch import Stopwatch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=400_000)
parser.add_argument("--repeats", type=int, default=41, help="pairs of runs")
options = parser.parse_args()

WITHOUT = {"firesteel.metrics.busy-time": "false"}
WITH = {"metrics.reporter.nowhere.factory.class": "__main__:Nowhere"}


class Nowhere(MetricReporter):
    """Makes the text of all metrics, as others do, and sends it nowhere."""

    reports = 0
    seconds = 0.0

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        self._collect = collect

    def report(self, samples: Sequence[Sample]) -> None:
        # Once more, because the first time was before this is called.
        began = time.thread_time()
        samples = self._collect()
        "\n".join(f"{one.identifier()} {one.value}" for one in samples)
        Nowhere.reports += 1
        Nowhere.seconds += time.thread_time() - began


def seconds(settings: dict[str, str]) -> float:
    """The worst case for measuring: operators that do next to nothing, chained."""
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"firesteel.master": "memory", **settings})
    )
    env.set_parallelism(1)
    source = NumberSequenceSource(0, options.records - 1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    for _ in range(3):
        stream = stream.map(lambda n: n + 1, Types.LONG())
    counted = stream.key_by(lambda n: n % 1000, Types.LONG()).reduce(lambda a, b: b)
    counted.filter(lambda n: False).print()
    began = time.process_time()
    env.execute("measured")
    return time.process_time() - began


class Counted(Stopwatch):
    """Counts how often the work passes on."""

    switches = 0

    def switch(self, place: int) -> int:
        Counted.switches += 1
        return super().switch(place)


def seconds_per_switch() -> float:
    watch, began = Stopwatch(2), time.process_time()
    for _ in range(100_000):
        watch.switch(1)
    return (time.process_time() - began) / 100_000


def direct_share(usual: float) -> float:
    """The part of a run that went into measuring: by how often the stopwatch was asked, and how long reports took."""
    task.Stopwatch = Counted  # type: ignore[misc]
    seconds(WITH)
    task.Stopwatch = Stopwatch  # type: ignore[misc]
    return (Counted.switches * seconds_per_switch() + Nowhere.seconds / Nowhere.reports) / usual


def main() -> None:
    seconds(WITHOUT)
    pairs = []
    for turn in range(options.repeats):
        first, second = (WITHOUT, WITH) if turn % 2 else (WITH, WITHOUT)
        found = [seconds(first), seconds(second)]
        without, with_ = found if turn % 2 else reversed(found)
        pairs.append((without, with_))
        progress(f"without {without:.2f} s, with {with_:.2f} s: {with_ / without - 1:+.2%}")
    usual = statistics.median(without for without, _ in pairs)
    report(
        {
            "records": options.records,
            "reports": Nowhere.reports,
            "without_seconds": [one for one, _ in pairs],
            "with_seconds": [one for _, one in pairs],
            "median_ratio": statistics.median(with_ / without for without, with_ in pairs),
            "ratio_of_medians": statistics.median(with_ for _, with_ in pairs) / usual,
            # The quickest runs are those that the machine disturbed least.
            "ratio_of_quickest": min(with_ for _, with_ in pairs) / min(without for without, _ in pairs),
            "direct_share": direct_share(usual),
        }
    )


if __name__ == "__main__":
    main()
