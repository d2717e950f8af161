"""Shows the failures of a job with operator and line, the last one first. -v shows whole traces."""

from __future__ import annotations

import argparse

from firesteel.cli.showing import add_job, as_json, moment
from firesteel.cli.targets import find_job

__all__ = ["HELP", "configure", "run"]

HELP = "show a job's failures"

configure = add_job


def run(options: argparse.Namespace) -> int:
    known = find_job(options).exceptions()
    if options.json:
        print(as_json(known))
        return 0
    if not known.failures:
        print("No failures.")
    for failure in known.failures:
        then = "then restarted" if failure.restarted else "not restarted"
        print(f"{moment(failure.timestamp)}  attempt {failure.attempt}, {then}")
        shown = failure.trace if options.verbose and failure.trace else failure.message
        print("\n".join(f"  {line}" for line in shown.splitlines()))
    if known.truncated:
        print("Earlier failures are forgotten.")
    return 0
