"""A count per key with Bytewax, without recovery."""

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from cluster import Discard, Numbers, run_in_processes, run_in_threads
from measure import arguments, report, slope

parser = arguments(__doc__)
parser.add_argument("--keys", type=int, default=10_000)
parser.add_argument("--threads", action="store_true", help="two threads of one process instead of two processes")
options = parser.parse_args()


def count(state: int | None, user: str) -> tuple[int, tuple[str, int]]:
    counted = (state or 0) + 1
    return counted, (user, counted)


def dataflow(records: int) -> Dataflow:
    keys = options.keys
    flow = Dataflow("keyed_count")
    numbers = op.input("numbers", flow, Numbers(records))
    users = op.map("users", numbers, lambda n: f"user-{n * 2654435761 % keys}")
    keyed = op.key_on("keyed", users, lambda user: user)
    counts = op.stateful_map("counts", keyed, count)
    op.output("discard", op.filter("nothing", counts, lambda pair: False), Discard())
    return flow


def job(records: int) -> None:
    run = run_in_threads if options.threads else run_in_processes
    run(lambda: dataflow(records), options.parallelism)


report(slope(job, options.records, options.repeats))
