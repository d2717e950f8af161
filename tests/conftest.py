"""What all tests share: engines to run programs on.

A test asks for ``make_env`` or ``run`` and thereby for an engine. It runs on the one in memory, and on every other
one too if it is marked with ``@pytest.mark.both_engines``. Adding an engine is one entry of ``ENGINES``.

A job on Spark takes seconds, so of the marked tests only a sample runs there, one case for each mark
``@pytest.mark.spark_sample(parallelism=3, mode="batch")``, which names the parameters of the case by value or by id;
``--all-engines`` runs them all.

``sharing.py`` says which tests share a process where there are several.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import hypothesis
import mariadb_server as mariadb_server_module
import mosquitto_server as mosquitto_server_module
import pytest
import rabbitmq_server as rabbitmq_server_module
import redis_server as redis_server_module
from certificatekit import untrusted_server
from compiling import compile_tests
from elasticsearchkit import fake_cluster
from folderkit import runtime_folder
from hdfskit import hdfs, hdfs_server
from kafkakit import broker, kafka_server
from mariadbkit import mariadb, mariadb_server
from mosquittokit import mosquitto_server, mqtt
from postgreskit import database, postgres_server, why_not
from rabbitmqkit import rabbit, rabbitmq_server
from rediskit import redis, redis_server
from registrykit import registry, registry_server
from s3kit import bucket, s3_server  # noqa: F401 - fixtures
from sharing import IN_SESSION, Scheduler, group_of, in_order, time_by_group
from sparkkit import QUICK

from firesteel.common import Configuration
from firesteel.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.engine import backends

__all__ = [
    "broker",
    "database",
    "fake_cluster",
    "hdfs",
    "hdfs_server",
    "kafka_server",
    "mariadb",
    "mariadb_server",
    "mosquitto_server",
    "mqtt",
    "postgres_server",
    "rabbit",
    "rabbitmq_server",
    "redis",
    "redis_server",
    "registry",
    "registry_server",
    "untrusted_server",
]

ENGINES: dict[str, dict[str, str]] = {
    "memory": {"firesteel.master": "memory"},
    "spark": {"firesteel.master": "local", **QUICK},
}
"""The settings that choose an engine. The first one is for tests without the mark."""

SPARK_TIMEOUT = 300

collect_ignore = [] if os.environ.get("FIRESTEEL_SERVERS") else ["servers"]
"""``make servers`` has tests with servers that are too heavy for the suite."""

MAY_BE_MISSING: dict[str, Callable[[], str | None]] = {
    "PostgreSQL": why_not,
    "MariaDB": mariadb_server_module.why_not,
    "Redis": redis_server_module.why_not,
    "mosquitto": mosquitto_server_module.why_not,
    "RabbitMQ": rabbitmq_server_module.why_not,
}
"""Servers, and what is missing to run them."""

# How long an example takes, or its making, says nothing on a busy machine. And what must pass before a change goes in
# is the same every time; the search for new counterexamples is for runs by hand.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
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
    # A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config.option, "numprocesses", None):
        compile_tests(config, Path(__file__).parent)
    config.addinivalue_line("markers", "both_engines: run the test on every engine, not in memory alone")
    config.addinivalue_line("markers", "spark_sample(**parameters): of the cases for Spark, run the one with these")


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
    for item in items:
        if _on_spark(item):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT))
            if not everything and not any(_is_case(item, mark) for mark in item.iter_markers("spark_sample")):
                left_out.append(item)
                continue
        chosen.append(item)
    if not any("::" in argument for argument in config.args):
        _refuse_marks_without_case(chosen, left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = in_order(chosen) if _shared(config) else chosen


def pytest_collection_finish() -> None:
    """What ten thousand tests are made of stays until the end: the garbage collector need not look at it again."""
    gc.freeze()


def _on_spark(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("engine") == "spark"


def _is_case(item: Any, mark: pytest.Mark) -> bool:
    """Whether a test has the parameters that a mark names, each by its value or by its id."""
    params, ids = item.callspec.params, f"-{item.callspec.id}-"
    return all(params[name] == wanted or f"-{wanted}-" in ids for name, wanted in mark.kwargs.items())


def _refuse_marks_without_case(chosen: list[pytest.Item], left_out: list[pytest.Item]) -> None:
    """A mark that names no case would silently run nothing on Spark."""
    ran = {item.nodeid.partition("[")[0] for item in chosen if _on_spark(item)}
    empty = {
        item.nodeid.partition("[")[0] for item in left_out if item.get_closest_marker("spark_sample") is not None
    } - ran
    if empty:
        raise pytest.UsageError(
            f"No case of these tests is the one that their mark spark_sample names: {sorted(empty)}"
        )


def _shared(config: pytest.Config) -> bool:
    """Whether this is one of several processes that run the suite."""
    return hasattr(config, "workerinput")


@pytest.fixture(autouse=True)
def _spark_where_it_belongs(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts this process's Spark session unawares would have every process start one. A warning: whether
    it starts one, or finds that of a test before it, is chance."""
    before = _session_there()
    yield
    group = group_of(request.node.nodeid)
    if _shared(request.config) and group not in IN_SESSION and not before and _session_there():
        name = request.node.nodeid
        said = f"{name} started a Spark session, but its group is {group!r}: see tests/sharing.py."
        warnings.warn(pytest.PytestWarning(said), stacklevel=1)


def _session_there() -> bool:
    kind = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    # A test may have put something else in its place.
    return kind is not None and isinstance(getattr(kind, "_active_spark_context", None), kind)


@pytest.fixture(autouse=True, scope="session")
def _at_greenwich() -> Iterator[None]:
    """The machine is in UTC, wherever it is: a session of SQL has its zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True, scope="session")
def _jobs_of_their_own() -> Iterator[None]:
    """Jobs of tests are not among the user's, and those of several processes not among each other's."""
    # A short path: that of a socket must be.
    with pytest.MonkeyPatch.context() as patch, runtime_folder() as folder:
        patch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        yield


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where the time went, if several processes shared it out. And skipped tests are a letter among others: these are
    the lines that nobody overlooks."""
    if getattr(config.option, "numprocesses", None):
        every = [one for found in terminalreporter.stats.values() for one in found]
        lines = time_by_group(one for one in every if isinstance(one, pytest.TestReport))
        terminalreporter.write_line("\n".join(["Seconds in all processes together:", *lines]))
    for server, reason in MAY_BE_MISSING.items():
        skipped = [
            report for report in terminalreporter.stats.get("skipped", ()) if f"no {server}" in str(report.longrepr)
        ]
        if skipped:
            terminalreporter.write_line(f"{len(skipped)} tests skipped: {reason()}", yellow=True)
