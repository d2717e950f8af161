"""Cancels a running job, with a savepoint before if asked."""

from __future__ import annotations

import argparse

from firesteel.cli.targets import add_manager, find_job
from firesteel.common.job_status import JobStatus

__all__ = ["HELP", "configure", "run"]

HELP = "cancel a running job"

_CONFIGURED = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name")
    add_manager(parser)
    parser.add_argument(
        "-s",
        "--withSavepoint",
        dest="directory",
        metavar="DIR",
        nargs="?",
        const=_CONFIGURED,
        help="take a savepoint first, into DIR or where the job's configuration says",
    )


def run(options: argparse.Namespace) -> int:
    job = find_job(options)
    if options.directory is not None:
        print(f"Taking a savepoint of {job.name!r} ({job.id}) …", flush=True)
        print(job.savepoint(options.directory or None))
    details = job.cancel()
    if details.status is not JobStatus.CANCELED:
        # It came to its end by itself meanwhile.
        print(f"{job.name!r} ({job.id}) was over before it was cancelled: {details.status.name}.")
        return 0
    print(f"Cancelled {job.name!r} ({job.id}).")
    return 0
