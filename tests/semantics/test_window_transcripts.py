"""Windows, as transcripts: the files of ``windows/`` say what comes in and what must come out after each line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from windowkit import Case, case_of, play

FILES = sorted((Path(__file__).parent / "windows").glob("*.yaml"))
CASES = {
    f"{path.stem}: {entry['case']}": case_of(entry) for path in FILES for entry in yaml.safe_load(path.read_text())
}
EVENT_TIME = {name: case for name, case in CASES.items() if not case.by_the_clock}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
cases_without_clock = pytest.mark.parametrize("case", EVENT_TIME.values(), ids=EVENT_TIME)


def described(case: Case) -> str:
    return f"{case.name}\n  {case.stream}"


@every_case
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_each_line_gives_what_it_says(case: Case, backend: str) -> None:
    stage, emitted = play(case, backend=backend)
    for number, (step, came) in enumerate(zip(case.steps, emitted, strict=True), 1):
        expected = step.out
        if case.order == "free":
            expected, came = sorted(expected), sorted(came)
        assert came == expected, f"{described(case)}\n  line {number}: {step.event}"
    assert stage.dropped == case.dropped, described(case)


@every_case
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_nothing_is_left_when_all_windows_have_ended(case: Case, backend: str) -> None:
    stage, _ = play(case, backend=backend)
    if case.leaves:
        assert stage.left(), "the case says that something is left, nothing is"
    else:
        assert stage.left() == []
        assert stage.timers() == []


@every_case
@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_parallelism_changes_nothing_but_the_order_of_keys(case: Case, parallelism: int, backend: str) -> None:
    _, emitted = play(case, parallelism, backend)
    for step, came in zip(case.steps, emitted, strict=True):
        assert sorted(came) == sorted(step.out), described(case)


@cases_without_clock
@pytest.mark.parametrize("batch", [2, 3, 100])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_how_lines_share_micro_batches_changes_nothing(case: Case, batch: int, backend: str) -> None:
    stage, emitted = play(case, batch=batch, backend=backend)
    came, expected = [line for lines in emitted for line in lines], case.outputs()
    if case.order == "free" or ".get_side_output(" in case.stream or "with_late" in case.stream:
        # Within a batch the side output has an order of its own.
        came, expected = sorted(came), sorted(expected)
    assert came == expected, described(case)
    assert stage.dropped == case.dropped
    assert bool(stage.left()) == case.leaves


@every_case
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_failures_change_nothing(case: Case, parallelism: int, backend: str) -> None:
    """Every line's batch fails when it is done, and is repeated by new tasks from what the stores held before."""
    stage, emitted = play(case, parallelism, backend, failing=True)
    for step, came in zip(case.steps, emitted, strict=True):
        assert sorted(came) == sorted(step.out), described(case)
    assert stage.dropped == case.dropped


@pytest.mark.both_engines
@pytest.mark.spark_sample(
    case="lateness: late records to a side output, none is dropped", backend="rocksdb", parallelism=3
)
@pytest.mark.spark_sample(
    case="sessions: a continuous trigger goes on in the merged window", backend="hashmap", parallelism=3
)
@pytest.mark.spark_sample(case="evictors: an evictor in windows that merge", backend="rocksdb", parallelism=1)
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@cases_without_clock
def test_on_an_engine(run: Any, case: Case, parallelism: int, backend: str) -> None:
    came = run(case.build, parallelism, {"state.backend.type": backend})
    assert sorted(map(str, came)) == sorted(case.outputs())
