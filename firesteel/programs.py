"""A user's program, run in this process as if ``python program.py`` had been typed."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import NoReturn

from firesteel import engine
from firesteel.engine.submission import Submission
from firesteel.errors import ProgramError

__all__ = ["SEPARATOR", "SETTINGS", "run_program", "submission_of"]

SEPARATOR = "\x1f"
"""Stands between the settings that a program inherits through the environment."""
SETTINGS = "FIRESTEEL_SETTINGS"
"""The environment variable with settings; they win over config.yaml."""


class _Submitted(BaseException):
    """Leaves a program once what it would run is known. No Exception: a program may catch those."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission


def submission_of(program: str, arguments: Sequence[str] = (), settings: str = "") -> Submission:
    """What a program hands to the engine at its first execute(). The program ends there."""
    original = engine.submit

    def leave(submission: Submission) -> NoReturn:
        raise _Submitted(submission)

    engine.submit = leave
    try:
        run_program(program, arguments, settings)
    except _Submitted as left:
        return left.submission
    finally:
        engine.submit = original
    raise ProgramError(f"{program!r} ended without executing anything.")


def run_program(program: str, arguments: Sequence[str] = (), settings: str = "") -> None:
    """Runs the program as ``__main__``, with its own ``sys.argv`` and its folder first on ``sys.path``. A program is a
    Python file, or a zip file or a folder with a ``__main__.py``."""
    if not os.path.isfile(program) and not os.path.isfile(os.path.join(program, "__main__.py")):
        raise ProgramError(f"There is no file {program!r}.")
    before = sys.argv, list(sys.path), os.environ.get(SETTINGS)
    # Settings that this process inherited stay; those of the command line come later and win.
    inherited = [before[2]] if before[2] else []
    os.environ[SETTINGS] = SEPARATOR.join([*inherited, settings])
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(program))
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is None:
            del os.environ[SETTINGS]
        else:
            os.environ[SETTINGS] = before[2]
