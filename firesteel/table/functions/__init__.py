"""Functions: the types of their results, and how they are computed."""

from firesteel.table.functions import arithmetic, comparison, logic
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator, evaluate
from firesteel.table.functions.registry import Function, find, names, near, register

__all__ = [
    "EvaluationContext",
    "Evaluator",
    "Function",
    "arithmetic",
    "comparison",
    "evaluate",
    "find",
    "logic",
    "names",
    "near",
    "register",
]
