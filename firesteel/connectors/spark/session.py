"""Spark as the driver sees it: its session, and its errors in a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.common.secret import Secret
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["as_connector_error", "is_frame", "revealed", "spark_session"]

_PERMANENT = ("AnalysisException", "ParseException", "IllegalArgumentException", "ClassNotFoundException")
"""Classes of errors that the same call gives again."""


def spark_session() -> Any:
    """The user's session in this process: the one that runs, or a new one where Spark does not run yet."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def is_frame(given: Any) -> bool:
    """Whether something is a DataFrame. Does not load PySpark: whoever has one has loaded it."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.") for kind in type(given).__mro__)


def revealed(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark takes them, with their secrets looked up now."""
    return {
        key: value.reveal()
        if isinstance(value, Secret)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
        for key, value in options.items()
    }


def as_connector_error(error: Exception, doing: str, secrets: Iterable[Any] = ()) -> ConnectorError:
    """What Spark raised, in a line: what was tried, what it said, and whether it may pass."""
    if isinstance(error, ConnectorError):
        return error
    said, kind = _reason(error)
    for secret in secrets:
        if isinstance(secret, Secret):
            said = secret.mask(said)
    return ConnectorError(f"Spark could not {doing}: {said}.", kind=kind)


def _reason(error: Exception) -> tuple[str, FailureKind]:
    """The first line of the innermost reason: a failed stage hides it below several others."""
    java = getattr(error, "java_exception", None)
    names, texts = [type(error).__name__], [str(error)]
    # Spark's own classes have the JVM's exception in a private field.
    cause = java if java is not None else getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            break
        names.append(str(cause.getClass().getSimpleName()))
        texts.append(str(cause.getMessage() or names[-1]))
        cause = cause.getCause()
    text = next(line.strip() for line in texts[-1].splitlines() or [names[-1]] if line.strip())
    kind = FailureKind.PERMANENT if any(name in _PERMANENT for name in names) else FailureKind.PASSING
    return text.rstrip(". ")[:500], kind
