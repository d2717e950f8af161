"""Lists jobs: those of the job manager, and those that this user started on this machine by hand."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from firesteel.cli.showing import as_json, duration, moment, table
from firesteel.cli.targets import add_manager, manager
from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.cluster.client import ClusterClient
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
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    add_manager(parser)


def run(options: argparse.Namespace) -> int:
    client = manager(options)
    running, ended = ([], []) if client is None else _of_manager(client)
    if options.jobmanager is None:
        known = {job.id for job in (*running, *ended)}
        for found, more in zip((running, ended), _by_hand(), strict=True):
            found.extend(job for job in more if job.id not in known)
    if options.running:
        shown = running
    else:
        ended.sort(key=lambda job: job.ended or 0, reverse=True)
        shown = running + (ended if options.all else ended[:ENDED_SHOWN])
    if options.json:
        print(as_json(shown))
        return 0
    if not running:
        print("No jobs are running.")
    if shown:
        print("\n".join(table(["job", "status", "started", "runtime", "records", "name"], _rows(shown), right=(3, 4))))
    return 0


def _by_hand() -> tuple[list[JobDetails], list[JobDetails]]:
    """Jobs that were started without the job manager, and those of a job manager that is not there."""
    from firesteel.jobs import list_jobs

    running, ended = list_jobs()
    found = []
    for job in running:
        try:
            found.append(job.status())
        except (FiresteelError, OSError):
            # It has ended in between.
            continue
    return found, [job.status() for job in ended]


def _of_manager(client: ClusterClient) -> tuple[list[JobDetails], list[JobDetails]]:
    from firesteel.cluster.client import ClusterJob

    found = [ClusterJob(client, one).listed() for one in client.jobs()]
    return [job for job in found if job.ended is None], [job for job in found if job.ended is not None]


def _rows(jobs: list[JobDetails]) -> list[list[str]]:
    now = int(time.time() * 1000)
    return [
        [job.id, job.status.name, moment(job.started), duration(job.runtime(now)), f"{job.records:,}", job.name]
        for job in jobs
    ]
