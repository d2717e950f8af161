"""Runs a program up to its first execute() and prints the plan as JSON instead of starting the job."""

from __future__ import annotations

import argparse
from typing import NoReturn

from firesteel import engine
from firesteel.cli.program import add_program, run_program
from firesteel.engine.submission import Submission
from firesteel.errors import ProgramError
from firesteel.graph.plan import plan_json

__all__ = ["HELP", "configure", "run"]

HELP = "show a program's execution plan"

configure = add_program


class _Planned(BaseException):
    """Leaves the program once its plan is known. No Exception: a program may catch those."""


def run(options: argparse.Namespace) -> int:
    original = engine.submit
    engine.submit = _print_plan
    try:
        run_program(options)
    except _Planned:
        return 0
    finally:
        engine.submit = original
    raise ProgramError(f"{options.program!r} ended without executing anything.")


def _print_plan(submission: Submission) -> NoReturn:
    print(plan_json(submission.graph))
    raise _Planned
