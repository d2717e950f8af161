"""A pickled job, light enough to be imported by every helper process that Spark starts."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firesteel.runtime.task import JobSpec

__all__ = ["JobPayload"]


@dataclass(frozen=True)
class JobPayload:
    """A job as :func:`firesteel.engine.pickling.pickle_job` wrote it, with what must be in place to read it."""

    job_id: str
    import_paths: tuple[str, ...]
    pickled: bytes

    def load(self) -> JobSpec:
        """The job, with functions of its own."""
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
