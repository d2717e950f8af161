"""The ``firesteel`` command. Each command is a module of its own: HELP, ``configure`` and ``run``."""

from __future__ import annotations

import argparse
import os
import select
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from firesteel import __version__
from firesteel.cli import (
    cancel,
    checkpoints,
    cluster,
    completion,
    exceptions,
    info,
    log_level,
    logs,
    metrics,
    plan,
    replay,
    run,
    savepoint,
    sql,
    state,
    status,
    stop,
    submit,
    version,
    warmup,
)
from firesteel.cli import list as list_
from firesteel.errors import FULL_TRACE, FiresteelError, JobManagerError, JobNotFoundError

__all__ = ["main"]

COMMANDS: dict[str, Any] = {
    "run": run,
    "submit": submit,
    "cluster": cluster,
    "sql": sql,
    "plan": plan,
    "list": list_,
    "status": status,
    "info": info,
    "metrics": metrics,
    "checkpoints": checkpoints,
    "exceptions": exceptions,
    "logs": logs,
    "log-level": log_level,
    "savepoint": savepoint,
    "state": state,
    "stop": stop,
    "cancel": cancel,
    "replay": replay,
    "warmup": warmup,
    "completion": completion,
    "version": version,
}

BROKEN_PIPE = 141
"""What shells report for a command whose reader has gone."""

NO_JOB = 3
"""There is no such job."""

NO_MANAGER = 4
"""No job manager answers, or it does not allow what was asked for."""

INTERRUPTED = 130
"""What shells report for a command that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line. Returns what the process should exit with."""
    options = _parser().parse_args(arguments)
    before = os.environ.get(FULL_TRACE)
    if options.verbose:
        os.environ[FULL_TRACE] = "1"
    try:
        code: int = options.run(options)
        # Now, so that a reader who has gone (| head) is noticed here and not when the interpreter ends.
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not _reader_has_gone():
            raise
        # Nobody reads any more. What is still buffered must not be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except FiresteelError as error:
        if options.verbose:
            traceback.print_exc()
        else:
            print(error, file=sys.stderr)
        return (
            NO_JOB if isinstance(error, JobNotFoundError) else NO_MANAGER if isinstance(error, JobManagerError) else 1
        )
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if options.verbose and before is None:
            os.environ.pop(FULL_TRACE, None)


def _reader_has_gone() -> bool:
    """Whether it was our own output that broke, and not something of the program's."""
    watched = select.poll()
    watched.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in watched.poll(0))


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-v", "--verbose", action="store_true", help="show the whole traceback of an error")
    parser = argparse.ArgumentParser(
        prog="firesteel", description="Flink's programming model for Python, on Apache Spark."
    )
    parser.add_argument("--version", action="version", version=f"Firesteel {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, parents=[shared], help=command.HELP, description=command.__doc__)
        command.configure(own)
        own.set_defaults(run=command.run)
    return parser
