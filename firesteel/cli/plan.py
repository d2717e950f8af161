"""Runs a program up to its first execute() and shows the plan instead of starting the job: as a tree on a terminal, as
JSON elsewhere, or in the form that --format names."""

from __future__ import annotations

import argparse
import json
import sys

from firesteel.cli.drawing import as_mermaid, as_svg, as_tree
from firesteel.cli.program import add_program, submission_of
from firesteel.graph.plan import plan_json

__all__ = ["HELP", "configure", "run"]

HELP = "show a program's execution plan"

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
    add_program(parser)


def run(options: argparse.Namespace) -> int:
    plan = json.loads(plan_json(submission_of(options).graph))
    print(FORMS[options.format or ("tree" if sys.stdout.isatty() else "json")](plan))
    return 0
