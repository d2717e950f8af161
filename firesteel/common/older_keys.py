"""The keys that Flink has renamed and still honours, of settings that Firesteel reads."""

from __future__ import annotations

__all__ = ["OLDER_KEYS"]

OLDER_KEYS: dict[str, tuple[str, ...]] = {
    "execution.buffer-timeout.interval": ("execution.buffer-timeout",),
    "execution.checkpointing.aligned-checkpoint-timeout": ("execution.checkpointing.alignment-timeout",),
    "execution.checkpointing.dir": ("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
    "execution.checkpointing.num-retained": ("state.checkpoints.num-retained",),
    "execution.checkpointing.savepoint-dir": ("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
    "execution.checkpointing.storage": ("state.checkpoint-storage",),
    "execution.checkpointing.unaligned.enabled": ("execution.checkpointing.unaligned",),
    "execution.state-recovery.ignore-unclaimed-state": ("execution.savepoint.ignore-unclaimed-state",),
    "execution.state-recovery.path": ("execution.savepoint.path",),
    "metrics.scope.jm-job": ("metrics.scope.jm.job",),
    "pipeline.operator-chaining.enabled": ("pipeline.operator-chaining",),
    "restart-strategy.type": ("restart-strategy",),
    "state.backend.type": ("state.backend",),
    "state.changelog.enabled": ("state.backend.changelog.enabled",),
    "table.exec.async-scalar.max-concurrent-operations": ("table.exec.async-scalar.buffer-capacity",),
    "task.cancellation.interval": ("task.cancellation-interval",),
}
"""By the key of today those of before. The newer one counts where both are set."""
