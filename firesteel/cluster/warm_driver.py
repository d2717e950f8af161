"""A driver that was started before there is a job for it: ``python -m firesteel.cluster.warm_driver``.

It starts Spark, runs a small job of its own, and waits. The job manager has one end of a pair of sockets, this process
the other one. Each message is a JSON object in a line:

    job manager ◄── ready, or why it cannot be ── driver
    job manager ── what to do ──► driver
    job manager ◄── taken ── driver

1. Until it has said ``taken`` it does nothing for any job. Where the job manager did not get that, it kills all
   processes of this one, and starts another driver.
2. From then on it is a driver like any other (:func:`.driver.run_attempt`): the number of the attempt, the job's lock
   and the lease decide whether it may run. It outlives the job manager.
   An SQL session (:mod:`.sql_process`) goes on using the line, and does not.
3. If the job manager ends first, so does this process: its end of the line is closed then, however it ended.

A process is used for one job, or one session. What it has run before is no user's code.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from typing import Any

from firesteel.cluster.driver import Assignment, run_attempt
from firesteel.common.process_environment import SETTINGS, WARM_DRIVER, submitted_with, take
from firesteel.errors import SetupError, in_a_line

__all__ = ["main"]

LOOK_SECONDS = 5.0
"""How often it looks whether its JVM lives."""


def main() -> int:
    line = socket.socket(fileno=int(take(WARM_DRIVER)))
    # Not for the JVM: the job manager's side would not notice the end of this process.
    line.set_inheritable(False)
    try:
        # Here, not at the top: this is the process that loads Spark.
        from firesteel.engine.spark.warm_spark import is_alive
        from firesteel.engine.spark.warm_start import start_warm_spark

        with submitted_with(""):
            start_warm_spark()
    except Exception as error:
        _send_message(line, unsuited=isinstance(error, SetupError), failed=in_a_line(error))
        return 1
    _send_message(line, ready=True)
    request = _wait(line, is_alive)
    if request is None:
        return 0
    _send_message(line, taken=True)
    os.environ[SETTINGS] = request["settings"]
    if "session" in request:
        from firesteel.cluster.sql_process import run_session

        return run_session(line)
    line.close()
    return run_attempt(Assignment.of(request["assignment"]))


def _send_message(line: socket.socket, **message: Any) -> None:
    try:
        line.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        # The job manager has gone. It is noticed when this process waits, and does not matter to one with a job.
        return


def _wait(line: socket.socket, alive: Any) -> dict[str, Any] | None:
    """What to do; None if it is nothing any more."""
    watched = select.poll()
    watched.register(line, select.POLLIN)
    text = b""
    while not text.endswith(b"\n"):
        if not watched.poll(LOOK_SECONDS * 1000):
            if not alive():
                return None
            continue
        try:
            more = line.recv(1 << 16)
        except OSError:
            return None
        if not more:
            return None
        text += more
    request: dict[str, Any] = json.loads(text)
    return request


if __name__ == "__main__":
    sys.exit(main())
