"""Which jobs may have a Spark that was started before they were known. No JVM is started here."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from firesteel.common import Configuration
from firesteel.engine.settings import Settings
from firesteel.engine.spark import warm_spark
from firesteel.engine.spark.context import start_facts


class Gateway:
    """As much of PySpark's connection to a JVM as is looked at."""

    def __init__(self) -> None:
        self.proc = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"])
        self.closed = False

    def shutdown(self) -> None:
        self.closed = True


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Gateway]:
    """A detached Spark, as if it had been started without settings of a job."""
    monkeypatch.setenv("FIRESTEEL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FIRESTEEL_MASTER", raising=False)
    for owner, name in warm_spark._STATIC:
        monkeypatch.setattr(owner, name, None)
    monkeypatch.setattr(warm_spark, "_detached", None)
    monkeypatch.setattr(warm_spark, "_level", None)
    made = Gateway()
    facts = start_facts(Settings())
    monkeypatch.setattr(SparkContext, "_gateway", made)
    monkeypatch.setattr(SparkContext, "_jvm", "a JVM")
    # A JVM would know; this is what Spark's says.
    monkeypatch.setattr(warm_spark, "of_a_session", lambda jvm, key: jvm == "a JVM" and "warehouse" not in key)
    warm_spark.detach_spark(facts)
    assert SparkContext._gateway is None, "nobody sees it"
    yield made
    made.proc.kill()
    made.proc.wait()


def reattach_spark(settings: Settings) -> None:
    if warm_spark._detached is not None:
        # pytest says in its environment which part of a test runs.
        warm_spark._detached.environment["PYTEST_CURRENT_TEST"] = os.environ["PYTEST_CURRENT_TEST"]
    warm_spark.reattach_spark(settings)


def asked(**settings: Any) -> Settings:
    return Settings.of(Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()}))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"firesteel_master": f"local[{os.cpu_count()}]"},
        {"firesteel_spark_jit": "full"},
        {"firesteel_batch_interval": "1 s", "parallelism_default": "7"},
        {"spark_sql_shuffle_partitions": "7"},
        # How many checkpoints are kept is set for each job.
        {"execution_checkpointing_num-retained": "5"},
    ],
    ids=str,
)
def test_it_is_brought_back_for_a_job_that_it_fits(gateway: Gateway, settings: dict[str, str]) -> None:
    assert warm_spark.is_alive()
    reattach_spark(asked(**settings))
    assert SparkContext._gateway is gateway
    assert gateway.proc.poll() is None
    assert not warm_spark.is_alive(), "it is not there twice"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"spark_driver_memory": "4g"}, "spark.driver.memory, variable FIRESTEEL_JVM_FLAGS"),
        ({"firesteel_master": "spark://host:7077"}, "spark.master"),
        ({"firesteel_master": "local[99]"}, "spark.master"),
        ({"firesteel_spark_ui": "true"}, "spark.ui.enabled"),
        ({"firesteel_spark_jit": "quick"}, "FIRESTEEL_JVM_FLAGS"),
        ({"spark_sql_warehouse_dir": "/shop"}, "spark.sql.warehouse.dir"),
        # Of the whole JVM, though it is a setting of sessions.
        ({"spark_sql_streaming_stateStore_rocksdb_maxMemoryUsageMB": "9"}, "maxMemoryUsageMB"),
    ],
    ids=str,
)
def test_a_job_that_needs_another_one_ends_it(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, settings: dict[str, str], reason: str
) -> None:
    with caplog.at_level(logging.INFO, "firesteel"):
        reattach_spark(asked(**settings))
    assert SparkContext._gateway is None
    assert gateway.proc.poll() is not None
    assert gateway.closed
    assert reason in caplog.text
    assert "4g" not in caplog.text, "values may be secrets"


@pytest.mark.parametrize("what", ["variable", "folder", "own Spark", "dead"])
def test_what_a_program_does_before_its_job_counts(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    other = None
    match what:
        case "variable":
            # Functions would not find it in a worker.
            monkeypatch.setenv("SHOP", "corner")
        case "folder":
            monkeypatch.chdir(tmp_path)
        case "own Spark":
            other = object()
            monkeypatch.setattr(SparkContext, "_gateway", other)
        case "dead":
            gateway.proc.kill()
            gateway.proc.wait()
    with caplog.at_level(logging.INFO, "firesteel"):
        reattach_spark(asked())
    assert SparkContext._gateway is other
    assert gateway.proc.poll() is not None
    expected = {"variable": "variable SHOP", "folder": "the working directory", "own Spark": "Spark itself"}
    assert expected.get(what, "its JVM has ended") in caplog.text


def test_a_child_of_the_program_leaves_it_alone(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    reattach_spark(asked())
    assert SparkContext._gateway is None
    assert warm_spark.is_alive()


def test_workers_learn_the_level_that_the_program_has_set(gateway: Gateway) -> None:
    root = logging.getLogger()
    before = root.level
    reattach_spark(asked())
    assert warm_spark.level_for_workers() == {}
    try:
        root.setLevel(logging.DEBUG if before != logging.DEBUG else logging.INFO)
        assert warm_spark.level_for_workers() == {"": logging.getLevelName(root.level)}
    finally:
        root.setLevel(before)


def test_a_program_without_a_job_on_spark_ends_it(gateway: Gateway) -> None:
    detached = warm_spark._detached
    assert detached is not None
    warm_spark._kill_unused(detached)
    assert gateway.proc.poll() is not None
