"""Complex event processing: patterns of events in streams, with Flink's meaning."""

from firesteel.cep.errors import MalformedPatternError
from firesteel.cep.pattern import Pattern, WithinType
from firesteel.cep.skipping import AfterMatchSkipStrategy

__all__ = ["AfterMatchSkipStrategy", "MalformedPatternError", "Pattern", "WithinType"]
