"""Processes that find out what a program would run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from sparkkit import eventually, processes_with

from firesteel.cluster import planners
from firesteel.cluster.planners import Planners
from firesteel.errors import ProgramError

PROGRAM = """
import os, sys
from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
env.execute(f"{os.getpid()} {sys.stdin.read()!r} {sys.argv[1:]}")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def plan(found: Planners, program: Path) -> planners.Plan:
    return found.plan(program, ("a",), {"firesteel.master": "memory", "parallelism.default": "3"})


def waiting(found: Planners) -> int | None:
    planner = found._waiting
    return None if planner is None else planner._process.pid


def test_a_program_is_planned_by_a_process_that_waited(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    monkeypatch.setattr(planners, "SECONDS_AFTER_A_JOB", 0.0)
    found = Planners(300, ahead=True)
    try:
        seen = []
        for _ in range(2):
            assert eventually(lambda: waiting(found) is not None)
            seen.append(waiting(found))
            planned = plan(found, program)
            # It has its arguments and settings, and nothing to read.
            assert planned.name == f"{seen[-1]} '' ['a']"
            assert (planned.parallelism, planned.configuration["firesteel.master"]) == (3, "memory")
        assert seen[0] != seen[1], "a process runs one program"
    finally:
        found.close()


def test_one_that_died_while_it_waited_is_replaced(program: Path) -> None:
    found = Planners(300, ahead=True)
    try:
        killed = waiting(found)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        assert found._waiting is not None
        found._waiting._process.wait()
        assert not plan(found, program).name.startswith(f"{killed} ")
    finally:
        found.close()


def test_nothing_waits_where_nobody_asked_for_it(program: Path) -> None:
    found = Planners(300, ahead=False)
    plan(found, program)
    assert waiting(found) is None
    assert found._later is None


def test_what_waits_ends_with_the_job_manager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIRESTEEL_TEST_MARK", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(planners.tempfile, "tempdir", str(tmp_path))
    found = Planners(300, ahead=True)
    assert eventually(lambda: processes_with("FIRESTEEL_TEST_MARK", str(tmp_path)))
    found.close()
    assert not processes_with("FIRESTEEL_TEST_MARK", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    # Also if it had no time for that: the pipe ends with the process that has its other end.
    planner = planners.Planner()
    assert planner._process.stdin is not None
    planner._process.stdin.close()
    assert planner._process.wait(300) == 0
    assert list(tmp_path.iterdir()) == [], "nobody is there to remove it"
    planner.close()


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_TEST_MARK", str(tmp_path))
    program = tmp_path / "slow.py"
    program.write_text("import subprocess; subprocess.run(['sleep', '600'])")
    with pytest.raises(ProgramError, match=r"did not reach its execute\(\) within 1 s"):
        Planners(1, ahead=False).plan(program, (), {})
    assert eventually(lambda: not processes_with("FIRESTEEL_TEST_MARK", str(tmp_path)))
