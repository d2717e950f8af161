"""map and filter with Bytewax, without recovery."""

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from cluster import Discard, Numbers, run_in_processes, run_in_threads
from measure import arguments, report, slope

parser = arguments(__doc__)
parser.add_argument("--threads", action="store_true", help="two threads of one process instead of two processes")
options = parser.parse_args()


def dataflow(records: int) -> Dataflow:
    flow = Dataflow("stateless")
    numbers = op.input("numbers", flow, Numbers(records))
    pairs = op.map("pairs", numbers, lambda n: (n, n * 3))
    even = op.filter("even", pairs, lambda pair: pair[1] % 2 == 0)
    op.output("discard", op.filter("nothing", even, lambda pair: False), Discard())
    return flow


def job(records: int) -> None:
    run = run_in_threads if options.threads else run_in_processes
    run(lambda: dataflow(records), options.parallelism)


report(slope(job, options.records, options.repeats))
