"""Lists this user's jobs on this machine: those that run, and those that have ended lately."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from firesteel.cli.showing import duration, moment, table
from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.engine.facade import JobDetails

__all__ = ["HELP", "configure", "run"]

HELP = "list jobs that run and jobs that have ended"

ENDED_SHOWN = 10


def configure(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-r", "--running", action="store_true", help="only jobs that run")
    which.add_argument(
        "-a", "--all", action="store_true", help=f"all jobs that are known, not only the last {ENDED_SHOWN} that ended"
    )


def run(options: argparse.Namespace) -> int:
    from firesteel.jobs import list_jobs

    running, ended = list_jobs()
    found: list[JobDetails] = []
    for job in running:
        try:
            found.append(job.status())
        except (FiresteelError, OSError):
            # It has ended in between.
            continue
    if not found:
        print("No jobs are running.")
    if not options.running:
        found += [job.status() for job in (ended if options.all else ended[:ENDED_SHOWN])]
    if found:
        print("\n".join(table(["job", "status", "started", "runtime", "records", "name"], _rows(found), right=(3, 4))))
    return 0


def _rows(jobs: list[JobDetails]) -> list[list[str]]:
    now = int(time.time() * 1000)
    return [
        [job.id, job.status.name, moment(job.started), duration(job.runtime(now)), f"{job.records:,}", job.name]
        for job in jobs
    ]
