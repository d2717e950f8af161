"""Runs a program up to its first execute() and prints the plan as JSON instead of starting the job."""

from __future__ import annotations

import argparse

from firesteel.cli.program import add_program, submission_of
from firesteel.graph.plan import plan_json

__all__ = ["HELP", "configure", "run"]

HELP = "show a program's execution plan"

configure = add_program


def run(options: argparse.Namespace) -> int:
    print(plan_json(submission_of(options).graph))
    return 0
