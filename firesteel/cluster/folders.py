"""Where the job manager keeps what it knows. Only its user can open the folder.

<folder>/
  lock                    held by the one job manager that works here
  cluster.json            its address and process
  members/                likewise of each, where there are several
  token, read-token       what clients must send; the second one allows looking only
  registry.sqlite         jobs, attempts, operations
  programs/<hash>/<name>  what was uploaded, by content
  jobs/<id>/
    attempt               the number of the attempt that may run
    driver.lock           held by the job's driver
    driver.json           the driver's process, as it says itself
    records/<id>.json     the last answers of the job, when it has ended
    outcome-<n>.json      how attempt n ended; none: it crashed
    logs/                 attempt-<n>.log, and older parts of it as attempt-<n>.log.1, …
  checkpoints/<id>/       of jobs whose settings name no other place
  savepoints/             likewise
  archive/<id>            finished jobs, in the format of Flink's history server
  logs/                   the job manager's own
  sql/<handle>.log        what the processes of SQL sessions printed; of sessions that crashed it stays
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from firesteel.common.private_files import make_private_folder
from firesteel.errors import SetupError

__all__ = ["ClusterFolder", "JobFolder", "default_folder"]


def default_folder() -> Path:
    """FIRESTEEL_CLUSTER_DIR, or the place that the system has for what programs remember."""
    chosen = os.environ.get("FIRESTEEL_CLUSTER_DIR")
    return Path(chosen) if chosen else platformdirs.user_state_path("firesteel", appauthor=False) / "cluster"


@dataclass(frozen=True)
class JobFolder:
    """What one job's processes and the job manager share."""

    path: Path

    @property
    def attempt(self) -> Path:
        return self.path / "attempt"

    @property
    def lock(self) -> Path:
        return self.path / "driver.lock"

    @property
    def driver(self) -> Path:
        return self.path / "driver.json"

    @property
    def records(self) -> Path:
        return self.path / "records"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def outcome(self, attempt: int) -> Path:
        return self.path / f"outcome-{attempt}.json"

    def log(self, attempt: int) -> Path:
        return self.logs / f"attempt-{attempt}.log"

    def make(self) -> JobFolder:
        for folder in (self.records, self.logs):
            make_private_folder(str(folder))
        return self


@dataclass(frozen=True)
class ClusterFolder:
    """The folder of one job manager, or of several that take turns."""

    path: Path

    @staticmethod
    def make(path: Path) -> ClusterFolder:
        """Makes the folder where it is missing. Raises SetupError where others could read or change it."""
        folder = ClusterFolder(path.absolute())
        for part in (
            folder.programs,
            folder.jobs,
            folder.checkpoints,
            folder.savepoints,
            folder.archive,
            folder.logs,
            folder.sql,
        ):
            make_private_folder(str(part))
        info = folder.path.stat()
        if info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise SetupError(
                f"{folder.path} belongs to somebody else, or others can open it. Programs and tokens are kept there: "
                "give it mode 0700, or name another folder with --dir or FIRESTEEL_CLUSTER_DIR."
            )
        return folder

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def address(self) -> Path:
        return self.path / "cluster.json"

    @property
    def members(self) -> Path:
        return self.path / "members"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def read_token(self) -> Path:
        return self.path / "read-token"

    @property
    def registry(self) -> Path:
        return self.path / "registry.sqlite"

    @property
    def programs(self) -> Path:
        return self.path / "programs"

    @property
    def jobs(self) -> Path:
        return self.path / "jobs"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def savepoints(self) -> Path:
        return self.path / "savepoints"

    @property
    def archive(self) -> Path:
        return self.path / "archive"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def sql(self) -> Path:
        return self.path / "sql"

    def job(self, job_id: str) -> JobFolder:
        return JobFolder(self.jobs / job_id)
