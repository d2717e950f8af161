"""How functions get to the workers: those of modules that only this process can import find them there, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from firesteel.engine.settings import Settings
from firesteel.engine.spark.session import import_paths
from firesteel.engine.spark.shipped import Shipped

__all__ = ["over_batches", "over_tables"]


def _shipped(function: Callable[..., Any], frame: DataFrame) -> Shipped:
    paths = import_paths(Settings(master=frame.sparkSession.sparkContext.master))
    return Shipped(function, paths, "A function of a graph")


def over_batches(frame: DataFrame, function: Callable[[Any], Any], schema: Any) -> DataFrame:
    """``mapInArrow``."""
    shipped = _shipped(function, frame)
    return frame.mapInArrow(lambda batches: shipped(batches), schema)


def over_tables(
    left: DataFrame, right: DataFrame, key: str, function: Callable[[Any, Any], Any], schema: Any
) -> DataFrame:
    """``applyInArrow`` on groups of two DataFrames."""
    shipped = _shipped(function, left)
    grouped = left.groupBy(key).cogroup(right.groupBy(key))
    return grouped.applyInArrow(lambda one, other: shipped(one, other), schema)
