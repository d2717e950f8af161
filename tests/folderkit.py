"""Folders for tests in which jobs may still be writing when the test is over."""

from __future__ import annotations

import tempfile

__all__ = ["runtime_folder"]


def runtime_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the descriptors of jobs, under a short name: the path of a socket must be short.

    A job in a thread of its own, which a test did not wait for, writes its record there at its end, also while the
    folder is being removed. What is left then is no failure of the test.
    """
    return tempfile.TemporaryDirectory(prefix="fs-", ignore_cleanup_errors=True)
