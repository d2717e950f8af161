"""What a program that fails shows: a short text and the user's frame, wherever it runs; all of it behind a switch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sparkkit import SCRIPT_SECONDS, run_script, script_environment, write_script

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import FULL_TRACE, FiresteelError, JobExecutionError, ProgramError

PROGRAM = """
    from firesteel.datastream import StreamExecutionEnvironment

    def parse(line):
        return int(line)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection(["1", "x"]).map(parse).print()
    env.execute("numbers")
"""

TEXT = """\
Operator 'Map' failed in subtask 0.
  operator  Map, built at {path}:8
  raised    at {path}:5 in parse: return int(line)
  element   'x'
  ValueError: invalid literal for int() with base 10: 'x'
"""


def test_a_plain_run(tmp_path: Path) -> None:
    """``test_spark_scripts`` has the same on Spark."""
    path = write_script(tmp_path, PROGRAM)
    shown = run_script(path, FIRESTEEL_MASTER="memory", **{FULL_TRACE: None}).stderr
    assert shown.endswith("firesteel.errors.JobExecutionError: " + TEXT.format(path=path)), shown
    assert f'File "{path}", line 9, in <module>' in shown, "the user's own frame"
    assert len(shown.splitlines()) <= 12, shown
    assert "firesteel-failure" not in shown


def test_the_whole_trace_behind_a_switch(tmp_path: Path) -> None:
    path = write_script(tmp_path, PROGRAM)
    for switch in ({FULL_TRACE: "1"}, {"FIRESTEEL_SETTINGS": "firesteel.errors.full-trace=true"}):
        shown = run_script(path, FIRESTEEL_MASTER="memory", **switch).stderr
        assert "direct cause of the following exception" in shown
        assert "firesteel/runtime/calls.py" in shown
        assert shown.endswith(TEXT.format(path=path))


@pytest.mark.parametrize("verbose", [False, True])
def test_firesteel_run(verbose: bool, tmp_path: Path) -> None:
    path = write_script(tmp_path, PROGRAM)
    options = ["-v"] if verbose else []
    done = subprocess.run(
        [sys.executable, "-m", "firesteel.cli", "run", *options, "-m", "memory", str(path)],
        capture_output=True,
        text=True,
        timeout=SCRIPT_SECONDS,
        env=script_environment(),
        check=False,
    )
    assert done.returncode == 1
    if verbose:
        assert "direct cause of the following exception" in done.stderr
        assert done.stderr.endswith(TEXT.format(path=path))
    else:
        assert done.stderr == TEXT.format(path=path)


def boom(value: Any) -> Any:
    raise ValueError(value)


def fails(**settings: str) -> FiresteelError:
    configuration = Configuration.from_dict({"firesteel.master": "memory", **settings})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1]).map(boom).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    return caught.value


def test_a_notebook() -> None:
    """IPython calls this method of an exception instead of printing a traceback."""
    error = fails()
    lines = error._render_traceback_()
    assert "env.execute()" in "\n".join(lines[:2])
    assert lines[2:] == ("firesteel.errors.JobExecutionError: " + str(error)).splitlines()
    whole = fails(**{"firesteel.errors.full-trace": "true"})._render_traceback_()
    assert len(whole) > 20
    assert whole[-1] == lines[-1]


def test_a_notebook_shows_errors_of_building_too() -> None:
    with pytest.raises(ProgramError) as caught:
        StreamExecutionEnvironment.get_execution_environment().from_collection([1]).map(5)  # type: ignore[arg-type]
    lines = caught.value._render_traceback_()
    assert __file__ in lines[0]
    assert lines[-1].startswith("firesteel.errors.ProgramError: ")


def test_programs_still_reach_the_cause() -> None:
    error = fails()
    assert isinstance(error, JobExecutionError)
    assert error.cause_class == "builtins.ValueError"
    assert "in boom\n" in (error.cause_text or "")
    assert error.__cause__ is None
    assert fails(**{"firesteel.errors.full-trace": "true"}).__cause__ is not None
