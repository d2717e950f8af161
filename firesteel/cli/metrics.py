"""Shows what each operator of a job has done, by subtask: records, watermarks, the metrics of its functions."""

from __future__ import annotations

import argparse
import json
from typing import Any

from firesteel.cli.showing import add_job, as_json, size, table
from firesteel.cli.targets import find_job

__all__ = ["HELP", "configure", "run"]

HELP = "show what each operator of a job has done"

configure = add_job


def run(options: argparse.Namespace) -> int:
    from firesteel.engine.progress import describe_watermark

    known = find_job(options).metrics()
    if options.json:
        print(as_json(known))
        return 0
    rows = []
    for operator in known.operators:
        total = [f"{operator.records_in:,}", f"{operator.records_out:,}"]
        pending = f"{operator.pending:,} records wait" if operator.pending else ""
        rows.append([operator.name, "", *total, "", "", size(operator.state_size), pending])
        for one in operator.subtasks:
            values = ", ".join(f"{name} {_text(value)}" for name, value in sorted(one.values.items()))
            counts = [f"{one.records_in:,}", f"{one.records_out:,}", f"{one.per_second.busy_ms / 10:.0f} %"]
            rows.append(["", str(one.subtask), *counts, describe_watermark(one.watermark), "", values])
    head = ["operator", "subtask", "records in", "records out", "busy", "watermark", "state", "metrics"]
    print("\n".join(table(head, rows, right=(1, 2, 3, 4, 6))))
    return 0


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else json.dumps(value)
