"""Spark as the driver sees it: its session, and options as it takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.secret import Secret

__all__ = ["is_frame", "revealed", "spark_session"]


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
