"""Every program of ``programs/`` must print what PyFlink printed when it was recorded.

The expected lines are PyFlink's real output (``tools/oracle.py record``), so PyFlink need not be installed.
All programs run in this process, on one Spark session, each as ``__main__``: classes that a script defines
may be keys and records.
"""

import runpy
from pathlib import Path

import oracle
import pytest

PROGRAMS = sorted(oracle.PROGRAMS.glob("*.py"))


def test_each_program_is_recorded_and_each_record_has_a_program() -> None:
    assert [path.stem for path in sorted(oracle.EXPECTED.glob("*.txt"))] == [path.stem for path in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_prints_what_pyflink_prints(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(program), run_name="__main__")
    printed = capfd.readouterr().out
    actual = oracle.Rules.of(program.read_text()).normalise(printed)
    expected = oracle.expected_of(program).read_text().splitlines()
    assert actual == expected
