"""Graphs on Spark with Flink Gelly's names: transformations, neighbourhoods, iterations, algorithms, generators."""

from firesteel.gelly.configuration import (
    Aggregator,
    DoubleMaxAggregator,
    DoubleMinAggregator,
    DoubleSumAggregator,
    IterationConfiguration,
    LongMaxAggregator,
    LongMinAggregator,
    LongSumAggregator,
)
from firesteel.gelly.elements import Edge, EdgeDirection, Triplet, Vertex
from firesteel.gelly.graph import Graph
from firesteel.gelly.gsa import ApplyFunction, GSAConfiguration, Neighbor, SumFunction
from firesteel.gelly.library.base import GraphAlgorithm
from firesteel.gelly.pregel import ComputeFunction, MessageCombiner, VertexCentricConfiguration
from firesteel.gelly.spargel import GatherFunction, ScatterFunction, ScatterGatherConfiguration

__all__ = [
    "Aggregator",
    "ApplyFunction",
    "ComputeFunction",
    "DoubleMaxAggregator",
    "DoubleMinAggregator",
    "DoubleSumAggregator",
    "Edge",
    "EdgeDirection",
    "GSAConfiguration",
    "GatherFunction",
    "Graph",
    "GraphAlgorithm",
    "IterationConfiguration",
    "LongMaxAggregator",
    "LongMinAggregator",
    "LongSumAggregator",
    "MessageCombiner",
    "Neighbor",
    "ScatterFunction",
    "ScatterGatherConfiguration",
    "SumFunction",
    "Triplet",
    "Vertex",
    "VertexCentricConfiguration",
]
