"""The engine: takes a submission and runs it, on Spark or (for tests) in memory."""

from __future__ import annotations

from firesteel.engine.job import EngineJob, Submission
from firesteel.engine.settings import Settings

__all__ = ["EngineJob", "Settings", "Submission", "submit"]


def submit(submission: Submission) -> EngineJob:
    """Starts a job. Errors of the program and the machine are raised here, those of the run by its client."""
    if Settings.of(submission.configuration).master == "memory":
        from firesteel.engine.memory import MemoryJob

        return MemoryJob(submission).start()
    from firesteel.engine.spark.job import SparkJob

    return SparkJob(submission).start()
