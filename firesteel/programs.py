"""A user's program, run in this process as if ``python program.py`` had been typed."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import NoReturn

from firesteel import engine
from firesteel.common.process_environment import submitted_with
from firesteel.engine.submission import Submission
from firesteel.errors import ProgramError

__all__ = ["run_program", "submission_of"]


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
    before = sys.argv, list(sys.path)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(program))
    try:
        # Settings that this process inherited stay; those of the command line come later and win.
        with submitted_with(settings):
            runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before
