"""Submits a program to the job manager and prints the job's id, and nothing else: for scripts."""

from __future__ import annotations

import argparse

from firesteel.cli import submission
from firesteel.cli.program import add_program
from firesteel.cli.targets import needed_manager

__all__ = ["HELP", "configure", "run"]

HELP = "submit a program to the job manager, print the job's id"


def configure(parser: argparse.ArgumentParser) -> None:
    submission.add_savepoint(parser)
    parser.add_argument("--upload", action="store_true", help="store the program only, and print the program's id")
    add_program(parser)


def run(options: argparse.Namespace) -> int:
    submission.split_master(options)
    client = needed_manager(options)
    print(client.upload(options.program) if options.upload else submission.submitted(client, options))
    return 0
