"""Several job managers of one cluster, as processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clusterkit import settings_for
from postgreskit import Database

from firesteel.cluster.client import ClusterClient
from firesteel.cluster.postgres_registry import PostgresRegistry
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.rest.standby import LEADER
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.starting import RunningCluster, start_in_background
from firesteel.cluster.tokens import read_token

MEMORY = {"firesteel.master": "memory"}


class Members:
    """Job managers of one cluster, each a process."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder, self.database = folder, database
        self.started: list[RunningCluster] = []
        settings = self.settings()
        self.lookup = PostgresRegistry(settings.database)

    def settings(self, port: int | None = None, **more: Any) -> ClusterSettings:
        place = f"127.0.0.1:{port or self.database.server.port}"
        return settings_for(
            self.folder,
            registry=f"postgresql://{self.database.user}@{place}/{self.database.name}",
            registry_password=self.database.password,
            # Far from what a busy machine holds up a process for.
            lease_ms=10_000,
            driver_lease_ms=8000,
            **{"port": 0, **more},
        ).checked()

    def start(self, port: int | None = None, **more: Any) -> RunningCluster:
        self.started.append(start_in_background(self.settings(port, **more)))
        return self.started[-1]

    def leads(self, member: RunningCluster, epoch: int) -> bool:
        """Whether it is the one of this epoch, and answers as such."""
        leader = self.lookup.leader()
        if leader is None or (leader.epoch, leader.address) != (epoch, member.address):
            return False
        return LEADER not in self.headers(member)

    def headers(self, member: RunningCluster) -> dict[str, str]:
        """Of an answer of a job manager. One that stands by adds where it has the answer from."""
        try:
            _, headers = self.client(member).text("/firesteel/v1/manager")
        except Exception:
            return {LEADER: ""}
        return {name.title(): value for name, value in headers.items()}

    def client(self, *members: RunningCluster) -> ClusterClient:
        return ClusterClient(",".join(one.address for one in members), read_token(self.folder / "token"))

    def close(self) -> None:
        for member in self.started:
            end_session(Process.of(member.pid))
        for row in self.lookup.jobs():
            if row.pid:
                end_session(Process(row.pid, row.pid_started))
        self.lookup.close()


def works(client: ClusterClient, job: str) -> bool:
    known = client.job(job).known
    return bool(known["state"] == "RUNNING" and known["records"] > 0)
