"""Runs a program with settings. What the program's code sets wins over them, and they over config.yaml."""

from __future__ import annotations

import argparse

from firesteel.cli.program import add_program, run_program

__all__ = ["HELP", "configure", "run"]

HELP = "run a program"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--fromSavepoint", dest="savepoint", metavar="PATH", help="begin with this savepoint")
    parser.add_argument(
        "-n",
        "--allowNonRestoredState",
        dest="lenient",
        action="store_true",
        help="leave behind state of operators that the program does not have",
    )
    add_program(parser)


def run(options: argparse.Namespace) -> int:
    if options.savepoint is not None:
        options.settings.append(f"execution.state-recovery.path={options.savepoint}")
    if options.lenient:
        options.settings.append("execution.state-recovery.ignore-unclaimed-state=true")
    run_program(options)
    return 0
