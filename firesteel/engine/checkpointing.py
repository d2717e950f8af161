"""Where a job's checkpoints are kept and what becomes of them: the configuration's answer, worked out once."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from firesteel.common.configuration import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.datastream.checkpoint_config import RETENTION, CheckpointConfig
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.engine.storage import is_remote, joined
from firesteel.errors import ConfigurationError

__all__ = ["Checkpointing", "folder_name"]

EXACT = "firesteel.checkpoint.dir"
DIRECTORY = "execution.checkpointing.dir"
STORAGE = "execution.checkpointing.storage"


@dataclass(frozen=True)
class Checkpointing:
    """The checkpoints of one job."""

    enabled: bool = False
    """Whether an interval was set."""
    folder: str | None = None
    """The job's durable folder; None leaves nothing behind."""
    exact: bool = False
    """Whether the folder was named by ``firesteel.checkpoint.dir``: it belongs to the user then, and stays."""
    retention: ExternalizedCheckpointRetention | None = None
    """What was chosen; None where nothing was."""

    @staticmethod
    def of(configuration: Configuration, job_name: str, batch_mode: bool = False) -> Checkpointing:
        """
        >>> settings = {"state.checkpoints.dir": "file:///var/jobs", "execution.checkpointing.interval": "1 s"}
        >>> Checkpointing.of(Configuration.from_dict(settings), "orders").folder
        '/var/jobs/orders'
        """
        config = CheckpointConfig(configuration)
        # A BATCH job has one batch: it ends or begins anew, and there is nothing to go on from.
        enabled = config.is_checkpointing_enabled() and not batch_mode
        # Read in any case, so that a misspelt one is found.
        chosen = config.get_externalized_checkpoint_retention()
        retention = chosen if configuration.contains_key(RETENTION) else None
        in_files = _in_files(configuration)
        folder, exact = None, configuration.get_string(EXACT, "")
        if exact and not batch_mode:
            folder = _place(EXACT, exact)
        elif enabled:
            parent = configuration.get_string(DIRECTORY, "")
            if parent:
                folder = joined(_place(configuration.find_key(DIRECTORY), parent), folder_name(job_name))
        if enabled and in_files and folder is None:
            raise ConfigurationError(
                f"Setting '{configuration.find_key(STORAGE)}' is 'filesystem', so it takes a directory: set "
                f"'{DIRECTORY}'."
            )
        return Checkpointing(enabled, folder, bool(exact), retention)

    def stays(self, status: JobStatus) -> bool:
        """Whether the folder outlives a job that ended so."""
        if status is JobStatus.CANCELED:
            if self.retention is None:
                return self.exact
            return self.retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        # Whoever failed wants to go on; whoever has finished has nothing left to do.
        return self.exact or status is not JobStatus.FINISHED


def _in_files(configuration: Configuration) -> bool:
    """Whether the configuration asks for checkpoints in files. Where they are says the directory."""
    kind = configuration.get_string(STORAGE, "jobmanager")
    if kind.lower() not in ("jobmanager", "filesystem"):
        raise ConfigurationError(
            f"Setting '{configuration.find_key(STORAGE)}' should be jobmanager or filesystem, got {kind!r}."
        )
    return kind.lower() == "filesystem"


def folder_name(job_name: str) -> str:
    """The name of a job's folder: its name, with a short hash where the name has characters that folders lack.

    >>> folder_name("orders"), folder_name("word count")
    ('orders', 'word-count-16eea39c')
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", job_name).strip(".-")[:80]
    if plain and plain == job_name:
        return plain
    return f"{plain or 'job'}-{hashlib.sha256(job_name.encode()).hexdigest()[:8]}"


def _place(key: str, place: str) -> str:
    """A path from a path or a ``file:`` URI; the URI of another file system as it is."""
    parts = urlsplit(place)
    # A single letter is a drive, not a scheme.
    if len(parts.scheme) > 1 and "/" in place:
        if is_remote(place):
            return place.rstrip("/")
        if parts.scheme != "file":
            raise ConfigurationError(
                f"Setting '{key}' should be a folder, or a URI such as hdfs://host/folder; got {place!r}."
            )
        place = unquote(parts.path)
    return os.path.abspath(place)
