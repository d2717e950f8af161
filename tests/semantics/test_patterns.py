"""Patterns of events in whole programs: on both engines, in batches of all sizes, through failures and savepoints."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from savepointkit import Halves

from firesteel.cep import CEP, AfterMatchSkipStrategy, Pattern
from firesteel.common import Configuration, Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.testing import run_pipeline

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
UNPAID = OutputTag("unpaid")
Order = tuple[int, str, int]
"""Number, what happened, when."""

EVENTS: list[Order] = sorted(
    [
        event
        for number in range(12)
        for event in (
            (number, "created", 10 * number),
            (number, "changed", 10 * number + 3),
            (number, "paid", 10 * number + 5 + 8 * (number % 3)),
        )
    ],
    key=lambda event: event[2],
)
"""Each third is paid after 5, 13 and 21 milliseconds."""
PAID = [(number, 10 * number + 5 + 8 * (number % 3)) for number in range(12) if number % 3 < 2]
CANCELLED = [(number, 10 * number + 15) for number in range(12) if number % 3 == 2]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


ASCENDING = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())


def number_of(event: Order) -> int:
    return event[0]


def is_what(what: str) -> Any:
    return lambda event: event[1] == what


def orders(timed: DataStream) -> DataStream:
    """Orders that are paid within 15 milliseconds, and those that are not."""
    pattern = Pattern.begin("created", AfterMatchSkipStrategy.skip_past_last_event()).where(is_what("created"))
    pattern = pattern.followed_by("paid").where(is_what("paid")).within(Duration.of_millis(15))
    matches = CEP.pattern(timed.key_by(number_of), pattern).select(
        UNPAID,
        lambda match, end: ("cancelled", match["created"][0][0], end),
        lambda match: ("paid", match["paid"][0][0], match["paid"][0][2]),
    )
    matches.uid("orders")
    return matches.union(matches.get_side_output(UNPAID))


EXPECTED = sorted([("paid", *one) for one in PAID] + [("cancelled", *one) for one in CANCELLED])


@pytest.mark.parametrize("records", ["1", "7", "1000"])
@BACKENDS
@pytest.mark.both_engines
@pytest.mark.spark_sample(records="7", backend="rocksdb", parallelism=2)
def test_orders(run: Any, parallelism: int, records: str, backend: str) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return orders(env.from_collection(EVENTS).assign_timestamps_and_watermarks(ASCENDING).set_parallelism(1))

    config = {"state.backend.type": backend, "firesteel.batch.max-records": records}
    assert sorted(run(build, parallelism, config)) == EXPECTED


def test_orders_in_batch_mode(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return orders(env.from_collection(EVENTS).assign_timestamps_and_watermarks(ASCENDING))

    assert sorted(run(build, parallelism, mode=RuntimeExecutionMode.BATCH)) == EXPECTED


@pytest.mark.parametrize("place", [1, 10, 25])
def test_partial_matches_through_failures(tmp_path: Path, place: int) -> None:
    def fragile(event: Order) -> Order:
        # Each attempt has a copy of the function: what it remembers has to be outside.
        if event == EVENTS[place] and len(list(tmp_path.iterdir())) < 2:
            (tmp_path / uuid.uuid4().hex).touch()
            raise OSError("twice")
        return event

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return orders(env.from_collection(EVENTS).map(fragile).assign_timestamps_and_watermarks(ASCENDING))

    config = {"firesteel.batch.max-records": "4"}
    assert sorted(run_pipeline(build, parallelism=2, restarts=2, config=config)) == EXPECTED
    assert len(list(tmp_path.iterdir())) == 2


@BACKENDS
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
def test_partial_matches_in_a_savepoint_are_rescaled(halves: Halves, backend: str, before: int, after: int) -> None:
    steps = [EVENTS[start : start + 4] for start in range(0, len(EVENTS), 4)]

    def build(stream: DataStream) -> DataStream:
        return orders(stream.assign_timestamps_and_watermarks(ASCENDING))

    found = halves.save(build, steps[:4], before, state_backend_type=backend)
    assert 0 < len(found) < len(EXPECTED)
    found += halves.resume(build, steps, after, state_backend_type=backend)
    assert sorted(found) == EXPECTED


def test_the_most_partial_matches_of_a_key_are_measured() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    env.set_parallelism(1)
    happened = [(number % 2, "created", number) for number in range(7)] + [(1, "paid", 9)]
    timed = env.from_collection(happened).assign_timestamps_and_watermarks(ASCENDING)
    pattern = Pattern.begin("created").where(is_what("created")).followed_by_any("paid").where(is_what("paid"))
    CEP.pattern(timed.key_by(number_of), pattern).select(lambda match: 1).filter(lambda one: False).print()
    assert env.execute().get_all_accumulator_results()["CepOperator.0.maxPartialMatchesPerKey"] == 4
