"""map and filter, for PyFlink and for Firesteel: one program, two imports."""

import importlib

from measure import arguments, report, slope

parser = arguments(__doc__)
parser.add_argument("--engine", choices=["firesteel", "pyflink"], default="firesteel")
options = parser.parse_args()

common = importlib.import_module(f"{options.engine}.common")
datastream = importlib.import_module(f"{options.engine}.datastream")
number_seq = importlib.import_module(f"{options.engine}.datastream.connectors.number_seq")

Types = common.Types


def job(records: int) -> None:
    configuration = common.Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "100000")
    env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(options.parallelism)
    numbers = env.from_source(
        number_seq.NumberSequenceSource(0, records - 1),
        common.WatermarkStrategy.no_watermarks(),
        "numbers",
    )
    pairs = numbers.map(lambda n: (n, n * 3), Types.TUPLE([Types.LONG(), Types.LONG()]))
    even = pairs.filter(lambda pair: pair[1] % 2 == 0)
    even.filter(lambda pair: False).print()
    env.execute(f"stateless, {records} records")


report(slope(job, options.records, options.repeats))
