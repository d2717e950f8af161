"""How the suite is shared out to several processes: ``make test`` has four, a plain ``pytest`` has one.

pytest-xdist hands out groups of tests, in this order: large ones first, so that all processes are busy until the end.
Tests of one group run in one process, one after the other.

* Three groups need the Spark session of their process: what is tested of the engine, recovery on Spark, and programs
  that run on Spark as they do in memory. There are three because one would take longer than everything else together.
* The tests with PostgreSQL share a server, so they are one group, those with Kafka another one, and those with the
  other systems a third one. Some of them use the session, too. Those with HDFS are with those of recovery.
* Every other file is a group of its own. Tests that start programs with a Spark of their own are among them.

The scheduler knows tests by their names only, so what belongs where follows from names and by what is in a file.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["IN_SESSION", "Scheduler", "group_of", "in_order", "time_by_group"]

ENGINE = "the engine on Spark"
RECOVERY = "recovery on Spark"
PROGRAMS = "programs on Spark"
POSTGRES = "PostgreSQL"
KAFKA = "Kafka"
SYSTEMS = "other systems"
OWN_PROCESSES = "scripts"
ROOT = Path(__file__).resolve().parents[1]

IN_SESSION = (ENGINE, RECOVERY, PROGRAMS, KAFKA, SYSTEMS)
"""The groups whose tests may use the Spark session of the process that they run in."""

_WITH_POSTGRES = (
    "tests/recovery/test_chaos_short.py",
    "tests/recovery/test_postgres_recovery.py",
    "tests/semantics/test_postgres_sinks.py",
    "tests/examples/test_postgres_example.py",
    "tests/unit/test_postgres_server.py",
    "tests/cluster/test_registry.py",
    "tests/cluster/test_high_availability.py",
    "tests/cluster/test_other_machines.py",
    "tests/cluster/test_zookeeper.py",
)

_WITH_KAFKA = (
    "tests/semantics/test_kafka_",
    "tests/recovery/test_kafka_",
    "tests/examples/test_kafka_example.py",
    "tests/bench/test_kafka_",
)

_WITH_SYSTEMS = ("tests/semantics/test_systems_", "tests/recovery/test_systems_")
"""Those with MariaDB, Redis and the like."""

_WITH_HDFS = ("tests/semantics/test_hdfs.py",)

_PROGRAMS = ("tests/examples/", "tests/gelly/", "tests/table/test_batch_on_spark.py")

_OWN_PROCESSES = (
    "tests/engine/test_spark_applications.py::",
    "tests/engine/test_spark_failures.py::test_no_java",
    "tests/engine/test_spark_failures.py::test_a_port_in_use",
    "tests/engine/test_spark_failures.py::test_a_master_that_is_not_there",
)
"""Tests that run scripts, in files whose other tests use the session."""

_SIGNS_OF_THE_SESSION = ("spark_env", "SparkSession", "Halves")
"""Of the folders for Spark a file without any of these words runs scripts and clusters only."""

_FIRST = (
    # Of the first four two compute, and two wait most of the time, for leases that run out and servers that come back.
    RECOVERY,
    PROGRAMS,
    KAFKA,
    POSTGRES,
    ENGINE,
    SYSTEMS,
    OWN_PROCESSES,
    "tests/semantics/test_window_transcripts.py",
    "tests/semantics/test_state_kinds.py",
    "tests/unit/test_states.py",
)


def group_of(nodeid: str) -> str:
    """The group of a test, by its name."""
    file, _, test = nodeid.partition("::")
    if file.startswith(_WITH_POSTGRES):
        return POSTGRES
    if file.startswith(_WITH_KAFKA):
        return KAFKA
    if file.startswith(_WITH_SYSTEMS):
        return SYSTEMS
    if file.startswith(_PROGRAMS) or re.search(r"[\[-]spark[\]-]", test):
        return PROGRAMS
    if file.startswith("tests/table/") and "_on_spark" in nodeid:
        return PROGRAMS
    if file.startswith(_WITH_HDFS):
        return RECOVERY
    for folder, group in (("tests/engine/", ENGINE), ("tests/recovery/", RECOVERY)):
        if file.startswith(folder):
            in_session = _uses_session(file) and not nodeid.startswith(_OWN_PROCESSES)
            return group if in_session else f"{OWN_PROCESSES}: {file}"
    return file


@functools.cache
def _uses_session(file: str) -> bool:
    try:
        text = (ROOT / file).read_text(encoding="utf-8")
    except OSError:
        return True
    return any(sign in text for sign in _SIGNS_OF_THE_SESSION)


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests in the order in which their groups are handed out."""
    places = {group: place for place, group in enumerate(_FIRST)}
    return sorted(items, key=lambda item: places.get(group_of(item.nodeid).partition(":")[0], len(places)))


def time_by_group(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Where the time of a run went: seconds and tests of each group, of files by their folders."""
    seconds: Counter[str] = Counter()
    tests: dict[str, set[str]] = {}
    for report in reports:
        group = group_of(report.nodeid).partition(":")[0]
        name = "/".join(group.split("/")[:2])
        seconds[name] += report.duration
        tests.setdefault(name, set()).add(report.nodeid)
    return [f"{total:8.0f} s {len(tests[name]):6,} tests  {name}" for name, total in seconds.most_common()]


class Scheduler(LoadScopeScheduling):
    """Hands out groups as they come."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
