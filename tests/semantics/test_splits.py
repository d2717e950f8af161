"""A watermark strategy on a source: each split has an event time of its own, and the slowest decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import BATCH, FOREVER, NO_TIME, Field
from savepointkit import Halves

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream import DataStream, KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Source
from firesteel.testing import Crash, ListSource, ProcessingTime, Record, Watermark, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


class Seen(KeyedProcessFunction):
    """Each record with the watermark that it meets."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


class SeenInStageZero(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def at(*moments: Any) -> list[Record]:
    """Records that are their own timestamps, or have them at their end."""
    return [Record(moment, moment[-1] if isinstance(moment, tuple) else moment) for moment in moments]


def seen_of(source: Source, strategy: WatermarkStrategy = ASCENDING) -> Any:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_source(source, strategy, "splits").key_by(lambda _: 0).process(Seen())

    return build


BOTH_GO_ON = {"slow": [at(10), at(20), at(30)], "fast": [at(100), at(110), at(120)]}


def test_the_slowest_split_decides(run: Any) -> None:
    log = run(seen_of(ListSource(BOTH_GO_ON)))
    assert log == [(10, NO_TIME), (100, NO_TIME), (20, 9), (110, 9), (30, 19), (120, 19)]


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_splits_of_one_subtask_wait_for_each_other_and_for_those_of_others(run: Any) -> None:
    """Two subtasks read, three splits and one."""
    three = {"a": [at(10), at(30), at(60)], "b": [at(50), [], at(61)], "c": [at(12), at(40), at(62)]}

    def build(env: StreamExecutionEnvironment) -> Any:
        return (
            env.from_source(ListSource(three), ASCENDING, "splits")
            .set_parallelism(2)
            .key_by(lambda _: 0)
            .process(Seen())
        )

    # Subtask 0 reads 'a' and 'c', subtask 1 'b'. A subtask's watermark stands behind its own records.
    assert run(build, 3) == [
        (10, NO_TIME),
        (12, NO_TIME),
        (50, NO_TIME),
        (30, 9),
        (40, 9),
        (60, 29),
        (62, 29),
        # Subtask 0 has read to its end and is left out.
        (61, 49),
    ]


def test_functions_chained_to_the_source_see_the_same(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_source(ListSource(BOTH_GO_ON), ASCENDING, "splits").process(SeenInStageZero())

    assert run(build) == [(10, NO_TIME), (100, NO_TIME), (20, 9), (110, 9), (30, 19), (120, 19)]


def test_a_strategy_behind_the_source_knows_no_splits(run: Any) -> None:
    """As in Flink: there it is one generator per subtask."""

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_source(ListSource(BOTH_GO_ON), NONE, "splits")
        return stream.assign_timestamps_and_watermarks(ASCENDING).key_by(lambda _: 0).process(Seen())

    assert run(build) == [(10, NO_TIME), (100, NO_TIME), (20, 99), (110, 99), (30, 109), (120, 109)]


def test_nothing_advances_before_every_split_was_heard(run: Any) -> None:
    log = run(seen_of(ListSource({"a": [at(10), at(20), at(30)], "b": [[], at(5), []]})))
    assert log == [(10, NO_TIME), (20, NO_TIME), (5, NO_TIME), (30, 4)]


def test_a_split_without_records_is_waited_for_where_it_was(run: Any) -> None:
    silent = {"a": [at(10), at(20), at(60), at(70)], "b": [at(50), [], [], []]}
    assert run(seen_of(ListSource(silent))) == [
        (10, NO_TIME),
        (50, NO_TIME),
        (20, 9),
        (60, 19),
        (70, 49),
    ]


def test_a_split_that_ended_leaves(run: Any) -> None:
    log = run(seen_of(ListSource({"a": [at(10), at(20), at(30)], "b": [at(5)]})))
    assert log == [(10, NO_TIME), (5, NO_TIME), (20, 9), (30, 19)]


def test_more_subtasks_than_splits_hold_up_nobody(run: Any) -> None:
    log = run(seen_of(ListSource({"only": [at(10), at(20), at(30)]})), 3)
    assert log == [(10, NO_TIME), (20, 9), (30, 19)]


class Punctuated(WatermarkGenerator):
    """Counts the records it has seen: each instance those of its own split."""

    def __init__(self) -> None:
        self.seen = 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.seen += 1
        output.emit_watermark(self.seen)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_a_generator_of_a_users_is_made_for_each_split(run: Any) -> None:
    strategy = WatermarkStrategy.for_generator(Punctuated)
    log = run(seen_of(ListSource({"a": [at(1, 2, 3)], "b": [at(4, 5), at(6)]}), strategy))
    # Between records: 'a' is at 3 when 'b' begins.
    assert log == [(1, NO_TIME), (2, NO_TIME), (3, NO_TIME), (4, NO_TIME), (5, 1), (6, 2)]


def test_a_watermark_of_the_source_is_its_splits(run: Any) -> None:
    scripts = {"a": [at(1), Watermark(30), at(2)], "b": [at(3), Watermark(20), at(4)]}
    log = run(seen_of(ListSource(scripts), NONE))
    assert log == [(1, NO_TIME), (3, NO_TIME), (2, 20), (4, 20)]


def test_the_end_and_batch_mode(run: Any, parallelism: int) -> None:
    for scripts in ({}, {"a": [], "b": []}):
        assert run(seen_of(ListSource(scripts)), parallelism) == []
    log = run(seen_of(ListSource(BOTH_GO_ON)), parallelism, mode=BATCH)
    assert log == [(moment, NO_TIME) for moment in (10, 20, 30, 100, 110, 120)]


def test_idle_splits_are_left_out_and_come_back(run: Any) -> None:
    scripts: dict[str, Any] = {
        # Moments:      0       100                 100     600                  600                         600
        "busy": [at(10), ProcessingTime(100), at(20), ProcessingTime(600), at(30), at(40), at(50)],
        "lazy": [at(5), [], [], [], [], at(7), []],
    }
    strategy = ASCENDING.with_idleness(Duration.of_millis(500))
    assert run(seen_of(ListSource(scripts), strategy)) == [
        (10, NO_TIME),
        (5, NO_TIME),
        (20, 4),
        # 500 ms after 'lazy' fell silent it is left out.
        (30, 19),
        (40, 29),
        (7, 29),
        # It counts again, and the watermark waits where it is.
        (50, 29),
    ]


def test_all_splits_idle_make_the_source_idle(run: Any) -> None:
    quiet: dict[str, Any] = {"a": [at(5), [], [], [], []], "b": [at(6), [], [], [], []]}
    clock = [at(100), ProcessingTime(100), at(200), ProcessingTime(600), at(300)]

    def build(env: StreamExecutionEnvironment) -> Any:
        lazy = env.from_source(ListSource(quiet), ASCENDING.with_idleness(Duration.of_millis(500)), "lazy")
        busy = env.from_source(ListSource(clock), ASCENDING, "busy")
        return lazy.union(busy).key_by(lambda _: 0).process(Seen())

    assert [entry for entry in run(build) if entry[0] >= 100] == [(100, NO_TIME), (200, 4), (300, 199)]


@pytest.mark.parametrize("place", range(4))
def test_after_a_failure_every_split_goes_on_from_where_it_was(place: int, parallelism: int) -> None:
    def build(crash: Crash | None) -> Any:
        busy: list[Any] = [at(10), at(20), at(60), at(70)]
        if crash is not None:
            busy[place] = [*busy[place], crash]
        return seen_of(ListSource({"a": busy, "b": [at(50), [], [], []]}))

    crash = Crash()
    expected = run_pipeline(build(None), parallelism=parallelism)
    assert expected[-1] == (70, 49)
    assert run_pipeline(build(crash), parallelism=parallelism, restarts=1) == expected
    assert crash.count == 1


@settings(max_examples=60, deadline=None)
@given(
    scripts=st.dictionaries(
        st.sampled_from("abcd"),
        st.lists(st.lists(st.integers(0, 100), max_size=3), max_size=5),
        min_size=1,
    ),
    parallelism=st.sampled_from([1, 3]),
)
def test_any_scripts_against_a_model(scripts: dict[str, list[list[int]]], parallelism: int) -> None:
    steps = max(map(len, scripts.values()))
    expected: list[tuple[int, int]] = []
    levels, watermarks = dict.fromkeys(scripts, NO_TIME), [NO_TIME]
    for step in range(steps):
        for name, script in scripts.items():
            for moment in script[step] if step < len(script) else []:
                expected.append((step, moment))
                levels[name] = max(levels[name], moment - 1)
        waited_for = [levels[name] for name, script in scripts.items() if len(script) > step + 1]
        watermarks.append(max(watermarks[-1], min(waited_for, default=FOREVER)))
    source = ListSource(
        {name: [at(*[(n, m) for m in moments]) for n, moments in enumerate(script)] for name, script in scripts.items()}
    )
    log = run_pipeline(seen_of(source), parallelism=parallelism)
    assert sorted(record for record, _ in log) == sorted(expected)
    for (step, _), watermark in log:
        # Behind other subtasks' records it may be as far as the batch gets.
        assert watermarks[step] <= watermark <= (watermarks[step] if parallelism == 1 else watermarks[step + 1])


Partition = tuple[str, list[int]]


class Topic(SplitEnumerator[Partition]):
    """Partitions as a broker has them: a batch reads a record of each, and some are found later than others."""

    def __init__(self, partitions: dict[str, tuple[int, list[int]]]) -> None:
        self._partitions = partitions
        """By name the batch in which it is found, and its records."""
        self._end = max(found + len(records) for found, records in partitions.values())

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(position + 1, self._end)

    def ended(self, position: int) -> bool:
        return position >= self._end

    def count(self, start: int, end: int) -> int:
        return end - start

    def splits(self, position: int, parallelism: int) -> list[list[str]]:
        left = [name for name, (found, records) in self._partitions.items() if found <= position < found + len(records)]
        return [[name for name in left if ord(name) % parallelism == subtask] for subtask in range(parallelism)]

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[Partition]]]:
        return [[self.range(name, start) for name in names] for names in self.splits(start, parallelism)]

    def range(self, name: str, position: int) -> SplitRange[Partition]:
        found, records = self._partitions[name]
        return SplitRange((name, records), position - found, position - found + 1, name)


class TopicReader(SourceReader[Partition, tuple[str, int]]):
    def read(self, split: Partition, start: int, end: int) -> Iterator[Records[tuple[str, int]]]:
        name, records = split
        yield Records([(name, record) for record in records[start:end]])


class TopicSource(Source[Partition, tuple[str, int]]):
    def __init__(self, partitions: dict[str, tuple[int, list[int]]]) -> None:
        self._partitions = partitions

    def create_enumerator(self) -> Topic:
        return Topic(self._partitions)

    def create_reader(self) -> TopicReader:
        return TopicReader()


def test_a_partition_that_is_found_later_holds_time_up_but_not_back(run: Any) -> None:
    partitions = {"a": (0, [10, 20, 30, 40, 50]), "b": (2, [5, 25, 60])}
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())
    log = run(seen_of(TopicSource(partitions), strategy))
    assert sorted(log, key=lambda entry: (entry[0][0], entry[0][1])) == [
        (("a", 10), NO_TIME),
        (("a", 20), 9),
        # Found while 20 was read.
        (("a", 30), 9),
        (("a", 40), 9),
        (("a", 50), 24),
        (("b", 5), 9),
        (("b", 25), 9),
        (("b", 60), 24),
    ]


class Unnamed(Topic):
    def range(self, name: str, position: int) -> SplitRange[Partition]:
        return super().range(name, position)._replace(name=None)


class UnnamedSource(TopicSource):
    def create_enumerator(self) -> Topic:
        return Unnamed(self._partitions)


def test_a_source_that_does_not_say_which_split_is_told(run: Any) -> None:
    with pytest.raises(Exception, match="A source with splits must say of which one its records are"):
        run(seen_of(UnnamedSource({"a": (0, [1])})))


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (2, 1), (1, 3)])
def test_a_savepoint_has_the_event_time_of_every_split(before: int, after: int, tmp_path: Path) -> None:
    """Also where another subtask reads a split from then on."""
    halves = Halves(tmp_path)
    first_half: dict[str, Any] = {"a": [at(10), at(20), at(60)], "b": [at(50), [], []]}
    both: dict[str, Any] = {"a": [*first_half["a"], [], [], []], "b": [*first_half["b"], at(90), at(95), []]}

    def build(source: DataStream) -> DataStream:
        return source.key_by(lambda _: 0).process(Seen()).uid("seen")

    options = {"strategy": ASCENDING, "source_parallelism": before}
    assert sorted(halves.save(build, first_half, **options)) == [(10, NO_TIME), (20, 9), (50, NO_TIME), (60, 19)]
    seen = dict(halves.resume(build, both, strategy=ASCENDING, source_parallelism=after))
    # 'b' was at 49, and 'a' is at 59 without having said so once more.
    assert (seen[90], seen[95]) == (49, 59)
