"""The functions that Spark has with the same meaning. Every other one is computed by ours, see :mod:`.kernels`.

A function is native for certain types of its arguments; its translation gives None for the others. What is in here was
compared with the recorded calls of ``tests/table/function_matrix.json``, and is in every run of the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column

from firesteel.table.logical.expressions import Call

__all__ = ["NATIVE", "Native", "native"]

Native: TypeAlias = Callable[[Call, list[Column]], Column | None]
"""A call with its arguments as columns, or None where Spark has another meaning."""

NATIVE: dict[str, Native] = {}


def native(*names: str) -> Callable[[Native], Native]:
    """Registers a translation."""

    def add(function: Native) -> Native:
        for name in names:
            assert name not in NATIVE, f"{name} is registered twice."
            NATIVE[name] = function
        return function

    return add
