"""Lists the jobs that run on this machine as this user."""

from __future__ import annotations

import argparse
import time

from firesteel.errors import FiresteelError

__all__ = ["HELP", "configure", "run"]

HELP = "list running jobs"


def configure(parser: argparse.ArgumentParser) -> None:
    """It has no options."""


def run(options: argparse.Namespace) -> int:
    from firesteel.engine.control import ask, running_jobs

    jobs = running_jobs()
    if not jobs:
        print("No jobs are running.")
        return 0
    print(f"{'job':34}{'status':12}{'since':21}{'records':>14}  name")
    for job in jobs:
        try:
            status = ask(job, seconds=5, command="status")
        except (FiresteelError, OSError):
            # It has ended in between.
            continue
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.started))
        print(f"{job.id:34}{status['status']:12}{since:21}{status['records']:>14,}  {job.name}")
    return 0
