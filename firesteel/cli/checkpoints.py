"""Shows the checkpoints of a job, one for each micro-batch: the last ones, and how many there were."""

from __future__ import annotations

import argparse

from firesteel.cli.showing import add_job, as_json, duration, moment, size, table
from firesteel.cli.targets import find_job

__all__ = ["HELP", "configure", "run"]

HELP = "show a job's last checkpoints with duration and size"

configure = add_job


def run(options: argparse.Namespace) -> int:
    known = find_job(options).checkpoints()
    if options.json:
        print(as_json(known))
        return 0
    restores = f"{known.restored:,} {'restore' if known.restored == 1 else 'restores'}"
    print(f"{known.completed:,} completed, {known.failed:,} failed, {restores}")
    rows = [
        [
            str(one.checkpoint_id),
            "COMPLETED" if one.completed else "FAILED",
            moment(one.trigger_timestamp),
            duration(one.duration_ms),
            f"{one.records:,}",
            size(one.checkpointed_size),
            size(one.state_size),
            one.failure or "",
        ]
        for one in reversed(known.history)
    ]
    titles = ["id", "status", "began", "took", "records", "written", "state", ""]
    if rows:
        print("\n".join(table(titles, rows, right=(0, 3, 4, 5, 6))))
    return 0
