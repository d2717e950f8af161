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
        rows.append([operator.name, "", f"{operator.records_out:,}", "", size(operator.state_size), ""])
        for one in operator.subtasks:
            values = ", ".join(f"{name} {_text(value)}" for name, value in sorted(one.values.items()))
            rows.append(["", str(one.subtask), f"{one.records_out:,}", describe_watermark(one.watermark), "", values])
    print(
        "\n".join(table(["operator", "subtask", "records out", "watermark", "state", "metrics"], rows, right=(1, 2, 4)))
    )
    return 0


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else json.dumps(value)
