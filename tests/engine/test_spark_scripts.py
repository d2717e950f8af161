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


def test_without_logging_there_is_nothing_but_the_result(tmp_path: Path) -> None:
    done = run_script(write_script(tmp_path, WORD_COUNT))
    assert done.returncode == 0, done.stderr
    assert without_subtask(done.stdout) == WORD_COUNT_LINES
    assert all(re.match(r"[12]> ", line) for line in done.stdout.splitlines())
    assert done.stderr == ""


@pytest.mark.parametrize("ui", [False, True], ids=["without Spark's page", "with Spark's page"])
def test_with_logging_one_line_at_the_start_and_one_at_the_end(ui: bool, tmp_path: Path) -> None:
    head = "    import logging\n    logging.basicConfig(level=logging.INFO)\n"
    settings = {"FIRESTEEL_SETTINGS": "firesteel.spark.ui=true\x1fspark.ui.port=0"} if ui else {}
    done = run_script(write_script(tmp_path, head + WORD_COUNT), **settings)
    assert done.returncode == 0, done.stderr
    assert without_subtask(done.stdout) == WORD_COUNT_LINES
    ours = [line for line in done.stderr.splitlines() if line.startswith("INFO:firesteel:")]
    assert len(ours) == 2, done.stderr
    assert re.fullmatch(
        r"INFO:firesteel:job 'word count' \([0-9a-f]{32}\) starts in STREAMING mode, parallelism 2, on local\[\d+\]"
        + (r", Spark's page at http://(127\.0\.0\.1|localhost):\d+" if ui else ""),
        ours[0],
    )
    end = r"INFO:firesteel:job 'word count' finished after [\d.]+ s: 3 records, [\d,]+ records/s, \d+ batches"
    assert re.fullmatch(end, ours[1])
    # Python's root logger at INFO hears py4j too; Spark itself says nothing.
    others = [line for line in done.stderr.splitlines() if line not in ours and not line.startswith("INFO:py4j")]
    assert others == []


def test_the_state_stores_are_closed_before_the_jvm_ends(tmp_path: Path) -> None:
    """What is registered first to be done at the exit is done last: it sees what Firesteel did."""
    head = """
    import atexit

    def report():
        from pyspark import SparkContext
        state = SparkContext._active_spark_context._jvm.org.apache.spark.sql.execution.streaming.state
        print("in use:", getattr(getattr(state, "StateStore$"), "MODULE$").isMaintenanceRunning())

    atexit.register(report)
    """
    done = run_script(write_script(tmp_path, head + WORD_COUNT + "\n    report()"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == ["in use: True", "in use: False"]
    assert without_subtask("\n".join(lines[:-2])) == WORD_COUNT_LINES


OWN_CLASSES = """
    from dataclasses import dataclass
    from firesteel.datastream import StreamExecutionEnvironment

    @dataclass(frozen=True)
    class City:
        name: str

    @dataclass(frozen=True)
    class Visit:
        city: City
        count: int

    def add(a, b):
        return Visit(a.city, a.count + b.count)

    if __name__ == "__main__":
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        visits = [Visit(City(name), n) for n, name in enumerate(["Rome", "Oslo", "Rome", "Rome"])]
        with env.from_collection(visits).key_by(lambda v: v.city).reduce(add).execute_and_collect() as records:
            for visit in sorted(records, key=lambda v: (v.city.name, v.count)):
                assert type(visit) is Visit
                print(visit.city.name, visit.count)
"""


def test_classes_of_the_script_are_records_and_keys(tmp_path: Path) -> None:
    done = run_script(write_script(tmp_path, OWN_CLASSES))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Oslo 1", "Rome 0", "Rome 2", "Rome 5"]


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
