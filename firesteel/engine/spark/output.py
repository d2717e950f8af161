"""What Python workers print: shown on the driver's stderr, without PySpark's own chatter.

The JVM copies its Python processes' output to its stderr. PySpark's planning processes write several lines there for
every stage of every job, so the JVM's stderr goes to a file, and from there all other lines are passed on.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import time
from typing import Any

from firesteel.engine.progress import beside_progress
from firesteel.engine.scratch import scratch_folder

__all__ = ["forward_worker_output"]

_CHATTER = re.compile(
    r"^(Starting )?Streaming TransformWithStateInPandas Python worker|^\s*$|^WARNING: Using incubator modules"
)


def forward_worker_output(jvm: Any) -> None:
    """Starts passing on. It goes on for the life of the process."""
    handle, path = tempfile.mkstemp(prefix="output-", dir=scratch_folder())
    os.close(handle)
    stream = jvm.java.io.FileOutputStream(path, True)
    jvm.java.lang.System.setErr(jvm.java.io.PrintStream(stream, True))
    threading.Thread(target=_follow, args=(path,), name="spark-output", daemon=True).start()


def _follow(path: str) -> None:
    with open(path, encoding="utf-8", errors="replace") as file:
        # Gone from the folder at once; the file itself lives as long as someone has it open.
        os.unlink(path)
        line = ""
        pause = 0.1
        while True:
            text = file.readline()
            if not text:
                time.sleep(pause)
                # The longer nothing is written, the rarer are the looks.
                pause = min(pause + 0.01, 0.5)
                continue
            pause = 0.1
            line += text
            if line.endswith("\n"):
                if not _CHATTER.match(line):
                    with beside_progress():
                        sys.stderr.write(line)
                        sys.stderr.flush()
                line = ""
