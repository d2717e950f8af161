"""A count per key in ValueState, for PyFlink and for Firesteel: one program, two imports."""

import importlib
from collections.abc import Iterator
from typing import Any

from measure import arguments, report, slope

parser = arguments(__doc__)
parser.add_argument("--engine", choices=["firesteel", "pyflink"], default="firesteel")
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()

common = importlib.import_module(f"{options.engine}.common")
datastream = importlib.import_module(f"{options.engine}.datastream")
number_seq = importlib.import_module(f"{options.engine}.datastream.connectors.number_seq")
state = importlib.import_module(f"{options.engine}.datastream.state")

Types = common.Types
KEYS = options.keys


class CountPerKey(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Yields (key, how many records of the key so far)."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(state.ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def job(records: int) -> None:
    configuration = common.Configuration()
    configuration.set_string("python.state.cache-size", "20000")
    configuration.set_string("python.fn-execution.bundle.size", "100000")
    env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(options.parallelism)
    numbers = env.from_source(
        number_seq.NumberSequenceSource(0, records - 1),
        common.WatermarkStrategy.no_watermarks(),
        "numbers",
    )
    users = numbers.map(lambda n: f"user-{n * 2654435761 % KEYS}", Types.STRING())
    counts = users.key_by(lambda user: user, Types.STRING()).process(
        CountPerKey(), Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    counts.filter(lambda pair: False).print()
    env.execute(f"keyed count, {records} records")


report(slope(job, options.records, options.repeats))
