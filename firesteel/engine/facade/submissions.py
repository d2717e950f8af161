"""What can be said of a job before it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from firesteel.engine.checkpointing import Checkpointing
from firesteel.engine.restarts import restarts_of
from firesteel.engine.savepoints.taking import SAVEPOINT_DIRECTORY
from firesteel.engine.submission import Submission
from firesteel.graph.plan import plan_json

__all__ = ["SubmissionDescription", "describe_submission"]


@dataclass(frozen=True)
class SubmissionDescription:
    """A program that is ready to run, as plain data."""

    name: str
    mode: str
    parallelism: int
    max_parallelism: int
    plan: dict[str, Any] = field(hash=False)
    configuration: dict[str, str] = field(hash=False, repr=False)
    """All settings in effect, secrets among them."""
    checkpointing: bool
    checkpoint_folder: str | None
    """Where the job keeps its checkpoint; None where it was not told to keep one."""
    savepoint_folder: str


def describe_submission(submission: Submission) -> SubmissionDescription:
    """Raises what would keep the job from being started because of its settings."""
    configuration = submission.configuration
    checkpointing = Checkpointing.of(configuration, submission.name, submission.batch_mode)
    restarts_of(configuration, checkpointing.enabled)
    return SubmissionDescription(
        name=submission.name,
        mode="BATCH" if submission.batch_mode else "STREAMING",
        parallelism=submission.graph.parallelism,
        max_parallelism=configuration.get_integer("pipeline.max-parallelism", -1),
        plan=json.loads(plan_json(submission.graph)),
        configuration={key: str(value) for key, value in configuration.to_dict().items()},
        checkpointing=checkpointing.enabled,
        checkpoint_folder=checkpointing.folder,
        savepoint_folder=configuration.get_string(SAVEPOINT_DIRECTORY, ""),
    )
