"""Processes that belong to a job: the JVM of this one, and whether others live."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

__all__ = ["is_alive", "jvm_process"]


def jvm_process() -> subprocess.Popen[Any] | None:
    """The JVM that this process has started; None where there is none. Loads nothing of Spark."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process: subprocess.Popen[Any] | None = getattr(getattr(context, "_gateway", None), "proc", None)
    return process


def is_alive(process: int) -> bool:
    """Whether there is such a process, be it another user's.

    >>> is_alive(os.getpid())
    True
    """
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
