"""The engine: takes a submission and runs it, on Spark or (for tests) in memory.

Importing this package loads nothing: every helper process that Spark starts for a job imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firesteel.engine.job import EngineJob
    from firesteel.engine.job_run import Engine
    from firesteel.engine.settings import Settings
    from firesteel.engine.submission import Submission

__all__ = ["submit"]


def submit(submission: Submission) -> EngineJob:
    """Starts a job. Errors of the program and the machine are raised here, those of the run by its client."""
    from firesteel.engine.known_keys import warn_of_misspelt_keys
    from firesteel.engine.settings import Settings
    from firesteel.engine.spark.masters import check_name

    settings = Settings.of(submission.configuration)
    warn_of_misspelt_keys(submission.configuration)
    check_name(settings.master)
    from firesteel.engine.job import EngineJob

    return EngineJob(submission, _engine(settings)).start()


def _engine(settings: Settings) -> Engine:
    # Whoever runs in memory need not load pyspark.
    if settings.master == "memory":
        from firesteel.engine.memory import MemoryEngine

        return MemoryEngine()
    from firesteel.engine.spark.engine import SparkEngine

    return SparkEngine(settings)
