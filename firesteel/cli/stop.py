"""Stops a running job with a savepoint."""

from __future__ import annotations

import argparse

from firesteel.cli.targets import add_manager, find_job

__all__ = ["HELP", "configure", "run"]

HELP = "stop a running job with a savepoint"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name")
    add_manager(parser)
    parser.add_argument("-p", "--savepointPath", dest="directory", metavar="DIR", help="where to put the savepoint")
    parser.add_argument("-d", "--drain", action="store_true", help="let all windows and timers fire before")


def run(options: argparse.Namespace) -> int:
    job = find_job(options)
    print(f"Stopping {job.name!r} ({job.id}) with a savepoint …", flush=True)
    print(job.stop(options.directory, options.drain))
    return 0
