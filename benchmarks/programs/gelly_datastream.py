"""Graph algorithms on Firesteel: edges a second, of the whole run from a Parquet file to the last result."""

from measure import arguments, report, slope
from rmat import rmat_file

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.gelly import Graph
from firesteel.gelly.library import ConnectedComponents, PageRank
from firesteel.gelly.sessions import session_of

ITERATIONS = 10

parser = arguments(__doc__)
parser.add_argument("--engine", choices=["firesteel"], default="firesteel")
parser.add_argument("--kind", choices=["pagerank", "components"], default="pagerank")
options = parser.parse_args()

settings = {"firesteel.master": f"local[{options.parallelism}]", "spark.driver.memory": "4g"}
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
session = session_of(env)
algorithm = PageRank(iterations=ITERATIONS) if options.kind == "pagerank" else ConnectedComponents()


def job(edges: int) -> None:
    graph = Graph.from_data_frame(session.read.parquet(rmat_file(edges)))
    graph.run(algorithm).write.format("noop").mode("overwrite").save()


for size in (options.records // 5, options.records):
    rmat_file(max(1, size))
report(slope(job, options.records, options.repeats, options.seconds))
