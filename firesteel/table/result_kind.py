"""What kind of result a statement has."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ResultKind"]


class ResultKind(IntEnum):
    """Whether a statement only succeeded, or has rows."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
