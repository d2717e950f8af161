"""A job on Spark: its attempts, one after the other, and what becomes of its checkpoint."""

from __future__ import annotations

import logging
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.engine.job_run import JobRun
from firesteel.engine.payload import JobPayload
from firesteel.engine.spark.attempt import SharedByAttempts, begin_attempt
from firesteel.engine.spark.jvm_failure import MemoryFailures
from firesteel.engine.spark.savepoint_service import SparkSavepoints

__all__ = ["SparkJob"]

logger = logging.getLogger("firesteel")


class SparkJob(JobRun):
    """A job whose stages are Spark's, whose state is in Spark's state store, whose log is Spark's checkpoint."""

    def __init__(self, shared: SharedByAttempts, packed: tuple[JobPayload, JobPayload] | None) -> None:
        """``packed``: the job, pickled already (see :func:`.begin_attempt`)."""
        super().__init__(shared.context)
        self._shared = shared
        self._savepoints = SparkSavepoints(shared)
        self._memory_failures = MemoryFailures()
        self._attempt = begin_attempt(shared, packed)
        self.context.at_end.add(lambda: self._attempt.end())

    @property
    def where(self) -> str:
        spark = self._shared.session.sparkContext
        return f"{spark.master}, Spark's page at {spark.uiWebUrl}" if spark.uiWebUrl else str(spark.master)

    def run(self) -> None:
        self._attempt.run(self._savepoints)

    def interrupt(self) -> None:
        self._attempt.interrupt()

    def end_attempt(self) -> None:
        self._attempt.end()

    def begin_attempt(self) -> None:
        self._attempt = begin_attempt(self._shared)

    def restartable(self, error: BaseException) -> bool:
        if not (super().restartable(error) and self._spark_lives()):
            return False
        cause = getattr(error, "cause_class", None)
        return not self._memory_failures.again(cause, self._shared.folder.last_commit)

    def _spark_lives(self) -> bool:
        """A job cannot bring back the JVM that it runs in."""
        try:
            return not self._shared.session.sparkContext._jsc.sc().isStopped()
        except Exception:
            return False

    def update_statistics(self) -> None:
        self._attempt.update_statistics()

    def dispose(self, status: JobStatus) -> None:
        folder, checkpointing = self._shared.folder, self.context.checkpointing
        if checkpointing.folder is None or checkpointing.stays(status):
            return
        if self.context.commits.pending:
            logger.warning("job %r leaves results that are not committed; %s stays", self.context.name, folder.path)
            return
        folder.check_lock()
        folder.delete()
        if status is JobStatus.CANCELED:
            logger.warning(
                "job %r was cancelled, and its checkpoint in %s was deleted. RETAIN_ON_CANCELLATION would keep it.",
                self.context.name,
                folder.path,
            )

    @property
    def jvm(self) -> Any:
        return self._shared.session.sparkContext._jvm

    @property
    def kept_in(self) -> str | None:
        return self.context.checkpointing.folder
