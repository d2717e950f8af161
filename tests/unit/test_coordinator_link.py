"""The files by which driver and coordinator tell each other what they know between batches."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.engine.coordinator import CoordinatorFeedback
from firesteel.engine.spark.attempt import StreamingAttempt
from firesteel.engine.spark.coordinator_link import CoordinatorLink, DriverLink, feedback_file


@pytest.fixture
def ends(tmp_path: Path) -> tuple[CoordinatorLink, DriverLink]:
    sources = tmp_path / "kept" / "sources"
    return CoordinatorLink(str(tmp_path), str(sources)), DriverLink(str(tmp_path), str(sources))


FEEDBACK = CoordinatorFeedback(wake_at=7, kept={"1/0": {"level": 5}}, time=3, bytes=9)


def test_before_anything_was_said_the_coordinator_may_go_on(ends: tuple[CoordinatorLink, DriverLink]) -> None:
    assert ends[1].feedback() == CoordinatorFeedback()


def test_feedback_and_instructions_come_together(ends: tuple[CoordinatorLink, DriverLink]) -> None:
    driver, coordinator = ends
    driver.report(FEEDBACK)
    assert coordinator.feedback() == FEEDBACK
    driver.hold()
    driver.drain()
    assert coordinator.feedback() == CoordinatorFeedback(7, {"1/0": {"level": 5}}, 3, True, 9, True)


def test_every_change_is_seen_however_soon_it_comes(ends: tuple[CoordinatorLink, DriverLink], tmp_path: Path) -> None:
    """The clock of a file system may tick only every few milliseconds."""
    driver, coordinator = ends
    for hold in (True, False) * 10:
        if hold:
            driver.hold()
        else:
            driver.resume()
        os.utime(tmp_path / "coordinator-instructions.json", ns=(1, 1))
        assert coordinator.feedback().hold is hold


def test_a_query_is_stopped_when_its_coordinator_knows_and_the_next_one_goes_on(
    ends: tuple[CoordinatorLink, DriverLink],
) -> None:
    """Spark waits for the coordinator's answer before a query is stopped."""
    driver, coordinator = ends
    known: list[bool] = []
    attempt: Any = StreamingAttempt.__new__(StreamingAttempt)
    attempt.shared = SimpleNamespace(link=driver)
    attempt._query = SimpleNamespace(stop=lambda: known.append(coordinator.feedback().leave))
    attempt.interrupt()
    assert known == [True]
    driver.begin_attempt()
    assert not coordinator.feedback().leave


def test_an_old_confirmation_is_not_taken_for_a_new_one(ends: tuple[CoordinatorLink, DriverLink]) -> None:
    driver, coordinator = ends
    driver.hold()
    coordinator.confirm_hold()
    assert driver.on_hold
    driver.resume()
    driver.hold()
    assert not driver.on_hold


def test_a_driver_that_is_started_anew_finds_feedback_but_no_instructions(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    sources = str(tmp_path / "sources")
    driver = CoordinatorLink(str(first), sources)
    driver.hold()
    driver.drain()
    driver.report(FEEDBACK)
    CoordinatorLink(str(second), sources).instruct()
    assert DriverLink(str(second), sources).feedback() == FEEDBACK


def test_what_an_earlier_version_has_left_is_found(tmp_path: Path) -> None:
    """By another name, in checkpoints of before."""
    former = tmp_path / "control.json"
    former.write_text(json.dumps({"wake_at": 7, "kept": {"1/0": {"level": 5}}, "time": 3, "bytes": 9}))
    assert feedback_file(str(tmp_path)) == str(former), "for those who read a checkpoint and leave it as it is"
    driver = CoordinatorLink(str(tmp_path), str(tmp_path))
    coordinator = DriverLink(str(tmp_path), str(tmp_path))
    assert coordinator.feedback() == FEEDBACK
    driver.report(CoordinatorFeedback(time=4))
    assert coordinator.feedback().time == 4
    assert not former.exists()


def test_only_the_owner_reads_them(ends: tuple[CoordinatorLink, DriverLink], tmp_path: Path) -> None:
    driver, coordinator = ends
    driver.report(FEEDBACK)
    driver.hold()
    coordinator.confirm_hold()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
