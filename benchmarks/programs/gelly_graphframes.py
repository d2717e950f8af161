"""The same on GraphFrames: its JAR from Maven, or the file that GRAPHFRAMES_JAR names."""

import os
import tempfile

from graphframes import GraphFrame
from measure import arguments, report, slope
from pyspark.sql import SparkSession
from rmat import rmat_file

ITERATIONS = 10
PACKAGE = "io.graphframes:graphframes-spark4_2.13:0.12.2"

parser = arguments(__doc__)
parser.add_argument("--kind", choices=["pagerank", "components"], default="pagerank")
options = parser.parse_args()

builder = SparkSession.builder.master(f"local[{options.parallelism}]").config("spark.driver.memory", "4g")
builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
jar = os.environ.get("GRAPHFRAMES_JAR")
builder = builder.config("spark.jars", jar) if jar else builder.config("spark.jars.packages", PACKAGE)
# As many partitions as the other side has.
session = builder.config("spark.sql.shuffle.partitions", "16").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.sparkContext.setCheckpointDir(tempfile.mkdtemp(prefix="graphframes-"))


def job(edges: int) -> None:
    frame = session.read.parquet(rmat_file(edges))
    vertices = frame.select(frame["src"].alias("id")).union(frame.select("dst")).distinct()
    graph = GraphFrame(vertices, frame)
    if options.kind == "pagerank":
        result = graph.pageRank(resetProbability=0.15, maxIter=ITERATIONS).vertices
    else:
        result = graph.connectedComponents()
    result.write.format("noop").mode("overwrite").save()
    session.catalog.clearCache()


for size in (options.records // 5, options.records):
    rmat_file(max(1, size))
report(slope(job, options.records, options.repeats, options.seconds))
