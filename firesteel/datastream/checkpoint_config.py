"""The settings of checkpoints, as a program sets and reads them."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from firesteel.common.configuration import Configuration
from firesteel.common.time import Duration
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError, ProgramError, short_repr

__all__ = ["CheckpointConfig"]

INTERVAL = "execution.checkpointing.interval"
MODE = "execution.checkpointing.mode"
TIMEOUT = "execution.checkpointing.timeout"
MIN_PAUSE = "execution.checkpointing.min-pause"
MAX_CONCURRENT = "execution.checkpointing.max-concurrent-checkpoints"
TOLERABLE_FAILURES = "execution.checkpointing.tolerable-failed-checkpoints"
RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
UNALIGNED = "execution.checkpointing.unaligned.enabled"
FORCE_UNALIGNED = "execution.checkpointing.unaligned.forced"
ALIGNED_TIMEOUT = "execution.checkpointing.aligned-checkpoint-timeout"

SHORTEST_MS = 10
"""The least interval and the least timeout."""
ALL_FAILURES = 2**31 - 1

E = TypeVar("E", bound=Enum)


class CheckpointConfig:
    """How often a job is checkpointed, and what becomes of its checkpoints.

    It is a view of an environment's configuration: what is set here is set under Flink's keys, and what the
    configuration says can be read here.

    >>> config = CheckpointConfig(Configuration.from_dict({"execution.checkpointing.interval": "10 s"}))
    >>> config.is_checkpointing_enabled(), config.get_checkpoint_interval()
    (True, 10000)
    >>> config.set_checkpoint_interval(500).get_checkpoint_interval()
    500
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    # How often

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval was set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpoint_interval(self) -> int:
        """Milliseconds that a micro-batch may take under a backlog; -1 without checkpoints."""
        interval = self._configuration.get_duration_ms(INTERVAL, 0)
        return interval if interval > 0 else -1

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Sets how long a micro-batch may take under a backlog, in milliseconds, at least 10.

        A micro-batch ends with a checkpoint, and the next one begins as soon as there is input. Batches are not made
        shorter than a second for it.
        """
        return self._number(INTERVAL, "set_checkpoint_interval", checkpoint_interval, SHORTEST_MS)

    def get_min_pause_between_checkpoints(self) -> int:
        """What was set, or 0. It has no effect."""
        return self._configuration.get_duration_ms(MIN_PAUSE, 0)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Accepted for compatibility: it has no effect. ``firesteel.batch.interval`` makes micro-batches rarer."""
        return self._number(MIN_PAUSE, "set_min_pause_between_checkpoints", min_pause_between_checkpoints, 0)

    # What they promise

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE unless set otherwise; AT_LEAST_ONCE as long as there are no checkpoints."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return self._member(MODE, CheckpointingMode.EXACTLY_ONCE)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Accepted for compatibility: state changes exactly once in both modes."""
        return self._choose(MODE, "set_checkpointing_mode", checkpointing_mode, CheckpointingMode)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What becomes of checkpoints when the job is cancelled."""
        return self._member(RETENTION, ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS)

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Says what becomes of checkpoints when the job is cancelled."""
        return self._choose(
            RETENTION, "set_externalized_checkpoint_retention", retention_mode, ExternalizedCheckpointRetention
        )

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether a retention was chosen."""
        chosen = self.get_externalized_checkpoint_retention()
        return chosen is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    # Kept and given back: nothing here corresponds to them

    def get_checkpoint_timeout(self) -> int:
        """What was set in milliseconds; ten minutes by default."""
        return self._configuration.get_duration_ms(TIMEOUT, 600_000)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Accepted for compatibility: a micro-batch ends when its work is done, and repeating a slow one helps
        nobody."""
        return self._number(TIMEOUT, "set_checkpoint_timeout", checkpoint_timeout, SHORTEST_MS)

    def get_max_concurrent_checkpoints(self) -> int:
        """What was set; 1 by default."""
        return self._configuration.get_integer(MAX_CONCURRENT, 1)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Accepted for compatibility: one micro-batch runs at a time."""
        return self._number(MAX_CONCURRENT, "set_max_concurrent_checkpoints", max_concurrent_checkpoints, 1)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """What was set; 0 by default."""
        return self._configuration.get_integer(TOLERABLE_FAILURES, 0)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Accepted for compatibility: a micro-batch that failed is repeated, as the restart strategy allows."""
        return self._number(
            TOLERABLE_FAILURES, "set_tolerable_checkpoint_failure_number", tolerable_checkpoint_failure_number, 0
        )

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether no failure is tolerated."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Tolerates no failure, or any number of them."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else ALL_FAILURES)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether they were asked for, in a job of EXACTLY_ONCE mode."""
        wanted = self._configuration.get_boolean(UNALIGNED, False)
        return wanted and self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accepted for compatibility. At the end of a micro-batch no record is under way between operators, so no
        barrier waits for another, and there is nothing to align."""
        self._configuration.set_boolean(UNALIGNED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Takes :meth:`enable_unaligned_checkpoints` back."""
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        """What was set; False by default."""
        return self._configuration.get_boolean(FORCE_UNALIGNED, False)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accepted for compatibility, as :meth:`enable_unaligned_checkpoints` is."""
        self._configuration.set_boolean(FORCE_UNALIGNED, force_unaligned_checkpoints)
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """What was set; zero by default."""
        return Duration.of_millis(self._configuration.get_duration_ms(ALIGNED_TIMEOUT, 0))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Accepted for compatibility, as :meth:`enable_unaligned_checkpoints` is."""
        if not isinstance(alignment_timeout, Duration):
            raise ProgramError(
                f"set_aligned_checkpoint_timeout() takes a Duration, got {short_repr(alignment_timeout, 60)}."
            )
        self._configuration.set_string(ALIGNED_TIMEOUT, f"{alignment_timeout.to_millis()} ms")
        return self

    def get_alignment_timeout(self) -> Duration:
        """The older name of :meth:`get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """The older name of :meth:`set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    # Reading and writing

    def _number(self, key: str, method: str, value: int, least: int) -> CheckpointConfig:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ProgramError(f"{method}() takes a whole number of at least {least}, got {short_repr(value, 60)}.")
        self._configuration.set_integer(key, value)
        return self

    def _choose(self, key: str, method: str, value: Enum, kind: type[Enum]) -> CheckpointConfig:
        if not isinstance(value, kind):
            raise ProgramError(f"{method}() takes a {kind.__name__}, got {short_repr(value, 60)}.")
        self._configuration.set_string(key, value.name)
        return self

    def _member(self, key: str, default: E) -> E:
        text = self._configuration.get_string(key, default.name)
        try:
            return type(default)[text.upper().replace("-", "_")]
        except KeyError:
            names = ", ".join(member.name for member in type(default))
            raise ConfigurationError(f"Setting '{key}' should be one of {names}, got {text!r}.") from None
