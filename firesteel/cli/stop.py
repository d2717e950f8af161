"""Stops a running job with a savepoint."""

from __future__ import annotations

import argparse

__all__ = ["HELP", "configure", "run"]

HELP = "stop a running job with a savepoint"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name")
    parser.add_argument("-p", "--savepointPath", dest="directory", metavar="DIR", help="where to put the savepoint")
    parser.add_argument("-d", "--drain", action="store_true", help="let all windows and timers fire before")


def run(options: argparse.Namespace) -> int:
    from firesteel.jobs import find_job

    job = find_job(options.job)
    print(f"Stopping {job.name!r} ({job.id}) with a savepoint …", flush=True)
    print(job.stop(options.directory, options.drain))
    return 0
