"""What goes wrong with patterns."""

from __future__ import annotations

from firesteel.errors import FailureKind, ProgramError

__all__ = ["MalformedPatternError", "MissedSkipTargetError", "TooManyPartialMatchesError"]


class MalformedPatternError(ProgramError):
    """A pattern that nothing could be matched with, or whose meaning would be unclear."""

    kind = FailureKind.PERMANENT


class MissedSkipTargetError(ProgramError):
    """A match lacks the step that the skip strategy skips to."""

    kind = FailureKind.PERMANENT


class TooManyPartialMatchesError(ProgramError):
    """A key has more partial matches than it may have."""

    kind = FailureKind.PERMANENT
