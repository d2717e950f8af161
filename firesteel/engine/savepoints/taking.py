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

SPARK_QUERY, BATCHES, DRAFTS, GONE = "spark-query", "batches", "drafts", ".gone"
"""In the folder of a source that Spark computes for: the checkpoint of its query, what was published, what will be; and
how the name ends of what is being removed."""
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


def copy_sources(directory: str, target: Place) -> bool:
    """What sources keep in files of their own, which may be copied while it is written. Returns whether there is any.

    A Spark query of a source's logs what it is about to compute, computes it, and publishes it. So its log is copied
    first, and of what was published only what the copied log knows: of the rest the query of the copy would take
    other rows for the same ones.
    """
    logged: dict[str, int] = {}
    any_folder = False
    for parent, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != DRAFTS and not name.endswith(GONE)]
        folders.sort(key=lambda name: (name != SPARK_QUERY, name))
        any_folder = any_folder or bool(folders)
        source, name_of_parent = os.path.split(parent)
        if SPARK_QUERY in folders:
            logged[parent] = -1
        elif name_of_parent == BATCHES and source in logged:
            folders[:] = [name for name in folders if not name.isdigit() or int(name) <= logged[source]]
        inside = os.path.relpath(parent, directory).split(os.sep)
        # What lies beside the sources' folders is the driver's.
        for name in names if parent != directory else ():
            path = os.path.join(parent, name)
            if SPARK_QUERY not in inside:
                _copy(path, target.inside("sources", *inside, name))
            elif not name.startswith("."):
                # Spark deletes old entries, and what begins with a dot is a draft of its own.
                with suppress(FileNotFoundError):
                    _copy(path, target.inside("sources", *inside, name))
                    if name.isdigit() and inside[-2:] == [SPARK_QUERY, "offsets"]:
                        source = os.path.dirname(os.path.dirname(parent))
                        logged[source] = max(logged[source], int(name))
    return any_folder


def _copy(path: str, there: Place) -> None:
    with open(path, "rb") as file:
        content = file.read()
    there.parent().make()
    there.write(content)


def abandon(target: Place) -> None:
    """A savepoint that failed leaves nothing behind."""
    with suppress(Exception):
        target.delete()


def dispose(address: str) -> None:
    """Deletes a savepoint, and nothing that is none."""
    place = Place.of(address)
    if not place.inside(NAME).exists():
        raise SavepointError(f"{place.address} is not a savepoint: it has no {NAME}. Nothing was deleted.")
    place.delete()
