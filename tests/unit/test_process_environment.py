"""Variables by which one process instructs another stay with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firesteel.common import process_environment
from firesteel.common.process_environment import SETTINGS, environment_of_child, exported, submission_settings
from firesteel.programs import run_program

ROOT = Path(__file__).resolve().parents[2]


def test_every_variable_is_the_users_or_for_one_process() -> None:
    """A new one is documented for users, or it is in the list of those that nobody inherits."""
    written = {
        name
        for file in (ROOT / "firesteel").rglob("*.py")
        for name in re.findall(r"\bFIRESTEEL_[A-Z_]+[A-Z]\b", file.read_text(encoding="utf-8"))
    }
    users = set(re.findall(r"\bFIRESTEEL_[A-Z_]+[A-Z]\b", (ROOT / "docs/settings.md").read_text(encoding="utf-8")))
    for_one_process = set(process_environment._FOR_ONE_PROCESS)
    assert written - users - for_one_process == set()
    assert for_one_process <= written


def test_exported_is_as_before_even_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/the/users")
    monkeypatch.delenv("FIRESTEEL_LOG_LEVEL", raising=False)
    before = dict(os.environ)
    seen = []

    def fail() -> None:
        with exported({"SPARK_HOME": "/ours", "FIRESTEEL_LOG_LEVEL": "10"}):
            seen.append(os.environ["SPARK_HOME"])
            raise ValueError("no start")

    with pytest.raises(ValueError, match="no start"):
        fail()
    assert seen == ["/ours"]
    assert dict(os.environ) == before


def test_a_program_that_a_job_starts_does_not_take_over_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's id and its savepoint are among the settings."""
    found = tmp_path / "found.json"
    program = tmp_path / "program.py"
    program.write_text(
        "import json, subprocess, sys\n"
        "from firesteel.datastream import StreamExecutionEnvironment as Environment\n"
        "own = Environment.get_execution_environment().get_parallelism()\n"
        "child = \"import json, os; print(json.dumps([key for key in os.environ if key.startswith('FIRESTEEL_')]))\"\n"
        "names = json.loads(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)\n"
        "import multiprocessing\n"
        "from firesteel.common.process_environment import submission_settings\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    forked = pool.apply(submission_settings)\n"
        f"open({str(found)!r}, 'w').write(json.dumps([own, names, forked]))\n"
    )
    monkeypatch.setenv(SETTINGS, "parallelism.default=3\x1ffiresteel.job.id=abc")
    run_program(str(program), settings="a.key=1")
    parallelism, names, forked = json.loads(found.read_text())
    assert parallelism == 3
    assert SETTINGS not in names
    assert forked == []
    assert submission_settings() == ["parallelism.default=3", "firesteel.job.id=abc"]


def test_a_process_of_ours_gets_what_is_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in process_environment._FOR_ONE_PROCESS:
        monkeypatch.setenv(name, "of this process")
    child = "import os; print(sorted(key for key in os.environ if os.environ[key] == 'of this process'))"
    done = subprocess.run([sys.executable, "-c", child], env=environment_of_child(), capture_output=True, text=True)
    assert done.stdout == "[]\n"
