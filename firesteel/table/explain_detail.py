"""What a plan may say besides its operators."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExplainDetail"]


class ExplainDetail(IntEnum):
    """Details of EXPLAIN."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
