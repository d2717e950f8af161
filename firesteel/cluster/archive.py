"""Jobs that have ended, in the files that Flink's history server reads."""

from __future__ import annotations

import json
import logging
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.registry import JobRow
from firesteel.cluster.supervisor import Supervisor
from firesteel.common.private_files import replace_file

__all__ = ["Archive"]

logger = logging.getLogger("firesteel.cluster")


class Archive:
    """Writes one file a job: what the REST API answered about it, by path."""

    def __init__(self, folder: ClusterFolder, tokens: tuple[str, ...] = ()) -> None:
        self._folder, self._tokens = folder, tokens
        self.supervisor: Supervisor | None = None

    def keep(self, row: JobRow) -> None:
        """Called when a job is over."""
        if self.supervisor is None:
            return
        from firesteel.cluster.views import view_of

        view = view_of(self.supervisor, row.id, self._tokens)
        entries = [{"path": path, "json": json.dumps(answer)} for path, answer in archived(view).items()]
        content = json.dumps({"archive": entries}).encode()
        replace_file(str(self._folder.archive / row.id), content, durable=True)


def archived(view: Any) -> dict[str, Any]:
    """What is kept of a job, by path."""
    from firesteel.cluster.rest import checkpoints, jobs, vertices
    from firesteel.cluster.rest.shapes import job_overview, plan_of

    base = f"/jobs/{view.id}"
    found = {
        "/jobs/overview": {"jobs": [job_overview(view)]},
        base: jobs.job_details(view),
        f"{base}/config": jobs.job_config(view),
        f"{base}/exceptions": jobs.exceptions_of(view),
        f"{base}/plan": {"plan": plan_of(view)},
        f"{base}/accumulators": {
            "job-accumulators": [],
            "user-task-accumulators": [],
            "serialized-user-task-accumulators": {},
        },
        f"{base}/checkpoints": checkpoints.checkpoints_of(view),
        f"{base}/checkpoints/config": checkpoints.checkpoint_config(view),
    }
    for known in view.checkpoints.history:
        found[f"{base}/checkpoints/details/{known.checkpoint_id}"] = checkpoints.checkpoint_details(view, known)
    for vertex in view.vertices:
        place = f"{base}/vertices/{vertex.id}"
        found[place] = vertices.vertex_details(view, vertex)
        found[f"{place}/subtasktimes"] = vertices.vertex_times_of(view, vertex)
        found[f"{place}/taskmanagers"] = vertices.vertex_taskmanagers(view, vertex)
        found[f"{place}/accumulators"] = {"id": vertex.id, "user-accumulators": []}
    return found
