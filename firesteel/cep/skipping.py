"""What becomes of other matches when one was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firesteel.cep.errors import MalformedPatternError, MissedSkipTargetError

__all__ = ["AfterMatchSkipStrategy", "EventId"]

EventId = tuple[int, int]
"""An event's time and its number: the order of events."""


@dataclass(frozen=True)
class AfterMatchSkipStrategy:
    """Which partial and finished matches are dropped because of a match: all that began before a certain event of it.

    >>> AfterMatchSkipStrategy.skip_to_last("b").step
    'b'
    """

    kind: str
    step: str | None = None
    throws: bool = False

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Every possible match is emitted. The default."""
        return AfterMatchSkipStrategy("no_skip")

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Drops what began with the same event as the match."""
        return AfterMatchSkipStrategy("skip_to_next")

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Drops what began before the match was over."""
        return AfterMatchSkipStrategy("skip_past_last_event")

    @staticmethod
    def skip_to_first(step: str) -> AfterMatchSkipStrategy:
        """Drops what began before the first event of a step of the match."""
        return AfterMatchSkipStrategy("skip_to_first", step)

    @staticmethod
    def skip_to_last(step: str) -> AfterMatchSkipStrategy:
        """Drops what began before the last event of a step of the match."""
        return AfterMatchSkipStrategy("skip_to_last", step)

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """A match without the step that is to be skipped to is an error, and so is one that begins with it. Otherwise
        nothing is dropped then."""
        if self.step is None:
            raise MalformedPatternError(f"{self.kind}() has no step that a match could lack.")
        return replace(self, throws=True)

    @property
    def skips(self) -> bool:
        return self.kind != "no_skip"

    def bound(self, match: Mapping[str, Sequence[EventId]]) -> EventId | None:
        """What began before this event is dropped; None if nothing is."""
        if self.kind == "no_skip":
            return None
        if self.step is None:
            ids = [one for of_step in match.values() for one in of_step]
            chosen = min(ids) if self.kind == "skip_to_next" else max(ids)
            # The event itself is dropped, too: the next one is the first that may stay.
            return (chosen[0], chosen[1] + 1)
        found = match.get(self.step)
        if not found:
            if self.throws:
                raise MissedSkipTargetError(
                    f"A match has no event of step {self.step!r}, which {self.kind}() skips to. Its steps are: "
                    f"{', '.join(match)}."
                )
            return None
        bound = (min if self.kind == "skip_to_first" else max)(found)
        if self.throws and bound == min(one for of_step in match.values() for one in of_step):
            raise MissedSkipTargetError(
                f"{self.kind}({self.step!r}) skips to the event that the match begins with: the same match would be "
                "found for ever. Skip to a later step, or leave out throw_exception_on_miss()."
            )
        return bound
