"""Runs SQL: at a prompt, from a file, or a statement of the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.cli.program import add_settings, settings_of, warn_of_secrets
from firesteel.errors import ProgramError

if TYPE_CHECKING:
    from firesteel.table.client.session import SqlSession
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["HELP", "configure", "run"]

HELP = "run SQL: at a prompt, or from a file with -f"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-i", "--init", metavar="FILE", help="run this file first, such as one that creates tables")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "-f", "--file", metavar="FILE", help="run this file (- is the standard input) instead of a prompt"
    )
    what.add_argument("-e", "--execute", metavar="SQL", help="run these statements instead of a prompt")
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    # Here, not at the top: the other commands need not load tables.
    from firesteel.common.configuration import Configuration
    from firesteel.table.client.session import SqlSession
    from firesteel.table.table_environment import TableEnvironment

    warn_of_secrets(options.settings)
    configuration = Configuration()
    for key, value in settings_of(options).items():
        configuration.set_string(key, value)
    env = TableEnvironment.create(configuration)
    if options.file is None and options.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        return _at_a_prompt(env, options)
    session = SqlSession(env)
    if not _initialized(session, options):
        return 0
    try:
        if options.execute is not None:
            session.run(options.execute)
        else:
            name = options.file or "-"
            session.run_file(_read(name), "standard input" if name == "-" else name)
    finally:
        # Also after an error: what was started before goes on.
        session.wait()
    return 0


def _at_a_prompt(env: TableEnvironment, options: argparse.Namespace) -> int:
    try:
        from firesteel.table.client.shell import SqlShell
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "prompt_toolkit":
            raise
        raise ProgramError(
            "The prompt needs prompt_toolkit: pip install 'firesteel[sql]'. A file does not: firesteel sql -f FILE."
        ) from None
    shell = SqlShell(env)
    return shell.run() if _initialized(shell.session, options) else 0


def _initialized(session: SqlSession, options: argparse.Namespace) -> bool:
    return options.init is None or session.run_file(_read(options.init), options.init)


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(f"{name} cannot be read: {error}") from None
