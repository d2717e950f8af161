"""Every program that Firesteel shares with PyFlink does its work: run small, on the engine without Spark."""

from __future__ import annotations

import json
import re
import runpy
import sys
import time
from pathlib import Path
from typing import Protocol

import opensearch_server
import pytest

from benchmarks.cases import ENGINES, FIRESTEEL, Case
from benchmarks.catalogue import CASES, GROUPS
from benchmarks.programs import nexmark_events as events
from benchmarks.runner import PROGRAMS, command_of

RATES = [case for group in ("state", "windows", "nexmark") for case in GROUPS[group] if case.kind == "rate"]
EVENTS = 10_000
BIDS = EVENTS * 46 // 50


class RunCase(Protocol):
    """The signature of the fixture ``run``."""

    def __call__(self, case: Case, *arguments: str) -> list[str]: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCase:
    """Runs the program of a case with more arguments; returns the lines it printed, without the subtask's number."""

    def run_case(case: Case, *arguments: str) -> list[str]:
        monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
        monkeypatch.syspath_prepend(str(PROGRAMS))
        _, program, *own = command_of(case, ENGINES[FIRESTEEL])
        monkeypatch.setattr(sys, "argv", [program, *own, *arguments])
        # What programs share may have read the arguments of the one before.
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{PROGRAMS}/"):
                monkeypatch.delitem(sys.modules, name)
        runpy.run_path(program, run_name="__main__")
        return [re.sub(r"^\d+> ", "", line) for line in capsys.readouterr().out.splitlines()]

    return run_case


def numbers(lines: list[str]) -> list[int]:
    """The last number of each line."""
    return [int(re.findall(r"-?\d+", line)[-1]) for line in lines]


@pytest.mark.parametrize("kind", ["list", "map", "aggregating", "broadcast", "co_process"])
def test_state(run: RunCase, kind: str) -> None:
    lines = run(CASES[f"state_{kind}_10k"], "--keys", "100", "--records", "1000", "--show")
    if kind == "list":
        # Ten of the keys are due for reading with one of their ten records.
        assert len(lines) == 10
    elif kind == "co_process":
        # Every record of the stream that comes second meets one of the first.
        assert len(lines) == 500
    else:
        assert len(lines) == 1_000
    if kind == "map":
        assert set(numbers(lines)) == {1}
    if kind == "broadcast":
        # A key meets one rule, which adds from 0 to 9, ten times.
        assert max(numbers(lines)) == 90


@pytest.mark.parametrize(("kind", "windows"), [("tumbling", 1), ("sliding", 6), ("session", 1)])
def test_windows_count_every_event(run: RunCase, kind: str, windows: int) -> None:
    lines = run(CASES[f"window_{kind}"], "--records", "5000", "--show")
    assert sum(numbers(lines)) == 5_000 * windows


def test_window_join(run: RunCase) -> None:
    """Both streams hold the same events within four seconds: each user meets itself."""
    assert len(run(CASES["window_join"], "--records", "4000", "--show")) == 2_000


def test_interval_join(run: RunCase) -> None:
    assert len(run(CASES["window_interval_join"], "--records", "4000", "--show")) == 2_000


def test_a_pattern_finds_what_a_function_by_hand_does(run: RunCase) -> None:
    small = ("--keys", "100", "--records", "5000", "--show")
    found = sorted(run(CASES["cep_pattern"], *small))
    assert len(found) == 92
    assert found == sorted(run(CASES["cep_by_hand"], *small))


def test_every_change_of_groups(run: RunCase) -> None:
    """50 rows of each of 100 keys: an insertion, and 49 times what was and what is; or a few of them."""
    small = ("--keys", "100", "--records", "5000", "--show")
    every = run(CASES["sql_group_10k"], *small)
    assert len(every) == 100 * 99
    consolidated = run(CASES["sql_group_10k_mini_batch"], *small)
    assert len(consolidated) < len(every) // 5
    for lines in (every, consolidated):
        assert sum(1 for line in lines if line.startswith("+U") and ", 50, " in line) == 100


def test_functions_in_sql(run: RunCase) -> None:
    expected = sorted(f"+I[{3 * n + 1}, {n}]" for n in range(2_000))
    for kind in ("general", "called", "pandas"):
        assert sorted(run(CASES[f"sql_function_{kind}"], "--records", "2000", "--show")) == expected
    groups = run(CASES["sql_function_aggregate"], "--keys", "10", "--records", "2000", "--show")
    last = {line.split("[")[1].split(",")[0]: line for line in groups if line.startswith(("+I", "+U"))}
    assert sum(int(line.rstrip("]").rpartition(", ")[2]) for line in last.values()) == sum(range(2_000))


@pytest.mark.parametrize("case", [case for case in RATES if case.program == "nexmark"], ids=lambda case: case.name)
def test_nexmark(run: RunCase, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    # Processing time stands still, or a window of it might end within the test.
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    lines = run(case, "--records", str(EVENTS), "--show")
    query = case.name.removeprefix("nexmark_")
    if query in ("q0", "q1"):
        assert len(lines) == BIDS
    elif query == "q11":
        assert sum(numbers(lines)) == BIDS
    elif query == "q7":
        highest = max(events.bid(number)[2] for number in range(EVENTS) if number % 50 > 3)
        assert [line.split(",")[2] for line in lines] == [str(highest)]
    elif query == "q12":
        # The windows of processing time do not end before the job does.
        assert lines == []
    else:
        assert 0 < len(lines) < BIDS


def test_events_come_in_nexmarks_proportions() -> None:
    kinds = (events.persons, events.auctions, events.bids)
    made = [sum(len(list(kind(number))) for number in range(5_000)) for kind in kinds]
    assert made == [100, 300, 4_600]


def test_bids_are_for_auctions_and_persons_that_there_are() -> None:
    auctions = {events.auction(n)[0] for n in range(5_000) if 1 <= n % 50 <= 3}
    persons = {events.person(n)[0] for n in range(5_000) if n % 50 == 0}
    bids = [events.bid(n) for n in range(5_000) if n % 50 > 3]
    assert {bid[0] for bid in bids} <= auctions
    assert {bid[1] for bid in bids} <= persons
    assert {events.auction(n)[7] for n in range(5_000) if 1 <= n % 50 <= 3} <= persons


def test_a_measurement_is_one_json_line_after_the_lines_of_progress(run: RunCase) -> None:
    *progress, last = run(CASES["state_map_10k"], "--records", "5000", "--repeats", "2")
    assert [line.split(":")[0] for line in progress] == [
        "# 1,000 records",
        *["# 1,000 records", "# 5,000 records"] * 2,
    ]
    result = json.loads(last)
    assert result["records"] == 5_000
    assert len(result["large"]["seconds"]) == 2
    assert set(result["memory"]) == {"largest_worker_mib", "jvm_mib", "workers_mib"}


def test_a_slow_engine_gets_fewer_records(run: RunCase) -> None:
    result = json.loads(run(CASES["state_map_10k"], "--records", "5000", "--seconds", "0.000001")[-1])
    assert result["records"] == 5


def test_every_case_has_its_programs() -> None:
    programs = {Path(command_of(case, ENGINES[name])[1]) for case in CASES.values() for name in case.engines}
    assert [program.name for program in programs if not program.exists()] == []


def test_metrics(run: RunCase) -> None:
    *turns, last = run(CASES["metrics"], "--records", "2000", "--repeats", "2")
    result = json.loads(last)
    assert len(turns) == len(result["with_seconds"]) == len(result["without_seconds"]) == 2
    assert result["reports"] >= 2, "one at least when a job ends"
    assert result["median_ratio"] > 0
    assert 0 < result["direct_share"] < 1


def test_connectors(run: RunCase) -> None:
    (line,) = [line for line in run(CASES["connector_sqlite"], "--records", "2000", "--repeats", "1") if line[0] == "{"]
    found = json.loads(line)
    assert [name for name in found if name != "records"] == [
        "into, at least once",
        "into, exactly once",
        "into, upserts",
        "out of, in parts",
        "out of, as a whole",
        "out of, as it grows",
    ]
    assert min(one["share"] for name, one in found.items() if name != "records") > 0


@pytest.mark.parametrize("missing", [None, "no OpenSearch: there is no Java"])
def test_a_server_that_cannot_be_had_is_one_line(
    run: RunCase, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    def fetch() -> None:
        raise RuntimeError("Maven could not fetch it:\n[ERROR] a page of reasons")

    monkeypatch.setattr(opensearch_server, "why_not", lambda: missing)
    monkeypatch.setattr(opensearch_server, "jars", fetch)
    (line,) = run(CASES["connector_opensearch"], "--records", "10", "--repeats", "1")
    assert json.loads(line) == {"skipped": missing or "Maven could not fetch it"}
