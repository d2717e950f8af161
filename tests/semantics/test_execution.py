"""Starting, watching and ending jobs: results while they run, cancellation, status, names."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from typing import Any

import pytest
from kit import Counted, ascending, eventually, slow_numbers

from firesteel.common import JobStatus, WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.errors import ConfigurationError, JobCancelledError, JobExecutionError

NONE = WatermarkStrategy.no_watermarks()


def endless(env: Any) -> Any:
    return env.from_source(slow_numbers(100), NONE, "numbers")


@pytest.mark.both_engines
def test_collecting_all_records(make_env: Any, parallelism: int) -> None:
    with make_env(parallelism).from_collection(list(range(50))).execute_and_collect("all") as records:
        assert list(records) == list(range(50))


@pytest.mark.both_engines
def test_collecting_a_limited_number(make_env: Any) -> None:
    assert make_env().from_collection(list(range(50))).execute_and_collect("some", 3) == [0, 1, 2]
    assert make_env().from_collection([1]).execute_and_collect("more than there are", 3) == [1]
    assert make_env().from_collection([1]).execute_and_collect(limit=0) == []


@pytest.mark.both_engines
def test_a_limit_ends_an_endless_job(make_env: Any) -> None:
    assert endless(make_env()).execute_and_collect(limit=5) == [0, 1, 2, 3, 4]


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Threads that were there before a test are none of its business."""
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def firesteel_threads() -> list[str]:
    return [t.name for t in set(threading.enumerate()) - OTHERS if t.name.startswith("firesteel")]


@pytest.mark.both_engines
def test_records_come_while_the_job_runs_and_closing_stops_it(make_env: Any) -> None:
    records = endless(make_env()).execute_and_collect()
    assert [records.next() for _ in range(3)] == [0, 1, 2]
    assert firesteel_threads()
    records.close()
    assert eventually(lambda: not firesteel_threads())
    assert list(records) == []
    records.close()


def test_closing_early_does_not_hang_though_much_is_waiting(make_env: Any) -> None:
    """Every record is a chunk of its own here, so that they fill the queue to the reader."""
    env = make_env()
    env.get_config().set_auto_watermark_interval(1)
    stream = env.from_collection([("a", n) for n in range(2000)]).assign_timestamps_and_watermarks(ascending())
    records = stream.execute_and_collect()
    assert next(records) == ("a", 0)
    # Time to fill it. If closing hung, the test would.
    time.sleep(0.3)
    records.close()


def test_closing_does_not_hang_when_the_job_is_over_and_the_queue_is_full(make_env: Any) -> None:
    env = make_env()
    env.get_config().set_auto_watermark_interval(1)
    stream = env.from_collection([("a", n) for n in range(256)]).assign_timestamps_and_watermarks(ascending())
    records = stream.execute_and_collect()
    assert eventually(lambda: not firesteel_threads())
    records.close()


def test_a_failure_reaches_whoever_collects_after_the_records_before_it(make_env: Any) -> None:
    env = make_env(config={"firesteel.batch.max-records": "1"})
    records = env.from_collection([1, 2, 0, 3]).map(lambda n: 6 // n).execute_and_collect()
    assert [next(records), next(records)] == [6, 3]
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        next(records)


@pytest.mark.both_engines
def test_execute_async_cancel_and_status(make_env: Any) -> None:
    env = make_env()
    endless(env).map(Counted()).name("counted").print()
    client = env.execute_async("endless")
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert len(str(client.get_job_id())) == 32
    assert eventually(lambda: client.get_accumulators().result().get("counted.0.calls", 0) > 2)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="Job 'endless' was cancelled"):
        client.get_job_execution_result().result()
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert eventually(lambda: not firesteel_threads())


@pytest.mark.both_engines
def test_execute_async_result(make_env: Any) -> None:
    env = make_env()
    env.from_collection([1, 2]).map(Counted()).name("counted").print()
    client = env.execute_async()
    result = client.get_job_execution_result().result()
    assert str(result.get_job_id()) == str(client.get_job_id())
    assert result.get_accumulator_result("counted.0.calls") == 2
    assert result.get_net_runtime() >= 0
    assert client.get_job_status().result() is JobStatus.FINISHED
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.FINISHED


def test_the_status_of_a_failed_job(make_env: Any) -> None:
    env = make_env()
    env.from_collection([0]).map(lambda n: 1 // n).print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_two_jobs_of_one_environment_have_their_own_sinks(make_env: Any, capsys: Any) -> None:
    env = make_env()
    numbers = env.from_collection([1])
    numbers.print("first")
    env.execute()
    assert capsys.readouterr().out == "first> 1\n"
    numbers.print("second")
    env.execute()
    assert capsys.readouterr().out == "second> 1\n"


def test_one_line_at_the_start_and_one_at_the_end(make_env: Any, caplog: Any) -> None:
    env = make_env(2)
    env.from_collection([1, 2, 3]).map(lambda n: n).print()
    with caplog.at_level(logging.INFO, logger="firesteel"):
        env.execute("three numbers")
    start, end = [record.getMessage() for record in caplog.records if record.name == "firesteel"]
    assert start.startswith("job 'three numbers' (")
    assert start.endswith(") starts in STREAMING mode, parallelism 2, on one process in memory")
    assert end.startswith("job 'three numbers' finished after ")
    assert ": 3 records, " in end


def test_a_generator_is_bounded_by_its_count(run: Any, parallelism: int) -> None:
    source = DataGeneratorSource(lambda index: index * 10, count=7)
    assert run(lambda env: env.from_source(source, NONE, "tens"), parallelism) == list(range(0, 70, 10))


def test_a_generator_keeps_to_its_rate(make_env: Any) -> None:
    began = time.monotonic()
    source = DataGeneratorSource(lambda index: index, count=30, records_per_second=60)
    with make_env().from_source(source, NONE, "slow").execute_and_collect() as records:
        assert len(list(records)) == 30
    assert time.monotonic() - began > 0.4


def test_a_text_file(make_env: Any, parallelism: int, tmp_path: Any) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"line {n}\n" for n in range(100)))
    with make_env(parallelism).read_text_file(str(file)).map(str.upper).execute_and_collect() as records:
        assert list(records) == [f"LINE {n}" for n in range(100)]


def test_from_source_assigns_timestamps_in_python(run: Any) -> None:
    from kit import TimerLog, first

    def build(env: Any) -> Any:
        source = DataGeneratorSource(lambda index: ("a", index * 10, [5]), count=2)
        return env.from_source(source, ascending(), "numbers").key_by(first).process(TimerLog())

    assert [entry[:3] for entry in run(build)] == [("element", "a", 0), ("element", "a", 10), ("timer", "a", 5)]


@pytest.mark.parametrize(("limit", "files"), [("1 kb", 3), (None, 0)])
def test_how_much_of_a_batch_is_held_in_memory(make_env: Any, monkeypatch: Any, limit: str | None, files: int) -> None:
    made = []
    make = tempfile.TemporaryFile

    def counted(**options: Any) -> Any:
        made.append(options["prefix"])
        return make(**options)

    monkeypatch.setattr(tempfile, "TemporaryFile", counted)
    env = make_env(3, {} if limit is None else {"firesteel.frames.memory": limit})
    texts = [f"{n:04d}" * 100 for n in range(60)]
    with env.from_collection(texts).key_by(lambda text: text).map(lambda text: text).execute_and_collect() as records:
        assert sorted(records) == texts
    assert made == ["firesteel-spool-"] * files


def test_a_limit_that_is_no_size(make_env: Any) -> None:
    env = make_env(1, {"firesteel.frames.memory": "much"})
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"Setting 'firesteel.frames.memory': 'much' is not a memory size"):
        env.execute()
