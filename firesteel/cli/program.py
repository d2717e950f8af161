"""What commands that run a user's program have in common: its options, and the settings made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.common.process_environment import SEPARATOR
from firesteel.common.secret import is_secret_key
from firesteel.errors import ProgramError

if TYPE_CHECKING:
    from firesteel.engine.submission import Submission

__all__ = ["add_program", "add_settings", "run_program", "settings_of", "submission_of", "warn_of_secrets"]


def add_program(parser: argparse.ArgumentParser, program: str = "the Python file to run") -> None:
    """The options of a command that runs a program, and the program with its arguments."""
    add_settings(parser)
    parser.add_argument("program", help=program)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets as its arguments")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The options that are settings of jobs."""
    parser.add_argument("-p", "--parallelism", type=int, metavar="N", help="set parallelism.default")
    parser.add_argument("-m", "--master", help="set firesteel.master: local, spark://host:port or memory")
    parser.add_argument(
        "-D", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="set any other key"
    )


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


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """The settings of a command line by their keys."""
    entries = (entry.partition("=") for entry in settings_text(options).split(SEPARATOR) if entry)
    return {key: value for key, _, value in entries}


def warn_of_secrets(settings: Sequence[str]) -> None:
    for key in [key for key, _, _ in (entry.partition("=") for entry in settings) if is_secret_key(key)]:
        print(
            f"firesteel: -D {key}=… can be read by every user of this machine while the command runs. Put it into "
            "config.yaml (see FIRESTEEL_CONF_DIR), in a file that only you can read.",
            file=sys.stderr,
        )


def submission_of(options: argparse.Namespace) -> Submission:
    """What a program hands to the engine at its first execute(). The program ends there."""
    # Here and below, not at the top: whoever hands a program to the job manager need not wait until this is loaded.
    from firesteel import programs

    warn_of_secrets(options.settings)
    return programs.submission_of(options.program, options.arguments, settings_text(options))


def run_program(options: argparse.Namespace) -> None:
    """Runs the program as ``__main__``."""
    from firesteel import programs

    text = settings_text(options)
    warn_of_secrets(options.settings)
    programs.run_program(options.program, options.arguments, text)
