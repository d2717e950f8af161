"""What commands have in common that hand a program to the job manager."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from firesteel.cli.program import settings_text, warn_of_secrets
from firesteel.cli.targets import is_manager
from firesteel.common.process_environment import SEPARATOR

if TYPE_CHECKING:
    from firesteel.cluster.client import ClusterClient

__all__ = ["add_savepoint", "split_master", "submitted"]


def add_savepoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--fromSavepoint", dest="savepoint", metavar="PATH", help="begin with this savepoint")
    parser.add_argument(
        "-n",
        "--allowNonRestoredState",
        dest="lenient",
        action="store_true",
        help="leave behind state of operators that the program does not have",
    )


def split_master(options: argparse.Namespace) -> None:
    """``-m`` names a job manager (host:port), as in Flink, or a master of Spark."""
    options.jobmanager = None
    if options.master is not None and is_manager(options.master):
        options.jobmanager, options.master = options.master, None


def submitted(client: ClusterClient, options: argparse.Namespace) -> str:
    """Submits the program of a command line; returns the job's id."""
    warn_of_secrets(options.settings)
    entries = (entry.partition("=") for entry in settings_text(options).split(SEPARATOR) if entry)
    settings = {key: value for key, _, value in entries}
    return client.submit(options.program, options.arguments, settings, options.savepoint, options.lenient)
