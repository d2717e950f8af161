"""The command line's commands that list jobs and show one."""

from __future__ import annotations

import json
import re

import pytest
from facadekit import endless, finished, own_runtime_folder  # noqa: F401 - fixtures

from firesteel.cli import main
from firesteel.engine.facade import (
    COMMANDS,
    GetStatus,
)
from firesteel.engine.facade.encoding import decoded
from firesteel.jobs import find_job

# The command line


def test_list_shows_what_runs_and_what_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    finished("first")
    job = endless("second")
    capsys.readouterr()
    try:
        assert main(["list"]) == 0
        header, running, ended = capsys.readouterr().out.splitlines()
        assert header.split() == ["job", "status", "started", "runtime", "records", "name"]
        assert re.fullmatch(rf"{job.job_id}  RUNNING .* second", running)
        assert re.fullmatch(r"\w{32}  FINISHED .* 3  first", ended)
        assert main(["list", "-r"]) == 0
        assert "first" not in capsys.readouterr().out
    finally:
        job.cancel()
    assert main(["list", "-r"]) == 0
    assert capsys.readouterr().out == "No jobs are running.\n"


def test_list_shows_the_last_ones_unless_all_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        finished(f"job {number}", 1)
    capsys.readouterr()
    assert main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 10
    assert main(["list", "-a"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 12


def test_commands_that_show_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main(["status", "done"]) == 0
    shown = capsys.readouterr().out
    assert re.match(r"done \(\w{32}\)\n  status      FINISHED\n", shown)
    assert "records     3 in 1 batch\n" in shown
    assert main(["checkpoints", "done"]) == 0
    counts, _, line = capsys.readouterr().out.splitlines()
    assert counts == "1 completed, 0 failed, 0 restores"
    assert re.match(r" 1  COMPLETED  \d{4}-\d\d-\d\d .* 3 ", line)
    assert main(["metrics", "done"]) == 0
    assert re.search(r"\nsame +3 +3 +-\n +0 +3 +3 +\d+ % ", capsys.readouterr().out)
    assert main(["exceptions", "done"]) == 0
    assert capsys.readouterr().out == "No failures.\n"


@pytest.mark.parametrize("name", ["status", "checkpoints", "metrics", "exceptions"])
def test_answers_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main([name, "done", "--json"]) == 0
    command = COMMANDS[name]()
    assert decoded(command.answer, json.loads(capsys.readouterr().out)) == find_job("done").execute(command)


def test_the_plan_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    assert main(["status", "done", "--plan"]) == 0
    assert json.loads(capsys.readouterr().out) == find_job("done").plan().plan


def test_plan_takes_a_job_too(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    capsys.readouterr()
    for name in ("done", find_job("done").id[:8]):
        assert main(["plan", name]) == 0
        assert json.loads(capsys.readouterr().out) == find_job("done").plan().plan
    assert main(["plan", "--format", "tree", "done"]) == 0
    assert "same" in capsys.readouterr().out
    assert main(["plan", "nobody.py"]) == 1
    shown = capsys.readouterr().err
    assert "There is no file 'nobody.py'. No job 'nobody.py' runs here as this user, or ran lately." in shown


def test_nobody_is_asked_by_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "nobody"]) == 3
    assert "No job 'nobody' runs here as this user, or ran lately. Running: none." in capsys.readouterr().err
    assert GetStatus.name in COMMANDS
