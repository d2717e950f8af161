"""A file of Spark's state store is damaged: the job says which one, and is not restarted for ever."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sparkkit import spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import CheckpointError, FailureKind, JobExecutionError

NUMBERS = 300


def run(folder: Path, fail_at: int, strategy: str, **more: str) -> None:
    config = {
        "firesteel.checkpoint.dir": folder,
        "firesteel.batch.max-records": 50,
        "restart-strategy.type": strategy,
        "restart-strategy.fixed-delay.attempts": 1_000_000,
        **more,
    }
    env = spark_env(1, config)

    def fail(number: int) -> int:
        if number == fail_at:
            raise ValueError("on purpose")
        return number

    numbers: Any = env.from_source(NumberSequenceSource(0, NUMBERS), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(fail).key_by(lambda number: number % 3).reduce(lambda a, b: a + b).filter(lambda _: False).print()
    env.execute("damaged state")


def test_a_damaged_changelog_is_named_and_not_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    with pytest.raises(JobExecutionError, match="on purpose"):
        run(folder, NUMBERS - 20, "none")
    newest = max(folder.glob("query/state/0/0/*.changelog"), key=lambda path: int(path.stem))
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    with pytest.raises(CheckpointError, match=rf"state of the job cannot be read: .*{newest.name} is damaged"):
        run(folder, -1, "fixed-delay")


SNAPSHOTS = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"}
"""A snapshot with each batch. Otherwise there is one after tens of batches, and Spark decides when it is written."""


@pytest.fixture(scope="module")
def with_snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint folder of a job that has failed."""
    folder = tmp_path_factory.mktemp("snapshots") / "checkpoint"
    with pytest.raises(JobExecutionError, match="on purpose"):
        run(folder, NUMBERS - 20, "none", **SNAPSHOTS)
    return folder


@pytest.mark.parametrize("kind", ["zip", "sst"])
def test_damaged_snapshots_are_named_and_not_tried_again(kind: str, with_snapshots: Path, tmp_path: Path) -> None:
    """All of them: from an older one that is left, Spark may repair the state."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(with_snapshots, folder)
    files = sorted((folder / "query" / "state").rglob(f"*.{kind}"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(CheckpointError, match=r"state of the job cannot be read: .* damaged") as caught:
        run(folder, -1, "fixed-delay", **SNAPSHOTS)
    assert any(file.name in str(caught.value) for file in files), caught.value
    assert caught.value.kind is FailureKind.PERMANENT
