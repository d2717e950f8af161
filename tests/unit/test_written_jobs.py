"""The files by which a job reaches the processes of its source."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, cast

import pytest

from firesteel.engine.settings import Settings
from firesteel.engine.spark import job_files
from firesteel.engine.spark.job_files import CoordinatorJob, write_job
from firesteel.errors import SetupError


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(job_files, "open_private", full)
    payload = cast("Any", "a job")
    with pytest.raises(SetupError, match=rf"{tmp_path} cannot be written \(No space left on device\).*TMPDIR"):
        write_job(str(tmp_path), payload, CoordinatorJob(payload, Settings(), "sources"))
