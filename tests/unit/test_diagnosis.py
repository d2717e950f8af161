"""The diagnosis of jobs that were made up: one picture for each thing that it can say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firesteel.cluster.diagnosis import Batch, Failure, Operator, Picture, Subtask, diagnose

NOW = 1_700_000_000_000
SECOND = 1_000


def batches(
    count: int, duration: int, records: int = 100, every: int | None = None, ago: int = 0, **parts: int
) -> tuple[Batch, ...]:
    """Micro-batches up to now, one right after the other unless ``every`` says otherwise."""
    step = every or duration
    began = NOW - ago - count * step
    return tuple(
        Batch(number, began + number * step, duration, records, tuple(parts.items())) for number in range(count)
    )


SOURCE = Operator("orders", (Subtask(0, 1_000, NOW), Subtask(1, 1_000, NOW)), is_source=True, busy=0.1, share=0.05)
PARSE = Operator("parse", (Subtask(0, 1_000, NOW), Subtask(1, 1_000, NOW)), busy=0.2, share=0.15)
COUNT = Operator("count", (Subtask(0, 1_000, NOW), Subtask(1, 1_000, NOW)), keyed=True, busy=0.3, share=0.8, stage=1)
HEALTHY = Picture(
    "RUNNING",
    NOW,
    NOW - 100 * SECOND,
    operators=(SOURCE, PARSE, COUNT),
    batches=batches(20, 200, every=SECOND),
    watermark=NOW,
)
BAD = Failure(NOW - SECOND, "ValueError: not json", "parse", "orders.py:12")


def said(picture: Picture) -> tuple[str, str, str | None, str]:
    found = diagnose(picture)
    return found.level, found.rule, found.operator, found.text


def test_a_job_that_keeps_up_is_healthy() -> None:
    assert said(HEALTHY) == ("good", "", None, "Healthy: 100 records a second, a micro-batch takes 200 ms.")


def test_a_job_that_failed_names_operator_and_line() -> None:
    level, rule, operator, text = said(replace(HEALTHY, status="FAILED", failures=(BAD,)))
    assert (level, rule, operator) == ("bad", "failed", "parse")
    assert text == "The job failed in operator 'parse' at orders.py:12: ValueError: not json"


@pytest.mark.parametrize("status", ["FINISHED", "CANCELED", "SUSPENDED"])
def test_a_job_that_ended_is_not_slow(status: str) -> None:
    busy = replace(COUNT, busy=0.99, backlog=10)
    level, rule, _, _ = said(replace(HEALTHY, status=status, operators=(busy,)))
    assert (level, rule) == ("idle", "ended")


def test_the_same_failure_again_and_again() -> None:
    again = replace(
        HEALTHY, failures=(BAD, replace(BAD, timestamp=NOW - 5 * SECOND)), batches=batches(5, 200, ago=9_000)
    )
    level, rule, operator, text = said(again)
    assert (level, rule, operator) == ("bad", "fails_again_and_again", "parse")
    assert text == (
        "The job fails again and again in operator 'parse' at orders.py:12, 2 times so far: ValueError: not json"
    )


def test_failures_of_long_ago_do_not_count() -> None:
    old = tuple(replace(BAD, timestamp=NOW - minutes * 60_000) for minutes in (5, 6))
    assert said(replace(HEALTHY, failures=old))[0] == "good"


def test_two_different_failures_are_not_again_and_again() -> None:
    other = Failure(NOW - 5 * SECOND, "OSError: disk full", "write", "orders.py:40")
    assert said(replace(HEALTHY, failures=(BAD, other)))[0] == "good"


def test_a_restart_says_why() -> None:
    level, rule, _, text = said(replace(HEALTHY, status="RESTARTING", failures=(BAD,)))
    assert (level, rule) == ("warning", "restarting")
    assert text.startswith("The job is being restarted after a failure in operator 'parse'")


def test_a_job_without_a_batch_is_starting() -> None:
    level, rule, _, text = said(Picture("RUNNING", NOW, NOW - 8 * SECOND))
    assert (level, rule) == ("idle", "starting")
    assert text == "The job is starting, 8.0 s so far: no micro-batch has begun."


def test_a_batch_that_does_not_end() -> None:
    stuck = replace(HEALTHY, batches=batches(20, 200, ago=90 * SECOND), current=(20, NOW - 90 * SECOND))
    level, rule, operator, text = said(stuck)
    assert (level, rule, operator) == ("bad", "batch_stuck", "count")
    assert text == (
        "Micro-batch 20 does not end: it runs for 1 min 30 s, while those before took 200 ms. "
        "Look at operator 'count' first, which has worked longest."
    )


def test_a_batch_that_is_long_where_batches_are_long_is_not_stuck() -> None:
    long = replace(HEALTHY, batches=batches(5, 30 * SECOND), current=(5, NOW - 40 * SECOND))
    assert said(long)[1] != "batch_stuck"


def test_the_source_that_holds_event_time_back() -> None:
    late = Operator("clicks", (Subtask(0, 10, NOW), Subtask(1, 10, NOW - 600 * SECOND)), is_source=True)
    level, rule, operator, text = said(replace(HEALTHY, operators=(SOURCE, late, COUNT)))
    assert (level, rule, operator) == ("warning", "event_time_held_back", "clicks")
    assert text == (
        "Event time is held back by subtask 1 of source 'clicks', which is 10 min 0 s behind the others: windows and "
        "timers wait for it."
    )


def test_a_source_without_any_event_time() -> None:
    silent = Operator("heartbeats", (Subtask(0, 0, None),), is_source=True)
    level, rule, operator, text = said(replace(HEALTHY, operators=(SOURCE, silent, COUNT), watermark=None))
    assert (level, rule, operator) == ("bad", "event_time_held_back", "heartbeats")
    assert text.startswith("Event time stands still: source 'heartbeats' has given no record with a time yet")


def test_event_time_that_ended_holds_nothing_back() -> None:
    over = Operator("rates", (Subtask(0, 10, (1 << 63) - 1),), is_source=True)
    assert said(replace(HEALTHY, operators=(SOURCE, over, COUNT)))[0] == "good"


BUSY = batches(20, 990, every=SECOND)


def test_skew_names_the_key_groups() -> None:
    hot = replace(
        COUNT, subtasks=(Subtask(0, 100, NOW), Subtask(1, 9_700, NOW), Subtask(2, 100, NOW), Subtask(3, 100, NOW))
    )
    level, rule, operator, text = said(replace(HEALTHY, operators=(SOURCE, hot), batches=BUSY))
    assert (level, rule, operator) == ("warning", "skewed", "count")
    assert text == (
        "Keys are spread unevenly: subtask 1 of operator 'count' (key groups 32 to 63) gets 97% of its records; spread "
        "evenly, each of 4 subtasks would get 25%."
    )


def test_skew_does_not_matter_where_nothing_waits() -> None:
    hot = replace(COUNT, subtasks=(Subtask(0, 100, NOW), Subtask(1, 9_900, NOW)))
    assert said(replace(HEALTHY, operators=(SOURCE, hot)))[0] == "good"


def test_an_operator_that_works_all_the_time() -> None:
    slow = replace(COUNT, busy=0.93)
    level, rule, operator, text = said(
        replace(HEALTHY, operators=(replace(SOURCE, backlog=12_000), PARSE, slow), batches=BUSY)
    )
    assert (level, rule, operator) == ("warning", "bottleneck", "count")
    assert text == (
        "Operator 'count' is the bottleneck: it works 93% of the time, while 12,000 records wait in source 'orders'."
    )


def test_an_operator_that_has_most_of_the_work() -> None:
    level, rule, operator, text = said(replace(HEALTHY, batches=batches(20, 990, every=SECOND, tasks=900, results=50)))
    assert (level, rule, operator) == ("warning", "bottleneck", "count")
    assert text == "Operator 'count' is the bottleneck: 80% of all operators' working time is its own."


def test_time_that_goes_into_something_else() -> None:
    level, rule, operator, text = said(
        replace(HEALTHY, batches=batches(20, 990, every=SECOND, tasks=90, sink_commit=800, planning=60))
    )
    assert (level, rule, operator) == ("warning", "overhead", None)
    assert text == (
        "84% of a micro-batch of 990 ms goes into commits of sinks, not into operators: what they write to is slow, or "
        "batches are small."
    )


def test_a_backlog() -> None:
    waiting = replace(SOURCE, backlog=60_000)
    level, rule, operator, text = said(replace(HEALTHY, operators=(waiting, PARSE, replace(COUNT, share=0.5))))
    assert (level, rule, operator) == ("warning", "backlog", "orders")
    assert text == (
        "The job is behind: 60,000 records wait in source 'orders', 10 min 0 s of work at 100 records a second."
    )


def test_nothing_to_read_is_not_slow() -> None:
    quiet = replace(HEALTHY, batches=batches(20, 200, every=SECOND, ago=300 * SECOND))
    level, rule, operator, text = said(quiet)
    assert (level, rule, operator) == ("idle", "idle", "orders")
    assert text.startswith("The job waits for input: source 'orders' has given no record for 5 min")
