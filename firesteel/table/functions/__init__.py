"""Functions: the types of their results, and how they are computed."""

from firesteel.table.functions import (
    arithmetic,
    casts,
    collections,
    comparison,
    encoding,
    json_building,
    json_queries,
    logic,
    maths,
    network,
    patterns,
    printf,
    temporal,
    temporal_arithmetic,
    text,
    watermarks,
)
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator, evaluate
from firesteel.table.functions.registry import Function, find, names, near, register

__all__ = [
    "EvaluationContext",
    "Evaluator",
    "Function",
    "arithmetic",
    "casts",
    "collections",
    "comparison",
    "encoding",
    "evaluate",
    "find",
    "json_building",
    "json_queries",
    "logic",
    "maths",
    "names",
    "near",
    "network",
    "patterns",
    "printf",
    "register",
    "temporal",
    "temporal_arithmetic",
    "text",
    "watermarks",
]
