"""Shows the log of a job that the job manager runs: what its driver and its functions print."""

from __future__ import annotations

import argparse
import json
import sys

from firesteel.cli.showing import moment, size, table
from firesteel.cli.targets import add_manager, find_job, needed_manager
from firesteel.errors import JobNotFoundError

__all__ = ["HELP", "configure", "run"]

HELP = "show a job's log"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name; it may have ended")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    parser.add_argument("-n", "--lines", type=int, metavar="N", help="only the last N lines")
    parser.add_argument("--driver", type=int, metavar="N", help="that of the N-th driver; default: the last one")
    parser.add_argument("--list", action="store_true", help="list the files instead")
    parser.add_argument("--json", action="store_true", help="with --list: as JSON")
    add_manager(parser)


def run(options: argparse.Namespace) -> int:
    client = needed_manager(options)
    job = find_job(options)
    found = client.logs(job.id)
    if options.list:
        if options.json:
            print(json.dumps(found, indent=2))
            return 0
        rows = [[one["name"], size(one["size"]), moment(one["mtime"])] for one in found]
        print("\n".join(table(["file", "size", "changed"], rows, right=(1,))))
        return 0
    names = [one["name"] for one in found if one["name"].endswith(".log")]
    if options.driver is not None:
        names = [name for name in names if name == f"attempt-{options.driver}.log"]
    if not names:
        raise JobNotFoundError(f"Job {job.name!r} ({job.id}) has no such log.")
    name = max(names, key=lambda one: int(one.removeprefix("attempt-").removesuffix(".log")))
    start = 0
    if options.lines is not None:
        text, headers = client.text(f"/firesteel/v1/manager/jobs/{job.id}/logs/{name}", lines=max(1, options.lines))
        sys.stdout.write(text)
        start = int({key.lower(): value for key, value in headers.items()}["firesteel-log-end"])
        if not options.follow:
            return 0
    for text in client.follow_log(job.id, name, start, options.follow):
        sys.stdout.write(text)
        sys.stdout.flush()
    return 0
