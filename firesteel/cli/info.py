"""Shows a job with its history: program, settings, and how each of its drivers ended."""

from __future__ import annotations

import argparse
import json
import time

from firesteel.cli import status
from firesteel.cli.showing import duration, moment, table
from firesteel.cli.targets import add_manager, find_job

__all__ = ["HELP", "configure", "run"]

HELP = "show a job with its program, settings and drivers"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name; it may have ended")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_manager(parser)
    parser.set_defaults(plan=False)


def run(options: argparse.Namespace) -> int:
    # Loads the client, which --help need not wait for.
    from firesteel.cluster.client import ClusterJob

    job = find_job(options)
    if not isinstance(job, ClusterJob):
        # Started by hand: there is nothing more to tell.
        return status.run(options)
    known = job.refresh().known
    if options.json:
        print(json.dumps(known, indent=2))
        return 0
    code = status.run(options)
    print(f"  {'program':11} {known['program']} {' '.join(known['arguments'])}".rstrip())
    for key, value in sorted(known["settings"].items()):
        print(f"  {'setting':11} {key} = {value}")
    now = int(time.time() * 1000)
    rows = [
        [
            str(one["number"]),
            str(one["pid"]),
            moment(one["started"]),
            duration((one["ended"] or now) - one["started"]),
            one["outcome"] or "runs",
            one["message"] or "",
        ]
        for one in known["attempts"]
    ]
    if rows:
        print("\n".join(table(["driver", "process", "started", "ran", "outcome", ""], rows, right=(0, 1, 3))))
    return code
