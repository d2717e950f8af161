"""Programs as users run them: what they print and log, their own classes, files and packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sparkkit import (
    WORD_COUNT,
    WORD_COUNT_LINES,
    run_script,
    without_subtask,
    write_script,
)

from firesteel.errors import FULL_TRACE

ONE_AFTER_THE_OTHER = (
    """
    import atexit

    def report():
        from pyspark import SparkContext
        state = SparkContext._active_spark_context._jvm.org.apache.spark.sql.execution.streaming.state
        print("in use:", getattr(getattr(state, "StateStore$"), "MODULE$").isMaintenanceRunning())

    # What is registered first to be done at the exit is done last: it sees what Firesteel did.
    atexit.register(report)
"""
    + WORD_COUNT
    + """
    report()

    from dataclasses import dataclass

    @dataclass(frozen=True)
    class City:
        name: str

    @dataclass(frozen=True)
    class Visit:
        city: City
        count: int

    def add(a, b):
        return Visit(a.city, a.count + b.count)

    def parse(line):
        return int(line)

    if __name__ == "__main__":
        visits = [Visit(City(name), n) for n, name in enumerate(["Rome", "Oslo", "Rome", "Rome"])]
        with env.from_collection(visits).key_by(lambda v: v.city).reduce(add).execute_and_collect() as records:
            for visit in sorted(records, key=lambda v: (v.city.name, v.count)):
                assert type(visit) is Visit
                print(visit.city.name, visit.count)
        env.from_collection(["1", "x"]).map(parse).set_parallelism(1).filter(lambda n: False).print()
        env.execute("numbers")
"""
)
"""Three jobs of one program, of which the last one fails."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """The program, what it printed and what it wrote to standard error, without any logging."""
    path = write_script(tmp_path_factory.mktemp("scripts"), ONE_AFTER_THE_OTHER)
    done = run_script(path, **{FULL_TRACE: None})
    assert done.returncode == 1, done.stderr
    return path, done.stdout.splitlines(), done.stderr


def test_without_logging_there_is_nothing_but_the_result(shown: tuple[Path, list[str], str]) -> None:
    _, lines, errors = shown
    assert without_subtask("\n".join(lines[:6])) == WORD_COUNT_LINES
    assert all(re.match(r"[12]> ", line) for line in lines[:6])
    assert len(lines) == 6 + 1 + 4 + 1
    # Nor anything that Spark shows in other programs: its log, and how far its stages are.
    assert not re.search(r" (INFO|WARN) |Using Spark's default|Setting default log level|\[Stage ", errors), errors


def test_the_state_stores_are_closed_before_the_jvm_ends(shown: tuple[Path, list[str], str]) -> None:
    _, lines, _ = shown
    assert (lines[6], lines[-1]) == ("in use: True", "in use: False")


def test_classes_of_the_script_are_records_and_keys(shown: tuple[Path, list[str], str]) -> None:
    _, lines, _ = shown
    assert lines[7:11] == ["Oslo 1", "Rome 0", "Rome 2", "Rome 5"]


def test_a_failure_is_short_and_has_the_users_own_frame(shown: tuple[Path, list[str], str]) -> None:
    path, _, errors = shown
    at = {line.strip(): number for number, line in enumerate(path.read_text().splitlines(), 1)}
    built = at['env.from_collection(["1", "x"]).map(parse).set_parallelism(1).filter(lambda n: False).print()']
    told = (
        "firesteel.errors.JobExecutionError: Operator 'Map' failed in subtask 0.\n"
        f"  operator  Map, built at {path}:{built}\n"
        f"  raised    at {path}:{at['return int(line)']} in parse: return int(line)\n"
        "  element   'x'\n"
        "  ValueError: invalid literal for int() with base 10: 'x'\n"
    )
    assert told in errors, errors
    assert f'File "{path}", line {built + 1}, in <module>' in errors
    # A JVM may write something of its own before and after it.
    before, _, trace = errors[: errors.index(told) + len(told)].rpartition("Traceback (most recent call last):\n")
    assert len(trace.splitlines()) <= 11, errors
    assert "Traceback" not in before, errors
    assert "firesteel-failure" not in errors


def test_building_a_program_does_not_load_spark(tmp_path: Path) -> None:
    program = """
        import sys
        import firesteel.datastream
        from firesteel.datastream import StreamExecutionEnvironment
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).key_by(lambda n: n).reduce(lambda a, b: a).print()
        env.get_execution_plan()
        print(sorted(name for name in ("pyspark", "py4j", "pandas", "pyarrow") if name in sys.modules))
    """
    assert run_script(write_script(tmp_path, program)).stdout == "[]\n"
