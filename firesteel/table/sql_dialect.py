"""Dialects of SQL."""

from __future__ import annotations

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """Flink's own dialect is the only one that is there."""

    DEFAULT = 0
    HIVE = 1
