"""A pickled job, light enough to be imported by every helper process that Spark starts."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firesteel.engine.imports import IMPORTS, JobFiles

if TYPE_CHECKING:
    from firesteel.runtime.job_spec import JobSpec

__all__ = ["JobPayload", "LifelineAddress"]


@dataclass(frozen=True)
class LifelineAddress:
    """Where a job's driver listens, and the token by which it recognizes its own processes."""

    host: str
    port: int
    secret: str = field(repr=False)


@dataclass(frozen=True)
class JobPayload:
    """A job as :func:`firesteel.engine.pickling.pickle_job` wrote it, with what must be in place to read it."""

    job_id: str
    import_paths: tuple[str, ...]
    pickled: bytes
    lifeline: LifelineAddress | None = None
    """How a process that holds tasks of the job learns that it is over."""
    files: JobFiles | None = None
    """The Python files that the job brings."""
    log_levels: dict[str, str] = field(default_factory=dict)
    """By logger the level from which on functions log, where the job says so."""
    results: str | None = None
    """A folder in which tasks leave results for the driver that are too large to go through Spark."""

    def load(self) -> JobSpec:
        """The job, with functions of its own, in a process that works for it alone."""
        IMPORTS.switch(self.files)
        return self.load_here()

    def load_here(self) -> JobSpec:
        """The same where other jobs may run, too."""
        import cloudpickle

        for path in self.import_paths:
            if path not in sys.path:
                sys.path.append(path)
        classes, job = cloudpickle.loads(self.pickled)
        main = sys.modules["__main__"]
        for name, value in classes.items():
            if not hasattr(main, name):
                setattr(main, name, value)
        spec: JobSpec = job
        return spec
