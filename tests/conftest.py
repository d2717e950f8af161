"""What all tests share: engines to run programs on.

A test asks for ``make_env`` or ``run`` and thereby for an engine. It runs on the one in memory, and on every other
one too if it is marked with ``@pytest.mark.both_engines``. Adding an engine is one entry of ``ENGINES``.

A job on Spark takes seconds, so of the marked tests only a sample runs there; ``--all-engines`` runs them all.

``sharing.py`` says which tests share a process where there are several.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import hypothesis
import pytest
from postgreskit import database, postgres_server, why_not
from sharing import IN_SESSION, Scheduler, group_of, in_order

from firesteel.common import Configuration
from firesteel.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.engine import backends

__all__ = ["database", "postgres_server"]

ENGINES: dict[str, dict[str, str]] = {
    "memory": {"firesteel.master": "memory"},
    "spark": {"firesteel.master": "local"},
}
"""The settings that choose an engine. The first one is for tests without the mark."""

WINDOWS = "test_window_transcripts.py::test_on_an_engine"
SPARK_SAMPLE = (
    "test_word_count.py::test_batch_gives_final_counts_only[3-spark]",
    "test_dataflow.py::test_none_is_a_record_and_a_key[2-spark]",
    "test_transcripts.py::test_on_an_engine[spark-3-hashmap-timers of event time]",
    "test_transcripts.py::test_on_an_engine[spark-1-rocksdb-time to live from writing]",
    "test_event_time.py::test_a_function_chained_to_a_source_sees_event_time_go_on[spark]",
    "test_alignment.py::test_engines_tell_each_other_who_is_idle[spark]",
    "test_event_time.py::test_ingestion_time_is_when_a_record_came_in[spark-True]",
    "test_splits.py::test_splits_of_one_subtask_wait_for_each_other_and_for_those_of_others[spark]",
    "test_partitioning.py::test_partition_custom_decides_itself[spark]",
    "test_processing_time.py::test_they_fire_in_batch[2-spark]",
    "test_keyed_state.py::test_rich_functions_on_a_keyed_stream_have_state[2-spark-streaming]",
    "test_rich_functions.py::test_what_the_runtime_context_says[2-spark]",
    "test_connected.py::test_both_sides_share_the_state_of_a_key[3-spark-streaming]",
    "test_connected.py::test_one_side_sets_a_timer_the_other_takes_it_back[1-spark-batch]",
    "test_async.py::test_timers_behind_the_operator_fire_between_the_right_records[unordered-spark-3]",
    f"{WINDOWS}[spark-functions: clear is called for sessions with a fold-hashmap-1]",
    f"{WINDOWS}[spark-lateness: late records to a side output, none is dropped-rocksdb-3]",
    f"{WINDOWS}[spark-sessions: a continuous trigger goes on in the merged window-hashmap-3]",
    f"{WINDOWS}[spark-evictors: an evictor in windows that merge-rocksdb-1]",
    "test_windows.py::test_batch_gives_what_streaming_gives[3-spark-sessions-rocksdb-batch]",
    "test_windows.py::test_dropped_records_are_counted_for_the_jobs_result[spark]",
    "test_joins.py::test_window_join[2-spark-hashmap-batch]",
    "test_joins.py::test_interval_join[3-spark-rocksdb-streaming]",
    "test_state_kinds.py::test_all_kinds_in_one_operator[spark-1-streaming-hashmap]",
    "test_state_kinds.py::test_all_kinds_in_one_operator[spark-3-streaming-rocksdb]",
    "test_state_kinds.py::test_all_kinds_in_one_operator[spark-3-streaming-tight]",
    "test_state_kinds.py::test_all_kinds_in_one_operator[spark-3-batch-rocksdb]",
    "test_state_kinds.py::test_a_full_join_with_list_state[spark-1000-3-streaming-hashmap]",
    "test_sinks.py::test_add_sink_sees_every_record_and_its_time[3-spark]",
)
"""What runs on Spark of the tests for every engine."""

SPARK_TIMEOUT = 120

# How long an example takes says nothing on a busy machine. And what must pass before a change goes in is the same every
# time; the search for new counterexamples is for runs by hand.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("suite")


class MakeEnv(Protocol):
    """The signature of the fixture ``make_env``."""

    def __call__(
        self,
        parallelism: int = 1,
        config: Mapping[str, str] | None = None,
        mode: RuntimeExecutionMode | None = None,
    ) -> StreamExecutionEnvironment: ...


class Run(Protocol):
    """The signature of the fixture ``run``."""

    def __call__(
        self,
        build: Callable[[StreamExecutionEnvironment], DataStream],
        parallelism: int = 1,
        config: Mapping[str, str] | None = None,
        mode: RuntimeExecutionMode | None = None,
    ) -> list[Any]: ...


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_engines: run the test on every engine, not in memory alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        every = metafunc.definition.get_closest_marker("both_engines") is not None
        metafunc.parametrize("engine", list(ENGINES) if every else list(ENGINES)[:1])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-engines", action="store_true", help="run every test for all engines on Spark too")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    everything = config.getoption("--all-engines")
    chosen, left_out = [], []
    names = {f"{item.path.name}::{item.name}" for item in items}
    files = {name.partition("::")[0] for name in names}
    unknown = [name for name in SPARK_SAMPLE if name.partition("::")[0] in files and name not in names]
    if unknown and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"SPARK_SAMPLE in tests/conftest.py names tests that there are not: {unknown}")
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("engine") == "spark":
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT))
            name = f"{item.path.name}::{item.name}"
            if not everything and name not in SPARK_SAMPLE:
                left_out.append(item)
                continue
        chosen.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = in_order(chosen) if _shared(config) else chosen


def _shared(config: pytest.Config) -> bool:
    """Whether this is one of several processes that run the suite."""
    return hasattr(config, "workerinput")


@pytest.fixture(autouse=True)
def _spark_where_it_belongs(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts this process's Spark session unawares would have every process start one."""
    before = _session_there()
    yield
    group = group_of(request.node.nodeid)
    if _shared(request.config) and group not in IN_SESSION and not before and _session_there():
        pytest.fail(f"This test started a Spark session, but its group is {group!r}: see tests/sharing.py.")


def _session_there() -> bool:
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRESTEEL_CONF_DIR", "FIRESTEEL_SETTINGS", "FIRESTEEL_MASTER", "FIRESTEEL_FULL_TRACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rocksdb backend reads from the store what does not fit into memory, so in tests little should fit."""
    monkeypatch.setattr(backends, "MEMORY_PER_SLOT", "2 kb")


@pytest.fixture
def make_env(engine: str) -> MakeEnv:
    """Makes environments of the engine under test."""

    def make(
        parallelism: int = 1,
        config: Mapping[str, str] | None = None,
        mode: RuntimeExecutionMode | None = None,
    ) -> StreamExecutionEnvironment:
        settings = Configuration.from_dict({**ENGINES[engine], **(config or {})})
        env = StreamExecutionEnvironment.get_execution_environment(settings)
        env.set_parallelism(parallelism)
        if mode is not None:
            env.set_runtime_mode(mode)
        return env

    return make


@pytest.fixture
def run(make_env: MakeEnv) -> Run:
    """Runs the program that ``build`` writes and returns all records of the stream that it returns."""

    def run(
        build: Callable[[StreamExecutionEnvironment], DataStream],
        parallelism: int = 1,
        config: Mapping[str, str] | None = None,
        mode: RuntimeExecutionMode | None = None,
    ) -> list[Any]:
        stream = build(make_env(parallelism, config, mode))
        with stream.execute_and_collect() as records:  # type: ignore[union-attr]
            return list(records)

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skipped tests are a letter among others; this is the line that nobody overlooks."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", ()) if "no PostgreSQL" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped: {why_not()}", yellow=True)
