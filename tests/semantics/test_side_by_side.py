"""Jobs beside each other that share something: a folder of results, a savepoint. And keys that share nothing evenly."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from savepointkit import Halves

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Crash, memory_environment

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "9",
    "restart-strategy.fixed-delay.delay": "0 ms",
}


def sink_into(folder: Path) -> Any:
    """Parts go on from batch to batch, so results are pending nearly always."""
    sink = FileSink.for_row_format(str(folder), Encoder.json_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return sink.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=300)).build()


def lines(folder: Path) -> Counter[Any]:
    """What is visible."""
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    return Counter(json.dumps(json.loads(line)) for file in files for line in file.read_text().splitlines())


def test_jobs_that_write_into_one_folder_and_fail_leave_each_other_alone(tmp_path: Path) -> None:
    def start(number: int, crashes: int) -> Any:
        crash = Crash(times=max(crashes, 1))

        def fail(value: int) -> int:
            if value % 100 == 55 and crashes:
                crash.hit()
            return value

        env = memory_environment(2, config={"firesteel.batch.max-records": "20", **RESTART})
        numbers = env.from_source(NumberSequenceSource(300 * number, 300 * number + 299), NONE, "numbers")
        numbers.map(fail).sink_to(sink_into(tmp_path)).uid("files")
        return env.execute_async("the same name")

    for job in [start(number, crashes) for number, crashes in enumerate((3, 0, 2))]:
        job.get_job_execution_result().result()
    assert lines(tmp_path) == Counter(map(str, range(900)))
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield [value[0], value[1], count]


def test_one_savepoint_is_begun_from_twice_at_the_same_time(halves: Halves, tmp_path: Path) -> None:
    """Both go on from the same state, and neither takes the other's pending results for its own leftovers."""
    folder = tmp_path / "files"

    def counted(stream: DataStream) -> DataStream:
        found = stream.key_by(lambda pair: pair[0]).process(Count()).uid("count")
        found.sink_to(sink_into(folder)).uid("files")
        return found

    begin = [[("a", n), ("b", n)] for n in range(5)]
    halves.save(counted, begin)
    before = lines(folder)
    assert sum(before.values()) == 10, "a stop shows all results up to the savepoint"
    files = {path: path.read_bytes() for path in Path(halves.path).rglob("*") if path.is_file()}
    settings = {"execution.state-recovery.path": halves.path}
    started = []
    for number in (100, 200):
        steps = [*begin, *([("a", number + n), ("b", number + n)] for n in range(30))]
        started.append(halves.start(counted, steps, True, 2, settings))
    for job, _, reader in started:
        job.get_job_execution_result().result()
        reader.join(150)
    for number, (_, found, _) in zip((100, 200), started, strict=True):
        assert sorted(found) == sorted([key, number + n, 6 + n] for key in "ab" for n in range(30))
    more = Counter(json.dumps([key, number + n, 6 + n]) for number in (100, 200) for key in "ab" for n in range(30))
    assert lines(folder) == before + more
    assert {path: path.read_bytes() for path in Path(halves.path).rglob("*") if path.is_file()} == files


def test_a_savepoint_while_results_wait_to_be_committed(halves: Halves, tmp_path: Path) -> None:
    """A stop shows the parts in progress up to the savepoint, and whoever begins with it adds its own."""
    folder = tmp_path / "files"

    def through(stream: DataStream) -> DataStream:
        found = stream.key_by(lambda pair: pair[0]).process(Count()).uid("count")
        found.sink_to(sink_into(folder)).uid("files")
        return found

    begin, end = [[("a", n)] for n in range(7)], [[("a", n)] for n in range(7, 30)]
    halves.save(through, begin)
    assert lines(folder) == Counter(json.dumps(["a", n, n + 1]) for n in range(7))
    halves.resume(through, [*begin, *end])
    assert lines(folder) == Counter(json.dumps(["a", n, n + 1]) for n in range(30))


def test_a_key_with_nine_tenths_of_all_records(parallelism: int) -> None:
    """Its records stay in order and are counted one by one, and the others are not held up: all that a batch brings is
    through when the batch ends."""
    total = 3000

    def key(n: int) -> str:
        return f"cold {n % 50}" if n % 10 == 0 else "hot"

    env = memory_environment(
        parallelism, config={"firesteel.batch.max-records": "500", "firesteel.frames.memory": "1 kb"}
    )
    numbers = env.from_source(NumberSequenceSource(0, total - 1), NONE, "numbers")
    with numbers.map(lambda n: (key(n), n)).key_by(lambda p: p[0]).process(Count()).execute_and_collect() as records:
        found = list(records)
    for name in {key(n) for n in range(total)}:
        mine = [(n, count) for owner, n, count in found if owner == name]
        assert [count for _, count in mine] == list(range(1, len(mine) + 1))
        assert sorted(n for n, _ in mine) == [n for n in range(total) if key(n) == name]
