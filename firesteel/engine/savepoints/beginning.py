"""The savepoint that a job begins with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.common.configuration import Configuration
from firesteel.engine.job_context import JobContext
from firesteel.errors import SavepointError

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore

__all__ = ["find_restore", "restore_path"]

logger = logging.getLogger("firesteel")

RESTORE_PATH = "execution.state-recovery.path"
IGNORE_UNCLAIMED = "execution.state-recovery.ignore-unclaimed-state"


def restore_path(configuration: Configuration) -> str:
    """The savepoint or checkpoint that the configuration tells to begin with; empty if there is none."""
    return configuration.get_string(RESTORE_PATH, "")


def find_restore(context: JobContext, readable: Callable[[str], str]) -> Restore | None:
    """The savepoint that the configuration names, checked against the program. ``readable`` answers a path with that
    of a savepoint: the same, or one made of the checkpoint that is there."""
    configuration = context.submission.configuration
    path = restore_path(configuration)
    if not path or context.goes_on:
        return None
    # Loads Arrow, which a job that begins with nothing need not wait for.
    from firesteel.engine.savepoints.restoring import Restore

    if context.spec.batch_mode:
        raise SavepointError("A job in BATCH mode cannot begin with a savepoint: it has no state to go on with.")
    lenient = configuration.get_boolean(IGNORE_UNCLAIMED, False)
    restore = Restore.of(readable(path), context.spec.graph, lenient, context.spec.storage)
    context.spec = replace(context.spec, restored=True)
    context.checkpoints.restored()
    logger.info("job %r begins with the savepoint %s", context.name, path)
    return restore
