"""What is known of a job's checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CheckpointStatistics", "CheckpointSummary"]


@dataclass(frozen=True)
class CheckpointSummary:
    """One checkpoint: the end of one micro-batch."""

    checkpoint_id: int
    """The number of its micro-batch. One that failed is repeated under the same number."""
    completed: bool
    trigger_timestamp: int
    """When it began, in milliseconds since 1970."""
    duration_ms: int
    """From the start of the micro-batch until all of it was committed, or failed."""
    records: int = 0
    """How many records the sources gave to it."""
    checkpointed_size: int | None = None
    """Bytes of state that it wrote, where that is known."""
    state_size: int | None = None
    """Bytes of all state after it, where that is known."""
    operator_state_sizes: dict[str, int] = field(default_factory=dict, hash=False)
    """About how many bytes of keyed state each operator had when its micro-batch began, by the operator's name."""
    failure: str | None = None
    """Why it failed, in a line."""


@dataclass(frozen=True)
class CheckpointStatistics:
    """All checkpoints of a job so far.

    >>> done = CheckpointSummary(0, True, 1_000, 20)
    >>> failed = CheckpointSummary(1, False, 2_000, 5, failure="ValueError: bad")
    >>> statistics = CheckpointStatistics(completed=1, failed=1, restored=0, history=(done, failed))
    >>> statistics.latest_completed.checkpoint_id, statistics.latest_failed.failure
    (0, 'ValueError: bad')
    """

    completed: int = 0
    failed: int = 0
    restored: int = 0
    """How often the job went on from a checkpoint: after failures, and when it was started from a folder."""
    history: tuple[CheckpointSummary, ...] = ()
    """The last ones, oldest first."""
    under_way: CheckpointSummary | None = None
    """The one whose micro-batch has begun and has neither completed nor failed; its duration is so far."""

    @property
    def latest_completed(self) -> CheckpointSummary | None:
        """The checkpoint that a restart would go on from."""
        return next((one for one in reversed(self.history) if one.completed), None)

    @property
    def latest_failed(self) -> CheckpointSummary | None:
        """The last failure, if it is not too long ago."""
        return next((one for one in reversed(self.history) if not one.completed), None)
