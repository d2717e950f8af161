"""Runs a program with settings. What the program's code sets wins over them, and they over config.yaml."""

from __future__ import annotations

import argparse

from firesteel.cli.program import add_program, run_program

__all__ = ["HELP", "configure", "run"]

HELP = "run a program"

configure = add_program


def run(options: argparse.Namespace) -> int:
    run_program(options)
    return 0
