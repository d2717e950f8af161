"""Shows what a job is and where it is in its life, or its plan."""

from __future__ import annotations

import argparse
import json
import time

from firesteel.cli.showing import add_job, as_json, duration, moment
from firesteel.cli.targets import find_job

__all__ = ["HELP", "configure", "run"]

HELP = "show a job, running or ended"


def configure(parser: argparse.ArgumentParser) -> None:
    add_job(parser)
    parser.add_argument("--plan", action="store_true", help="show the job's plan, as 'firesteel plan' does")


def run(options: argparse.Namespace) -> int:
    from firesteel.engine.progress import describe_watermark

    job = find_job(options)
    if options.plan:
        print(json.dumps(job.plan().plan, indent=2))
        return 0
    details = job.status()
    if options.json:
        print(as_json(details))
        return 0
    where = details.where or details.engine
    print(f"{details.name} ({details.id})")
    lines = {
        "status": details.status.name,
        "started": moment(details.started),
        "ended": moment(details.ended),
        "runtime": duration(details.runtime(int(time.time() * 1000))),
        "restarts": f"{details.attempt:,}",
        "records": f"{details.records:,} in {details.batches:,} {'batch' if details.batches == 1 else 'batches'}",
        "watermark": describe_watermark(details.watermark),
        "mode": f"{details.mode}, parallelism {details.parallelism}",
        "runs on": f"{where}, process {details.pid}",
        "checkpoint": details.checkpoint_folder or "not kept",
    }
    if details.failure:
        lines["failure"] = details.failure
    for name, value in lines.items():
        print(f"  {name:11} {value}")
    return 0
