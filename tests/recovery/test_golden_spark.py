"""Golden checkpoint folders of every version of the durable format: a job on Spark goes on from them.

Each is of a job that was killed when its last batch was logged and its sink had not committed it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import goldenkit
import pytest
from sparkkit import spark_env

VERSIONS = sorted(folder.name for folder in goldenkit.GOLDEN.iterdir())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_goes_on_from_a_golden_checkpoint(version: str, tmp_path: Path) -> None:
    folder = goldenkit.unpacked(version, "spark", tmp_path)
    before = Counter(line for file in (folder / "out").glob("part-*") for line in file.read_text().splitlines())
    first, whole = goldenkit.lines_of(version)
    assert before < first, "something is left to be committed"
    settings = {**goldenkit.SETTINGS, "firesteel.checkpoint.dir": str(folder / "checkpoint")}
    env = spark_env(goldenkit.PARALLELISM, settings)
    goldenkit.to_files(goldenkit.build(env, whole=True), folder / "out")
    env.execute("golden")
    files = list((folder / "out").iterdir())
    assert [file.name for file in files if file.name.startswith(".")] == []
    goldenkit.check(Counter(line for file in files for line in file.read_text().splitlines()), whole, version)
