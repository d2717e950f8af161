"""The files that a driver leaves for its job manager, written by another version of Firesteel."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clusterkit import FakeLauncher, finish, has_state, running_cluster, submit, wait_for_process

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.launching import adopted
from firesteel.cluster.processes import Process, start_of


def test_a_driver_that_notes_its_process_in_a_newer_format_is_not_taken_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = ClusterFolder.make(tmp_path / "c").job("0" * 32).make()
    own = {"pid": os.getpid(), "started": start_of(os.getpid()), "attempt": 3}
    for known, found in ((own, True), ({"format": 1, **own}, True), ({"format": 2, **own}, False)):
        folder.driver.write_text(json.dumps(known))
        assert (adopted(folder, 3, Process(0, "")) is not None) == found
    assert [record.getMessage() for record in caplog.records] == [
        "the note of a driver's process has format 2, of a newer Firesteel; this one reads 1 only. Use the Firesteel "
        f"that wrote it, or a newer one ({folder.driver})"
    ]


def test_an_outcome_in_a_newer_format_ends_the_job(tmp_path: Path) -> None:
    """Taken for a crash it would be followed by another driver, of a job that may have finished."""
    launcher = FakeLauncher({"restart-strategy.type": "fixed-delay"})
    with running_cluster(tmp_path / "c", launcher) as cluster:
        job = submit(cluster)
        wait_for_process(cluster, job.id)
        finish(cluster, job.id, format=2)
        assert has_state(cluster, job.id, "FAILED")
        assert len(launcher.started) == 1
        assert cluster.supervisor.row(job.id).failure == (
            "The note of how a driver ended has format 2, of a newer Firesteel; this one reads 1 only. Use the "
            f"Firesteel that wrote it, or a newer one ({cluster.folder.job(job.id).outcome(0)})."
        )
