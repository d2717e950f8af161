"""Complex event processing: patterns of events in streams, with Flink's meaning."""

from firesteel.cep.conditions import ConditionContext, IterativeCondition, SimpleCondition
from firesteel.cep.errors import MalformedPatternError, MissedSkipTargetError, TooManyPartialMatchesError
from firesteel.cep.functions import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    TimedOutPartialMatchHandler,
)
from firesteel.cep.pattern import Pattern, WithinType
from firesteel.cep.skipping import AfterMatchSkipStrategy
from firesteel.cep.stream import CEP, PatternStream

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "ConditionContext",
    "IterativeCondition",
    "MalformedPatternError",
    "MissedSkipTargetError",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "SimpleCondition",
    "TimedOutPartialMatchHandler",
    "TooManyPartialMatchesError",
    "WithinType",
]
