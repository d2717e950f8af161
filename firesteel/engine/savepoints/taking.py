"""What every savepoint begins with: a place for it, and a manifest that knows all but the state."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from firesteel import __version__
from firesteel.common.configuration import Configuration
from firesteel.engine.manifest import Manifest
from firesteel.engine.savepoints.manifest import NAME, OperatorEntry, SavepointManifest
from firesteel.engine.savepoints.places import Place
from firesteel.errors import SavepointError
from firesteel.filesystems import StorageOptions

__all__ = ["SAVEPOINT_DIRECTORY", "abandon", "copy_sources", "dispose", "new_place", "outline"]

SPARK_QUERY = "spark-query"
"""The checkpoint of a Spark query, in a source's folder."""
SAVEPOINT_DIRECTORY = "execution.checkpointing.savepoint-dir"


def new_place(
    directory: str | None, configuration: Configuration, job_id: str, options: StorageOptions | None = None
) -> Place:
    """A folder for one more savepoint, in the directory that was asked for or else configured."""
    parent = directory or configuration.get_string(SAVEPOINT_DIRECTORY, "")
    if not parent:
        raise SavepointError(
            "Where should the savepoint go? Name a directory in the call, or set "
            f"'{SAVEPOINT_DIRECTORY}' in the configuration."
        )
    return Place.of(parent, options).inside(f"savepoint-{job_id[:6]}-{uuid.uuid4().hex[:12]}")


def outline(
    checkpoint: Manifest, job_id: str, batch: int, offset: Mapping[str, Any], drained: bool = False
) -> SavepointManifest:
    """The manifest of a savepoint of one batch, before the state is in it."""
    uids = {str(entry.id): entry.uid for entry in checkpoint.operators}
    operators = tuple(
        OperatorEntry(
            entry.uid,
            entry.name,
            entry.kind,
            entry.parallelism,
            entry.max_parallelism,
            position=offset["positions"].get(str(entry.id)),
        )
        for entry in checkpoint.operators
    )
    event_time = {}
    for place, kept in offset.get("kept", {}).items():
        node, _, subtask = place.partition("/")
        event_time[f"{uids[node]}/{subtask}"] = kept
    return SavepointManifest(
        job=checkpoint.job,
        job_id=job_id,
        batch=batch,
        time=offset["time"],
        created=int(time.time() * 1000),
        firesteel=__version__,
        state_backend=checkpoint.state_backend,
        operators=operators,
        event_time=event_time,
        drained=drained,
    )


def copy_sources(directory: str, target: Place) -> None:
    """What sources keep in files of their own: a log that only grows, so it may be copied while it is written.

    A Spark query of a source's publishes what it has computed before it logs that. So its log is copied first:
    whatever is logged in the copy is there.
    """
    for parent, folders, names in os.walk(directory):
        folders.sort(key=lambda name: (name != SPARK_QUERY, name))
        spark = SPARK_QUERY in os.path.relpath(parent, directory).split(os.sep)
        # What lies beside the sources' folders is the driver's.
        for name in names if parent != directory else ():
            here = os.path.join(parent, name)
            if spark and (name.startswith(".") or not os.path.exists(here)):
                # A draft of Spark's, or an old entry that it has deleted.
                continue
            there = target.inside("sources", *os.path.relpath(here, directory).split(os.sep))
            there.parent().make()
            with open(here, "rb") as file:
                there.write(file.read())


def abandon(target: Place) -> None:
    """A savepoint that failed leaves nothing behind."""
    with suppress(Exception):
        target.delete()


def dispose(address: str) -> None:
    """Deletes a savepoint, and nothing that is none."""
    place = Place.of(address)
    if not place.inside(NAME).exists():
        raise SavepointError(f"{place.address} is no savepoint: it has no {NAME}. Nothing was deleted.")
    place.delete()
