"""Dialects of SQL."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["SqlDialect"]


class SqlDialect(IntEnum):
    """Flink's own dialect is the only one that is there."""

    DEFAULT = 0
    HIVE = 1
