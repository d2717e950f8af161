"""Golden checkpoints and savepoints of every version of the durable format: a job on Spark goes on from them.

Each checkpoint is of a job that was killed when its last batch was logged and its sink had not committed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import goldenkit
import pytest
from sparkkit import spark_env

VERSIONS = sorted(folder.name for folder in goldenkit.GOLDEN.iterdir())
Begin = Callable[[str, Path], tuple[Path, dict[str, str], Counter[str]]]


def from_checkpoint(version: str, folder: Path) -> tuple[Path, dict[str, str], Counter[str]]:
    """Where results go, the settings to go on with, and the results there will be."""
    golden = goldenkit.unpacked(version, "spark", folder)
    first, whole = goldenkit.lines_of(version)
    before = lines_in(golden / "out")
    assert before < first, "something is left to be committed"
    return golden / "out", {"firesteel.checkpoint.dir": str(golden / "checkpoint")}, whole


def from_savepoint(version: str, folder: Path) -> tuple[Path, dict[str, str], Counter[str]]:
    golden = goldenkit.unpacked(version, "savepoint", folder)
    first, whole = goldenkit.lines_of(version)
    settings = {"execution.state-recovery.path": str(golden), "firesteel.checkpoint.dir": str(folder / "checkpoint")}
    return folder / "out", settings, whole - first


def lines_in(folder: Path) -> Counter[str]:
    return Counter(line for file in folder.glob("part-*") for line in file.read_text().splitlines())


@pytest.mark.parametrize("begin", [from_checkpoint, from_savepoint], ids=["checkpoint", "savepoint"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_goes_on_from_golden_data(version: str, begin: Begin, tmp_path: Path) -> None:
    out, settings, expected = begin(version, tmp_path)
    env = spark_env(goldenkit.PARALLELISM, {**goldenkit.SETTINGS, **settings})
    goldenkit.to_files(goldenkit.build(env, True, version), out)
    env.execute("golden")
    assert [file.name for file in out.iterdir() if file.name.startswith(".")] == []
    goldenkit.check(lines_in(out), expected, version)
