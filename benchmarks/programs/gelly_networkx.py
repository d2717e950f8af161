"""The same on networkx, in one process."""

import contextlib

import networkx as nx
import pyarrow.parquet as pq
from measure import arguments, report, slope
from rmat import rmat_file

ITERATIONS = 10

parser = arguments(__doc__)
parser.add_argument("--kind", choices=["pagerank", "components"], default="pagerank")
options = parser.parse_args()


def job(edges: int) -> None:
    table = pq.read_table(rmat_file(edges).removeprefix("file://"))
    pairs = zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True)
    if options.kind == "components":
        graph = nx.Graph()
        graph.add_edges_from(pairs)
        list(nx.connected_components(graph))
        return
    directed = nx.DiGraph()
    directed.add_edges_from(pairs)
    # It does its iterations and then complains that nothing converged, which was not asked for.
    with contextlib.suppress(nx.PowerIterationFailedConvergence):
        nx.pagerank(directed, max_iter=ITERATIONS, tol=0.0)


for size in (options.records // 5, options.records):
    rmat_file(max(1, size))
report(slope(job, options.records, options.repeats, options.seconds))
