"""What stays known of a job that has ended: its last answers to all that can be asked without changing anything.

A record is written when a job ends. Of each engine the newest ones are kept; so the many short jobs of a test suite in
memory do not push out what ran on Spark. A job whose process was killed writes none: whoever finds its descriptor with
nobody behind it writes a short one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.common.private_files import replace_file
from firesteel.durable.versions import JOB_RECORD
from firesteel.engine.facade.answers import JobDetails, JobExceptions, JobFailure
from firesteel.engine.facade.commands import GetExceptions, GetStatus
from firesteel.engine.facade.encoding import decoded, encoded
from firesteel.engine.run_folder import JOB_ID, jobs_folder, own_jobs_folder, read_json
from firesteel.errors import SetupError

__all__ = ["ENGINES", "JobRecord", "answers_of", "job_records", "note_crash", "record_content", "write_record"]

logger = logging.getLogger("firesteel")

FOLDER = "finished"
ENGINES = ("spark", "memory")
KEPT = 50
"""So many of each engine."""
_FORMAT = "format"
"""Where a record says its version, beside the answers by their commands."""
LONGEST = 16 << 20
"""Bytes that are read of a record."""


@dataclass(frozen=True)
class JobRecord:
    """A job that has ended."""

    details: JobDetails
    answers: Mapping[str, Any]
    """By command what the job answered last, as JSON."""


def write_record(details: JobDetails, answers: Mapping[str, Any], replace: bool = True) -> None:
    """Keeps what is known of a job that has ended. A job does not fail because that is not possible."""
    try:
        folder = own_jobs_folder(FOLDER, details.engine)
        path = folder / f"{details.id}.json"
        if path.exists() and not replace:
            return
        replace_file(str(path), record_content(answers))
        _forget_old(folder)
    except (OSError, SetupError, AttributeError) as error:
        logger.debug("nothing is kept of job %r: %s", details.name, error)


def record_content(answers: Mapping[str, Any]) -> bytes:
    """A record as it stands in its file.

    >>> answers_of(json.loads(record_content({"status": {"id": "4f2a"}})))
    {'status': {'id': '4f2a'}}
    """
    return json.dumps({_FORMAT: JOB_RECORD.version, **answers}).encode()


def answers_of(content: Any) -> dict[str, Any]:
    """The answers in a record. Raises ValueError where it is not one that this Firesteel reads."""
    if not isinstance(content, dict):
        raise ValueError("it is not a job's")
    refusal = JOB_RECORD.refusal(content.get(_FORMAT, 1))
    if refusal is not None:
        raise ValueError(refusal)
    return {name: answer for name, answer in content.items() if name != _FORMAT}


def _forget_old(folder: Path) -> None:
    for path in _newest_first(folder)[KEPT:]:
        Path(path).unlink(missing_ok=True)


def _newest_first(folder: Path) -> list[str]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                # Another process may have removed it just now.
                with contextlib.suppress(OSError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [path for _, path in sorted(found, reverse=True)]


def job_records() -> list[JobRecord]:
    """All that is known of ended jobs, those that ended last first. What is none of ours is passed over.

    Raises SetupError where the folder is not this user's alone.
    """
    found = []
    for engine in ENGINES:
        if (jobs_folder() / FOLDER / engine).is_dir():
            for path in _newest_first(own_jobs_folder(FOLDER, engine)):
                try:
                    found.append(_read(Path(path)))
                except (OSError, ValueError) as error:
                    logger.debug("%s is not looked at: %s", path, error)
    return sorted(found, key=lambda record: record.details.ended or 0, reverse=True)


def _read(path: Path) -> JobRecord:
    answers = answers_of(read_json(path, LONGEST))
    details: JobDetails = decoded(JobDetails, answers.get(GetStatus.name))
    if not JOB_ID.fullmatch(details.id) or path.name != f"{details.id}.json":
        raise ValueError("it is another job's")
    return JobRecord(details, answers)


def note_crash(job_id: str, name: str, pid: int, started: float, engine: str) -> None:
    """Keeps that a job ended without a report. When that was is not known: it is found out now."""
    now = int(time.time() * 1000)
    message = (
        f"Process {pid}, which ran the job, is gone and left no report of how the job ended: it was killed, or the "
        "machine was. A checkpoint stays where it is, and the same program goes on from there."
    )
    details = JobDetails(
        id=job_id,
        name=name,
        status=JobStatus.FAILED,
        engine=engine,
        mode="",
        pid=pid,
        started=int(started * 1000),
        ended=now,
        failure=message,
    )
    failures = JobExceptions((JobFailure(timestamp=now, attempt=0, message=message),))
    answers = {GetStatus.name: encoded(details), GetExceptions.name: encoded(failures)}
    write_record(details, answers, replace=False)
