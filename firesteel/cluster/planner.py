"""The process that finds out what a program would run: ``python -m firesteel.cluster.planner``. It loads Firesteel,
then reads from its standard input what to do, one JSON object in a line. The program runs up to its first execute().
The answer goes to a file, because what the program prints is its own."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from firesteel.cluster.driver import Assignment
from firesteel.cluster.masking import MASK
from firesteel.common.private_files import replace_file
from firesteel.common.process_environment import SETTINGS
from firesteel.common.secret import is_secret_key
from firesteel.engine.facade.submissions import describe_submission
from firesteel.errors import FiresteelError, in_a_line
from firesteel.programs import submission_of

__all__ = ["main"]


def main() -> int:
    request = _read_request()
    if request is None:
        return 0
    os.environ[SETTINGS] = request["settings"]
    task = Assignment.of(request["assignment"])
    code, answer = 0, {}
    try:
        answer = _planned(task)
    except BaseException as error:
        code = 1
        traceback.print_exc()
        ours = isinstance(error, FiresteelError)
        text = str(error) if ours else f"{type(error).__name__}: {in_a_line(error)}"
        if isinstance(error, SystemExit):
            text = f"The program ended with exit code {error.code!r} before it executed anything."
        answer = {"error": text, "trace": "".join(traceback.format_exception(error))[-20_000:]}
    replace_file(task.result, json.dumps(answer).encode())
    return code


def _read_request() -> dict[str, Any] | None:
    """What to do; None if whoever would say it has gone."""
    text = b""
    while not text.endswith(b"\n"):
        # Not by sys.stdin, which is the program's.
        more = os.read(0, 1 << 16)
        if not more:
            return None
        text += more
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    request: dict[str, Any] = json.loads(text)
    return request


def _planned(task: Assignment) -> dict[str, Any]:
    submission = submission_of(task.program, task.arguments)
    known = describe_submission(submission)
    values = {key: MASK if is_secret_key(key) else str(value) for key, value in known.configuration.items()}
    return {
        "name": known.name,
        "mode": known.mode,
        "parallelism": known.parallelism,
        "max_parallelism": known.max_parallelism,
        "plan": known.plan,
        "configuration": values,
        "restart": {key: value for key, value in known.configuration.items() if key.startswith("restart-strategy")},
        "checkpointing": known.checkpointing,
        "checkpoint_folder": known.checkpoint_folder,
        "savepoint_folder": known.savepoint_folder,
    }


if __name__ == "__main__":
    sys.exit(main())
