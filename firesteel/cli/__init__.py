"""The ``firesteel`` command. Each command is a module of its own: HELP, ``configure`` and ``run``."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from firesteel.cli import cancel, plan, replay, run, savepoint, stop, version, warmup
from firesteel.cli import list as list_
from firesteel.errors import FULL_TRACE, FiresteelError

__all__ = ["main"]

COMMANDS: dict[str, Any] = {
    "run": run,
    "plan": plan,
    "list": list_,
    "savepoint": savepoint,
    "stop": stop,
    "cancel": cancel,
    "replay": replay,
    "warmup": warmup,
    "version": version,
}

INTERRUPTED = 130
"""What shells report for a command that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line. Returns what the process should exit with."""
    options = _parser().parse_args(arguments)
    if options.verbose:
        os.environ.setdefault(FULL_TRACE, "1")
    try:
        code: int = options.run(options)
        return code
    except FiresteelError as error:
        if options.verbose:
            traceback.print_exc()
        else:
            print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-v", "--verbose", action="store_true", help="show the whole traceback of an error")
    parser = argparse.ArgumentParser(
        prog="firesteel", description="Flink's programming model for Python, on Apache Spark."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, parents=[shared], help=command.HELP, description=command.__doc__)
        command.configure(own)
        own.set_defaults(run=command.run)
    return parser
