"""Every program of ``programs/`` must print what PyFlink printed when it was recorded.

The expected lines are PyFlink's real output (``tools/oracle.py record``), so PyFlink need not be installed.
All programs run in this process, each as ``__main__``: classes that a script defines may be keys and records. They run
in memory, and those that are about more than operators also on Spark: how records travel, and what is printed. For the
others Spark is tested elsewhere: state, time, windows, joins, asynchronous requests, custom partitioning and what a
function is told by the samples of ``tests/semantics``, unions, side outputs, several keyed stages and the order of
records in batch mode by ``tests/engine``, ``shuffle`` and ``rebalance`` by ``tests/recovery``, broadcast state by an
example. ``--all-engines`` runs all of them there.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest

PROGRAMS = sorted(oracle.PROGRAMS.glob("*.py"))


def test_each_program_is_recorded_and_each_record_has_a_program() -> None:
    assert [path.stem for path in sorted(oracle.EXPECTED.glob("*.txt"))] == [path.stem for path in PROGRAMS]


def _on_spark(*programs: str) -> Callable[[Any], Any]:
    def mark(test: Any) -> Any:
        for program in programs:
            test = pytest.mark.spark_sample(program=program)(test)
        return test

    return mark


@pytest.mark.both_engines
@_on_spark("word_count_streaming", "print_typed_values", "key_types")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_prints_what_pyflink_prints(
    program: Path, engine: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "memory":
        monkeypatch.setenv("FIRESTEEL_MASTER", engine)
    runpy.run_path(str(program), run_name="__main__")
    printed = capfd.readouterr().out
    actual = oracle.Rules.of(program.read_text()).normalise(printed)
    expected = oracle.expected_of(program).read_text().splitlines()
    assert actual == expected
