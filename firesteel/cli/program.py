"""A user's program, run in this process as if ``python program.py`` had been typed."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from typing import NoReturn

from firesteel import engine
from firesteel.common.secret import is_secret_key
from firesteel.engine.submission import Submission
from firesteel.errors import ProgramError

__all__ = ["add_program", "run_program", "settings_text", "submission_of"]

SEPARATOR = "\x1f"
"""Stands between the settings that a program inherits through the environment."""


def add_program(parser: argparse.ArgumentParser) -> None:
    """The options of a command that runs a program, and the program with its arguments."""
    parser.add_argument("-p", "--parallelism", type=int, metavar="N", help="set parallelism.default")
    parser.add_argument("-m", "--master", help="set firesteel.master: local, spark://host:port or memory")
    parser.add_argument(
        "-D", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="set any other key"
    )
    parser.add_argument("program", help="the Python file to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets as its arguments")


def settings_text(options: argparse.Namespace) -> str:
    """The settings of a command line in the form in which FIRESTEEL_SETTINGS carries them.

    >>> options = argparse.Namespace(parallelism=2, master=None, settings=["firesteel.batch.interval=1 s"])
    >>> settings_text(options).split(SEPARATOR)
    ['firesteel.batch.interval=1 s', 'parallelism.default=2']
    """
    entries = list(options.settings)
    for entry in entries:
        key, equals, _ = entry.partition("=")
        if not key or not equals or SEPARATOR in entry:
            raise ProgramError(f"-D takes key=value, got {entry!r}.")
    if options.parallelism is not None:
        entries.append(f"parallelism.default={options.parallelism}")
    if options.master is not None:
        entries.append(f"firesteel.master={options.master}")
    return SEPARATOR.join(entries)


def _warn_of_secrets(settings: Sequence[str]) -> None:
    for key in [key for key, _, _ in (entry.partition("=") for entry in settings) if is_secret_key(key)]:
        print(
            f"firesteel: -D {key}=… can be read by every user of this machine while the command runs. Put it into "
            "config.yaml (see FIRESTEEL_CONF_DIR), in a file that only you can read.",
            file=sys.stderr,
        )


class _Submitted(BaseException):
    """Leaves a program once what it would run is known. No Exception: a program may catch those."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission


def submission_of(options: argparse.Namespace) -> Submission:
    """What a program hands to the engine at its first execute(). The program ends there."""
    original = engine.submit

    def leave(submission: Submission) -> NoReturn:
        raise _Submitted(submission)

    engine.submit = leave
    try:
        run_program(options)
    except _Submitted as left:
        return left.submission
    finally:
        engine.submit = original
    raise ProgramError(f"{options.program!r} ended without executing anything.")


def run_program(options: argparse.Namespace) -> None:
    """Runs the program as ``__main__``, with its own ``sys.argv`` and its folder first on ``sys.path``."""
    if not os.path.isfile(options.program):
        raise ProgramError(f"There is no file {options.program!r}.")
    _warn_of_secrets(options.settings)
    arguments: Sequence[str] = options.arguments
    before = sys.argv, list(sys.path), os.environ.get("FIRESTEEL_SETTINGS")
    # Settings that this process inherited stay; those of the command line come later and win.
    inherited = [before[2]] if before[2] else []
    os.environ["FIRESTEEL_SETTINGS"] = SEPARATOR.join([*inherited, settings_text(options)])
    sys.argv = [options.program, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(options.program))
    try:
        runpy.run_path(options.program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is None:
            del os.environ["FIRESTEEL_SETTINGS"]
        else:
            os.environ["FIRESTEEL_SETTINGS"] = before[2]
