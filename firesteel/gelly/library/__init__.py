"""Algorithms on graphs, for ``graph.run()``: work on whole DataFrames and arrays, no Python function per edge."""

from firesteel.gelly.library.base import GraphAlgorithm
from firesteel.gelly.library.components import ConnectedComponents
from firesteel.gelly.library.labels import CommunityDetection, LabelPropagation
from firesteel.gelly.library.pagerank import HITS, PageRank
from firesteel.gelly.library.paths import SingleSourceShortestPaths
from firesteel.gelly.library.similarity import AdamicAdar, JaccardIndex
from firesteel.gelly.library.triangles import (
    AverageClusteringCoefficient,
    GlobalClusteringCoefficient,
    LocalClusteringCoefficient,
    TriangleCount,
    TriangleListing,
)

__all__ = [
    "HITS",
    "AdamicAdar",
    "AverageClusteringCoefficient",
    "CommunityDetection",
    "ConnectedComponents",
    "GlobalClusteringCoefficient",
    "GraphAlgorithm",
    "JaccardIndex",
    "LabelPropagation",
    "LocalClusteringCoefficient",
    "PageRank",
    "SingleSourceShortestPaths",
    "TriangleCount",
    "TriangleListing",
]
