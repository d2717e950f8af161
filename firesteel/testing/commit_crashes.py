"""Failures inside the commit protocol of sinks, on purpose."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType

from firesteel.errors import ProgramError
from firesteel.runtime.crash_points import SETTING, CrashPoint

__all__ = ["CommitCrashes", "CrashPoint"]

ACTIONS = ("pass", "error", "kill")


class CommitCrashes:
    """Says at which points of the commit protocol a job fails.

    Each point has a list of actions, one per time the job comes by: ``pass``, ``error`` (an exception, after which the
    job may restart) or ``kill`` (the process is gone, as by ``kill -9``). Jobs get it by their configuration.

    >>> from firesteel.testing import CollectionSink, run_pipeline
    >>> sink = CollectionSink()
    >>> with CommitCrashes({CrashPoint.BEFORE_COMMIT: ["error"]}) as crashes:
    ...     run_pipeline(lambda env: env.from_collection([1, 2]).sink_to(sink) and None,
    ...                  config=crashes.config, restarts=1)
    ...     crashes.reached(CrashPoint.BEFORE_COMMIT)
    2
    >>> sink.values
    [1, 2]
    """

    known: tuple[str, ...] = tuple(CrashPoint)
    """The points that there are. Tests of a connector with points of its own have a subclass with more."""

    def __init__(self, points: Mapping[CrashPoint | str, Sequence[str]], folder: str | None = None) -> None:
        """``folder`` names where it is kept; without it that is a temporary folder, gone when the block is left."""
        self._temporary = None if folder is not None else tempfile.TemporaryDirectory(prefix="firesteel-crashes-")
        self.folder: str = folder or (self._temporary.name if self._temporary else "")
        for point, actions in points.items():
            wrong = [action for action in actions if action not in ACTIONS]
            if wrong or point not in self.known:
                raise ProgramError(
                    f"CommitCrashes takes lists of {', '.join(ACTIONS)} by point ({', '.join(self.known)}); got "
                    f"{point!r}: {list(actions)!r}."
                )
            with open(os.path.join(self.folder, point), "w", encoding="utf-8") as file:
                file.write("\n".join(actions))

    @property
    def config(self) -> dict[str, str]:
        """The setting by which a job knows of it."""
        return {SETTING: self.folder}

    def reached(self, point: CrashPoint | str) -> int:
        """How often jobs came by a point that has actions."""
        try:
            return os.path.getsize(os.path.join(self.folder, f"{point}.count"))
        except FileNotFoundError:
            return 0

    def __enter__(self) -> CommitCrashes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
