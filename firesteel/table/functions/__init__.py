"""Functions: the types of their results, and how they are computed."""

from firesteel.table.functions import (
    arithmetic,
    casts,
    collections,
    comparison,
    encoding,
    logic,
    maths,
    patterns,
    temporal,
    temporal_arithmetic,
    text,
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
    "logic",
    "maths",
    "names",
    "near",
    "patterns",
    "register",
    "temporal",
    "temporal_arithmetic",
    "text",
]
