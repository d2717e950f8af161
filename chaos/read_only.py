"""A folder that cannot be written for a while, as after a file system's error. For root on Linux only."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

__all__ = ["can_mount", "read_only"]


def read_only(folder: Path, seconds: float) -> None:
    """Lays the folder over itself without the right to write, and takes that away again. A plain remount would be
    refused as long as a job holds one of its files open, which a file system that failed does not ask about."""
    with ExitStack() as undo:
        _run("mount", "--bind", str(folder), str(folder))
        undo.callback(_run, "umount", "--lazy", str(folder))
        _run("mount", "-o", "remount,bind,ro", str(folder))
        time.sleep(seconds)


def can_mount(folder: Path) -> bool:
    """Whether this process may do that: it is tried."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    try:
        read_only(folder, 0)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
