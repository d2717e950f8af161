"""A case that fails or hangs does not stop the others, and the tables say what happened."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import grid, report, runner
from benchmarks.__main__ import arguments, complete_groups, steps
from benchmarks.cases import ENGINES, FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK
from benchmarks.catalogue import CASES, GROUPS

CASE = CASES["state_map_1m"]

# By a shell, which is there at once however busy the machine is.
HANGS = "sleep 600 & echo $! > $0; sleep 600"


def run_program(monkeypatch: pytest.MonkeyPatch, code: str) -> dict[str, Any]:
    monkeypatch.setattr(runner, "command_of", lambda case, engine: [sys.executable, "-c", code])
    return runner.run(CASE, ENGINES[FIRESTEEL], 10, 1, 300, show=print)


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        return False


def test_lines_of_progress_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_program(monkeypatch, "print('# half'); print('noise'); print('{\"rate\": 3}')")
    assert result == {"rate": 3}
    assert capsys.readouterr().out == "half\n"


def test_a_crash_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ZeroDivisionError: division by zero" in run_program(monkeypatch, "1 / 0")["error"]


def test_silence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no JSON line" in run_program(monkeypatch, "pass")["error"]


@pytest.mark.skipif(not os.path.exists("/proc"), reason="processes are found in /proc")
def test_what_hangs_ends_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "command_of", lambda case, engine: ["sh", "-c", HANGS, str(tmp_path / "pid")])
    result = runner.run(CASE, ENGINES[FIRESTEEL], 10, 1, 2, show=print)
    assert result == {"error": "TimeoutError: given up after 2 s"}
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def test_a_group_is_its_cases() -> None:
    options = arguments(["--group", "windows"])
    assert {case.name for case, _ in steps(options)} == {case.name for case in GROUPS["windows"]}
    assert complete_groups(options) == ["windows"]
    assert complete_groups(arguments([])) == list(GROUPS)
    assert complete_groups(arguments(["--group", "windows", "--quick"])) == []
    assert complete_groups(arguments(["--group", "windows", "--engines", FIRESTEEL])) == []
    assert complete_groups(arguments(["--cases", "window_join"])) == []


MEMORY = {"largest_worker_mib": 100.0, "jvm_mib": 2000.0, "workers_mib": [100.0]}
RESULTS: report.Results = {
    "state_map_1m": {
        FIRESTEEL: {"rate": 400.0, "rates": [400.0], "records": 10, "memory": MEMORY},
        FIRESTEEL_ROCKSDB: {"rate": 100.0, "rates": [100.0], "records": 10, "memory": MEMORY},
        PYFLINK: {"rate": 20.0, "rates": [20.0], "records": 10, "memory": MEMORY},
    },
    "state_list_1m": {FIRESTEEL: {"error": "RuntimeError: exit code 1:\nout | of memory"}},
    "large_state": {
        FIRESTEEL_ROCKSDB: {
            "few_keys": {"batch_ms": 500.0},
            "many_keys": {"keys": 1000, "fill_seconds": 60.0, "batch_ms": 700.0, "memory": MEMORY},
            "cost": 1.4,
        },
        FIRESTEEL: {"skipped": "no memory"},
    },
    "window_join": {FIRESTEEL: {"rate": 50.0, "rates": [50.0], "records": 10, "memory": MEMORY}},
}


def test_the_tables_of_groups() -> None:
    text = grid.grids(RESULTS)
    rows = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in text.splitlines()}
    peak = "100 and 2,000"
    rates_and_ratios = ["400", "100", "20", "20.00", "5.00", "0.25"]
    assert rows["map update and read, 1,000,000 keys"] == [*rates_and_ratios, peak, peak, peak]
    assert rows["list append, 1,000,000 keys"] == ["failed: out / of memory", *["-"] * 8]
    assert rows["firesteel_rocksdb"] == ["1,000", "60", "700", "500", "1.40", peak]
    assert rows["firesteel"][:2] == ["no memory", "no memory"]
    assert rows["window join, 10,000 keys"] == ["50", "-", "-", peak, "-"]


def test_the_ratios() -> None:
    found = {(ratio.case, ratio.label): (ratio.value, ratio.met) for ratio in report.ratios(RESULTS)}
    assert found == {
        ("state_map_1m", "firesteel / pyflink"): (20.0, None),
        ("state_map_1m", "rocksdb / hashmap"): (0.25, None),
        ("state_map_1m", "firesteel_rocksdb / pyflink"): (5.0, None),
        ("large_state", "firesteel_rocksdb: batch among many / few keys"): (1.4, False),
    }
    assert "MISSED" in report.table(RESULTS)


def test_the_command_starts_without_the_folder_of_programs_on_the_path() -> None:
    """Programs import each other from their own folder, which tests have on their path, too."""
    repository = Path(runner.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-m", "benchmarks", "--help"]
    assert subprocess.run(command, cwd=repository, env=environment, capture_output=True).returncode == 0
