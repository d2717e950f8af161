"""Rows of the registry as JSON text: fields come and go with versions, and nobody asks for them by SQL."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from firesteel.cluster.registry import AttemptRow, JobRow, OperationRow

__all__ = ["attempt_of", "job_of", "operation_of", "text_of"]


def text_of(row: JobRow | AttemptRow | OperationRow) -> str:
    """A row without its record, which is kept beside it."""
    return json.dumps({name: value for name, value in vars(row).items() if name != "record"})


def job_of(text: str, record: str = "{}") -> JobRow:
    values = _known(JobRow, text)
    values["arguments"] = tuple(values["arguments"])
    return JobRow(**values, record=json.loads(record))


def attempt_of(text: str) -> AttemptRow:
    return AttemptRow(**_known(AttemptRow, text))


def operation_of(text: str) -> OperationRow:
    return OperationRow(**_known(OperationRow, text))


def _known(kind: type, text: str) -> dict[str, Any]:
    """What this version knows of a row."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in json.loads(text).items() if name in names}
