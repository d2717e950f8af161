"""Which jobs a command means: those of the job manager, and those that somebody started by hand."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from firesteel.errors import JobManagerError, JobNotFoundError

if TYPE_CHECKING:
    from firesteel.cluster.client import ClusterClient
    from firesteel.engine.facade import JobFacade

__all__ = ["add_manager", "find_job", "is_manager", "manager", "needed_manager"]

_ONE = r"(?:https?://)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d+/?"
_HOST_AND_PORT = re.compile(f"{_ONE}(?:,{_ONE})*")


def is_manager(text: str) -> bool:
    """Whether it is the address of a job manager, or of several, and not a master of Spark.

    >>> [is_manager(one) for one in ("localhost:8081", "https://a.example.org:443", "spark://host:7077", "local[2]")]
    [True, True, False, False]
    >>> is_manager("jobs1:8081,jobs2:8081")
    True
    """
    return _HOST_AND_PORT.fullmatch(text) is not None


def add_manager(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--jobmanager",
        metavar="HOST:PORT[,…]",
        help="the job manager, or several of one cluster; by default the one that was started here, if it runs",
    )


def manager(options: argparse.Namespace) -> ClusterClient | None:
    """The job manager that was named, or the one that runs here; None where none does."""
    # Here, not at the top: --help need not load it.
    from firesteel.cluster.client import ClusterClient

    return ClusterClient.find(options.jobmanager)


def needed_manager(options: argparse.Namespace) -> ClusterClient:
    found = manager(options)
    if found is None:
        raise JobManagerError(
            "No job manager runs here. Start one with 'firesteel cluster start', or name one with -m."
        )
    return found


def find_job(options: argparse.Namespace) -> JobFacade:
    """The job that a command names: of the job manager, or one that was started by hand."""
    from firesteel import jobs

    client = manager(options)
    if client is None:
        return jobs.find_job(options.job)
    from firesteel.cluster.client import ClusterJob
    from firesteel.cluster.registry import ENDED

    known = [ClusterJob(client, one) for one in client.jobs()]
    running = [job for job in known if job.known["state"] not in ENDED]
    ended = sorted(
        (job for job in known if job.known["state"] in ENDED), key=lambda job: job.known["ended"] or 0, reverse=True
    )
    try:
        return jobs.chosen(options.job, running, ended)
    except JobNotFoundError as error:
        if options.jobmanager is not None:
            raise JobNotFoundError(f"The job manager knows no job {options.job!r}.") from None
        ids = {job.id for job in known}
        by_hand = [job for group in jobs.list_jobs(seconds=None) for job in group if job.id not in ids]
        try:
            return jobs.chosen(options.job, by_hand, [])
        except JobNotFoundError:
            raise error from None
