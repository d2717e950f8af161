"""The recorded programs with windows, on both state backends, with parallelism 1 and 3: PyFlink's lines every time."""

import re
import runpy
from pathlib import Path

import oracle
import pytest

from firesteel.datastream import StreamExecutionEnvironment

PROGRAMS = [
    pytest.param(program, parallelism, id=f"{program.stem}-{parallelism}")
    for program in sorted(oracle.PROGRAMS.glob("windows_*.py"))
    for parallelism in (1, 3)
    # Which records are late depends on how many subtasks make the watermark.
    if program.stem != "windows_late" or parallelism == 1
]
SUBTASK = re.compile(r"(^|:)\*> ")

set_parallelism = StreamExecutionEnvironment.set_parallelism


@pytest.mark.parametrize(("program", "parallelism"), PROGRAMS)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_every_layout_prints_what_pyflink_prints(
    program: Path, backend: str, parallelism: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = ["firesteel.master=memory", f"state.backend.type={backend}"]
    monkeypatch.setenv("FIRESTEEL_SETTINGS", "\x1f".join(settings))
    # The programs ask for one subtask.
    monkeypatch.setattr(StreamExecutionEnvironment, "set_parallelism", lambda env, _: set_parallelism(env, parallelism))
    runpy.run_path(str(program), run_name="__main__")
    lines = oracle.Rules.of(program.read_text()).normalise(capfd.readouterr().out)
    actual = [SUBTASK.sub(lambda found: "> " if found[1] else "", line) for line in lines]
    # Keys are in different subtasks, so only one subtask gives one order.
    assert sorted(actual) == sorted(oracle.expected_of(program).read_text().splitlines())
