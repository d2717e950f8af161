"""The ``firesteel`` command, called in this process; jobs run on the engine without Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel import __version__
from firesteel.cli import main
from firesteel.common.job_status import JobStatus
from firesteel.engine.spark import warmup

WORD_COUNT = """\
from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
(
    env.from_collection(["a b a"])
    .flat_map(lambda line: line.split())
    .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
    .key_by(lambda pair: pair[0])
    .sum(1)
    .print()
)
env.execute("word count")
"""

FAILING = """\
from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([2, 1, 0]).map(lambda n: 10 // n).print()
env.execute()
"""


@pytest.fixture
def program(tmp_path: Path):
    """Writes a program; returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write


def updates(text: str) -> list[str]:
    return sorted(re.sub(r"^\d+> ", "", line) for line in text.splitlines())


def test_run_runs_a_program(program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-m", "memory", program(WORD_COUNT)]) == 0
    assert updates(capsys.readouterr().out) == ["(a,1)", "(a,2)", "(b,1)"]


def test_run_passes_settings(program, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", "-m", "memory", "-p", "1", "-Dexecution.runtime-mode=BATCH", program(WORD_COUNT)])
    assert code == 0
    # Without a prefix, because there is one subtask, and once per word, because of BATCH.
    assert sorted(capsys.readouterr().out.splitlines()) == ["(a,2)", "(b,1)"]


def test_settings_of_the_code_win_over_the_command_line(program, capsys: pytest.CaptureFixture[str]) -> None:
    text = WORD_COUNT.replace("\n(\n", "\nenv.set_parallelism(1)\n(\n")
    assert main(["run", "-m", "memory", "-p", "3", program(text)]) == 0
    assert capsys.readouterr().out.splitlines() == ["(a,1)", "(b,1)", "(a,2)"]


def test_values_may_hold_spaces_and_equals_signs(program, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
print(env.get_configuration().get_string("spark.driver.extraJavaOptions", "missing"))
"""
    assert main(["run", "-D", "spark.driver.extraJavaOptions=-Da=b -Dc=d", program(text)]) == 0
    assert capsys.readouterr().out == "-Da=b -Dc=d\n"


def test_inherited_settings_stay_and_the_command_line_wins(
    program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTEEL_SETTINGS", "parallelism.default=3\x1fa.key=kept")
    text = """\
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
print(env.get_parallelism(), env.get_configuration().get_string("a.key", "lost"))
"""
    assert main(["run", "-p", "2", program(text)]) == 0
    assert capsys.readouterr().out == "2 kept\n"
    assert os.environ["FIRESTEEL_SETTINGS"] == "parallelism.default=3\x1fa.key=kept"


def test_the_program_sees_itself_as_run_directly(program, tmp_path: Path, capsys) -> None:
    (tmp_path / "beside_the_program.py").write_text("NAME = 'found'\n")
    text = """\
import sys
import beside_the_program
print(__name__, sys.argv[1:], sys.argv[0] == __file__, beside_the_program.NAME)
"""
    before = sys.argv, list(sys.path)
    assert main(["run", program(text), "--input", "x", "-p", "7"]) == 0
    assert capsys.readouterr().out == "__main__ ['--input', 'x', '-p', '7'] True found\n"
    assert (sys.argv, sys.path) == before
    assert "FIRESTEEL_SETTINGS" not in os.environ


def test_an_error_of_ours_is_told_without_a_traceback(program, capsys: pytest.CaptureFixture[str]) -> None:
    path = program(FAILING)
    assert main(["run", "-m", "memory", path]) == 1
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].strip() == "ZeroDivisionError: integer division or modulo by zero"
    assert f"{path}:4" in errors
    assert "element   0" in errors


def test_verbose_shows_the_traceback(program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-v", "-m", "memory", program(FAILING)]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("Traceback")
    assert "ZeroDivisionError" in errors


def test_other_errors_of_the_program_are_its_own(program) -> None:
    with pytest.raises(LookupError, match="mine"):
        main(["run", program("raise LookupError('mine')")])
    with pytest.raises(SystemExit, match="7"):
        main(["run", program("raise SystemExit(7)")])


def test_an_interrupted_program_exits_as_shells_expect(program) -> None:
    assert main(["run", program("raise KeyboardInterrupt")]) == 130


@pytest.mark.parametrize("setting", ["no-equals-sign", "=value", "a=b\x1fc=d"])
def test_a_setting_that_is_none_is_refused(setting: str, program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-D", setting, program("print('ran')")]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors == f"-D takes key=value, got {setting!r}.\n"


def test_a_missing_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "missing.py"]) == 1
    assert capsys.readouterr().err == "There is no file 'missing.py'.\n"


def test_plan_prints_json_and_runs_nothing(program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-p", "3", program(WORD_COUNT)]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["stages"] == 2
    assert [node["parallelism"] for node in plan["nodes"]] == [1, 3, 3, 3, 3]


def test_plan_of_a_program_that_executes_nothing(program, capsys: pytest.CaptureFixture[str]) -> None:
    path = program("print('no job')")
    assert main(["plan", path]) == 1
    assert capsys.readouterr().err == f"{path!r} ended without executing anything.\n"


def test_a_run_after_a_plan_runs(program, capsys: pytest.CaptureFixture[str]) -> None:
    path = program(WORD_COUNT)
    assert main(["plan", path]) == 0
    capsys.readouterr()
    assert main(["run", "-m", "memory", path]) == 0
    assert updates(capsys.readouterr().out) == ["(a,1)", "(a,2)", "(b,1)"]


def test_version_names_what_it_stands_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Firesteel {__version__}"
    assert [line.split()[0] for line in lines] == ["Firesteel", "PySpark", "Python", "Java"]


def test_warmup_says_where_the_archive_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(warmup, "warm_up", lambda: Path("cache/classes.jsa"))
    assert main(["warmup"]) == 0
    assert capsys.readouterr().out == "The archive of classes is cache/classes.jsa.\n"


def test_no_command_shows_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "usage: firesteel" in capsys.readouterr().err


def test_version_as_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"Firesteel {__version__}\n"


def test_python_m_firesteel() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "firesteel", "--version"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Firesteel {__version__}\n", "")


def test_a_reader_that_has_gone(program) -> None:
    """As with ``firesteel plan program.py | head``: no traceback, and the exit code that shells know."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "firesteel", "plan", program(WORD_COUNT)],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_broken_pipe_of_the_programs_own_is_no_reader_that_has_gone(program) -> None:
    with pytest.raises(BrokenPipeError, match="theirs"):
        main(["run", program("raise BrokenPipeError('theirs')")])


# Plans as pictures, completion


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("tree", "└─ HASH ─ Reduce ×2"),
        ("mermaid", "flowchart LR\n  subgraph stage0 [stage 0]"),
        ("svg", '<svg xmlns="http://www.w3.org/2000/svg"'),
    ],
)
def test_a_plan_as_a_picture(program, capsys: pytest.CaptureFixture[str], form: str, text: str) -> None:
    assert main(["plan", "--format", form, "-p", "2", program(WORD_COUNT)]) == 0
    assert text in capsys.readouterr().out


def test_names_in_a_drawn_plan_are_text(program, capsys: pytest.CaptureFixture[str]) -> None:
    import xml.etree.ElementTree

    hostile = WORD_COUNT.replace(".sum(1)", '.sum(1).name("<script>&\\"")')
    assert main(["plan", "--format", "svg", program(hostile)]) == 0
    drawn = capsys.readouterr().out
    assert "<script" not in drawn
    assert '<script>&"' in "".join(xml.etree.ElementTree.fromstring(drawn).itertext())


def test_a_plan_with_two_inputs_is_drawn_once(program, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
one, two = env.from_collection([1]), env.from_collection([2])
one.union(two).map(lambda n: n).name("both").print()
env.execute()
"""
    assert main(["plan", "--format", "tree", "-p", "1", program(text)]) == 0
    drawn = capsys.readouterr().out
    assert drawn.count("both ×1") == 2
    assert drawn.count("(above)") == 1
    assert drawn.count("Print") == 1


def test_completion_of_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = (
        f"{script}\nfiresteel() {{ echo job-one; }}\n"
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _firesteel; echo "${COMPREPLY[*]}"; }\n'
        "ask firesteel clu; ask firesteel cluster sto; ask firesteel status job; ask firesteel list --js\n"
    )
    said = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["cluster", "stop", "job-one", "--json"]
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "completion --jobs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "said"), [(JobStatus.CANCELED, "Cancelled 'a' (1)."), (JobStatus.FINISHED, "was over before")]
)
def test_a_cancel_says_how_the_job_ended(monkeypatch: Any, capsys: Any, status: JobStatus, said: str) -> None:
    job = SimpleNamespace(name="a", id="1", cancel=lambda: SimpleNamespace(status=status))
    monkeypatch.setattr("firesteel.cli.cancel.find_job", lambda options: job)
    assert main(["cancel", "1"]) == 0
    assert said in capsys.readouterr().out
