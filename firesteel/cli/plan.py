"""Runs a program up to its first execute() and shows the plan instead of starting the job: as a tree on a terminal, as
JSON elsewhere, or in the form that --format names. Shows that of a job, too, running or ended."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from firesteel.cli.drawing import as_mermaid, as_svg, as_tree
from firesteel.cli.program import add_program, submission_of
from firesteel.cli.targets import find_job, is_manager
from firesteel.errors import JobNotFoundError, ProgramError
from firesteel.graph.plan import plan_json

__all__ = ["HELP", "configure", "run"]

HELP = "show the execution plan of a program, or of a job"

FORMS = {
    "tree": as_tree,
    "json": lambda plan: json.dumps(plan, indent=2),
    "mermaid": as_mermaid,
    "svg": as_svg,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=sorted(FORMS), help="how; default: a tree on a terminal, JSON if the output goes elsewhere"
    )
    add_program(parser, "the Python file to run; or a job's id, the beginning of it, or its name")


def run(options: argparse.Namespace) -> int:
    print(FORMS[options.format or ("tree" if sys.stdout.isatty() else "json")](_plan(options)))
    return 0


def _plan(options: argparse.Namespace) -> dict[str, Any]:
    if os.path.exists(options.program) or options.arguments:
        submitted: dict[str, Any] = json.loads(plan_json(submission_of(options).graph))
        return submitted
    # What is no file may be a job: other commands take its name there.
    address = options.master if options.master is not None and is_manager(options.master) else None
    try:
        return find_job(argparse.Namespace(job=options.program, jobmanager=address)).plan().plan
    except JobNotFoundError as error:
        raise ProgramError(f"There is no file {options.program!r}. {error}") from None
