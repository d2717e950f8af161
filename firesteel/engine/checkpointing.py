"""Where a job's checkpoints are kept and what becomes of them: the configuration's answer, worked out once."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from firesteel.common.configuration import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.common.path_names import path_name
from firesteel.datastream.checkpoint_config import RETENTION, CheckpointConfig
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError
from firesteel.filesystems import Storage, hadoop_uri, joined, resolved

__all__ = ["Checkpointing", "former_folder_name"]

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
    former: str | None = None
    """The folder's name in earlier versions, if it was made from the job's."""

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
        folder, former, exact = None, None, configuration.get_string(EXACT, "")
        if exact and not batch_mode:
            folder = _place(EXACT, exact)
        elif enabled:
            parent = configuration.get_string(DIRECTORY, "")
            if parent:
                place = _place(configuration.find_key(DIRECTORY), parent)
                folder, former = joined(place, path_name(job_name)), joined(place, former_folder_name(job_name))
        if enabled and in_files and folder is None:
            raise ConfigurationError(
                f"Setting '{configuration.find_key(STORAGE)}' is 'filesystem', so it takes a directory: set "
                f"'{DIRECTORY}'."
            )
        return Checkpointing(enabled, folder, bool(exact), retention, former)

    def found(self, storage: Storage) -> Checkpointing:
        """With the folder's former name, where an earlier version has left a checkpoint by that name."""
        if self.folder is None or self.former in (None, self.folder):
            return self
        assert self.former is not None
        if storage.exists(self.folder) or not storage.exists(self.former):
            return self
        return replace(self, folder=self.former)

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


def former_folder_name(job_name: str) -> str:
    """The name that a job's folder had in earlier versions, where it is not that of :func:`path_name`.

    >>> former_folder_name("word count")
    'word-count-16eea39c'
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", job_name).strip(".-")[:80]
    if plain and plain == job_name:
        return plain
    return f"{plain or 'job'}-{hashlib.sha256(job_name.encode()).hexdigest()[:8]}"


def _place(key: str, place: str) -> str:
    """The folder that a setting names, as Spark takes it: most of what is in it is Spark's."""
    return hadoop_uri(resolved(place, f"Setting '{key}'"))
