"""How functions get to the workers: those of modules that only this process can import find them there, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cloudpickle
from pyspark.sql import DataFrame

from firesteel.engine.settings import Settings
from firesteel.engine.spark.session import import_paths
from firesteel.errors import SerializationError, in_a_line

__all__ = ["over_batches", "over_tables"]


class _Shipped:
    """A function that is unpickled when it is called: by then the worker looks for modules where this process does."""

    def __init__(self, function: Callable[..., Any], paths: tuple[str, ...]) -> None:
        self._function: Callable[..., Any] | None = function
        self._paths = paths

    def __getstate__(self) -> tuple[tuple[str, ...], bytes]:
        try:
            return self._paths, cloudpickle.dumps(self._function)
        except Exception as error:
            raise SerializationError(f"A function of a graph cannot travel to workers: {in_a_line(error)}") from None

    def __setstate__(self, state: tuple[tuple[str, ...], bytes]) -> None:
        self._paths, self._pickled = state
        self._function = None

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            sys.path.extend(path for path in self._paths if path not in sys.path)
            self._function = cloudpickle.loads(self._pickled)
        return self._function(*arguments)


def _shipped(function: Callable[..., Any], frame: DataFrame) -> _Shipped:
    return _Shipped(function, import_paths(Settings(master=frame.sparkSession.sparkContext.master)))


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
