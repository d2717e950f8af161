"""The settings that Firesteel knows, to notice a key that was meant to be one of them.

Other keys stay allowed: programs keep settings of their own in a configuration, and those of Spark begin with
``spark.``.
"""

from __future__ import annotations

import difflib
import logging

from firesteel.common.configuration import Configuration
from firesteel.common.older_keys import OLDER_KEYS
from firesteel.common.table_keys import TABLE_KEYS

__all__ = ["KNOWN", "misspelt", "warn_of_misspelt_keys"]

logger = logging.getLogger("firesteel")

KNOWN = frozenset(
    (
        "execution.buffer-timeout.enabled",
        "execution.buffer-timeout.interval",
        "execution.checkpointing.aligned-checkpoint-timeout",
        "execution.checkpointing.dir",
        "execution.checkpointing.externalized-checkpoint-retention",
        "execution.checkpointing.interval",
        "execution.checkpointing.max-concurrent-checkpoints",
        "execution.checkpointing.min-pause",
        "execution.checkpointing.mode",
        "execution.checkpointing.num-retained",
        "execution.checkpointing.savepoint-dir",
        "execution.checkpointing.snapshot-compression",
        "execution.checkpointing.storage",
        "execution.checkpointing.timeout",
        "execution.checkpointing.tolerable-failed-checkpoints",
        "execution.checkpointing.unaligned.enabled",
        "execution.checkpointing.unaligned.forced",
        "execution.runtime-mode",
        "execution.state-recovery.ignore-unclaimed-state",
        "execution.state-recovery.path",
        "firesteel.batch.interval",
        "firesteel.batch.max-bytes",
        "firesteel.batch.max-records",
        "firesteel.batch.target-duration",
        "firesteel.checkpoint.dir",
        "firesteel.default-local-parallelism",
        "firesteel.errors.full-trace",
        "firesteel.frames.max-record",
        "firesteel.frames.memory",
        "firesteel.job.attempt",
        "firesteel.job.id",
        "firesteel.job.records",
        "firesteel.log.file",
        "firesteel.log.file.max-backups",
        "firesteel.log.file.max-size",
        "firesteel.log.format",
        "firesteel.log.level",
        "firesteel.master",
        "firesteel.metrics.busy-time",
        "firesteel.progress",
        "firesteel.spark.jit",
        "firesteel.spark.ui",
        "firesteel.table.column-functions",
        "firesteel.testing.crash-points",
        "metrics.latency.interval",
        "metrics.reporters",
        "metrics.scope.delimiter",
        "metrics.scope.jm-job",
        "metrics.scope.operator",
        "metrics.scope.task",
        "parallelism.default",
        "pipeline.auto-generate-uids",
        "pipeline.auto-watermark-interval",
        "pipeline.cached-files",
        "pipeline.closure-cleaner-level",
        "pipeline.force-avro",
        "pipeline.force-kryo",
        "pipeline.generic-types",
        "pipeline.global-job-parameters",
        "pipeline.max-parallelism",
        "pipeline.name",
        "pipeline.object-reuse",
        "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
        "pipeline.operator-chaining.enabled",
        "python.archives",
        "python.executable",
        "python.files",
        "python.requirements",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "restart-strategy.exponential-delay.backoff-multiplier",
        "restart-strategy.exponential-delay.initial-backoff",
        "restart-strategy.exponential-delay.jitter-factor",
        "restart-strategy.exponential-delay.max-backoff",
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        "restart-strategy.failure-rate.delay",
        "restart-strategy.failure-rate.failure-rate-interval",
        "restart-strategy.failure-rate.max-failures-per-interval",
        "restart-strategy.fixed-delay.attempts",
        "restart-strategy.fixed-delay.delay",
        "restart-strategy.type",
        "sql-gateway.session.idle-timeout",
        "sql-gateway.session.max-num",
        "state.backend.rocksdb.memory.fixed-per-slot",
        "state.backend.type",
        "state.changelog.enabled",
        "task.cancellation.interval",
        "task.cancellation.timeout",
        *TABLE_KEYS,
        *(older for keys in OLDER_KEYS.values() for older in keys),
    )
)

_OF_OTHERS = ("spark.", "metrics.reporter.", "firesteel.log.level.", "table.")
"""Keys with names of users, and those that others look at: tables know theirs."""
_CLOSE = 0.87
"""How alike two keys must be: two or three letters of a long one may differ."""


def misspelt(key: str) -> str | None:
    """The known key that an unknown one is nearly the same as, if there is one.

    >>> misspelt("firesteel.batch.max-record"), misspelt("firesteel.batch.max_records")
    ('firesteel.batch.max-records', 'firesteel.batch.max-records')
    >>> misspelt("shop.orders.limit"), misspelt("firesteel.master"), misspelt("spark.sql.shuffle.partitions")
    (None, None, None)
    """
    if key in KNOWN or key.startswith(_OF_OTHERS):
        return None
    found = difflib.get_close_matches(key.lower().replace("_", "-"), KNOWN, n=1, cutoff=_CLOSE)
    return found[0] if found else None


def warn_of_misspelt_keys(configuration: Configuration) -> None:
    """One line in the log for each key that has no effect and was hardly meant so."""
    for key in configuration.to_dict():
        meant = misspelt(key)
        if meant is not None:
            logger.warning("the setting %r is not known and has no effect. Did you mean %r?", key, meant)
