"""Runs the examples in all docstrings, and looks at what the modules of the vocabulary export."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import firesteel

PACKAGES = (
    "firesteel.common",
    "firesteel.metrics",
    "firesteel.datastream.functions",
    "firesteel.datastream.state",
    "firesteel.table",
    "firesteel.testing",
)
MODULES = (
    "firesteel.errors",
    "firesteel.cluster.diagnosis",
    "firesteel.cluster.job_rows",
    "firesteel.cluster.state_browser",
    "firesteel.connectors.batch_versions",
    "firesteel.connectors.elasticsearch.bulk",
    "firesteel.connectors.jdbc.address",
    "firesteel.connectors.jdbc.dialect",
    "firesteel.connectors.jdbc.rows",
    "firesteel.connectors.jdbc.statements",
    "firesteel.connectors.mqtt.connecting",
    "firesteel.connectors.mqtt.receiving",
    "firesteel.connectors.mysql.address",
    "firesteel.connectors.mysql.dialect",
    "firesteel.connectors.piece_log",
    "firesteel.connectors.postgresql.address",
    "firesteel.connectors.postgresql.rows",
    "firesteel.connectors.postgresql.statements",
    "firesteel.connectors.postgresql.two_phase",
    "firesteel.connectors.rabbitmq.connecting",
    "firesteel.connectors.redis.connecting",
    "firesteel.connectors.redis.streams",
    "firesteel.connectors.retrying",
    "firesteel.connectors.spark.row_types",
    "firesteel.connectors.spark.targets",
    "firesteel.engine.peers",
    "firesteel.engine.scratch",
    "firesteel.engine.spark.submit_settings",
    "firesteel.datastream.async_data_stream",
    "firesteel.datastream.async_retry_predicates",
    "firesteel.datastream.checkpointing_mode",
    "firesteel.connectors.sqlite.dialect",
    "firesteel.connectors.sqlite.driver",
    "firesteel.datastream.connectors.batch_sink",
    "firesteel.datastream.connectors.cassandra",
    "firesteel.datastream.connectors.elasticsearch",
    "firesteel.datastream.connectors.hybrid_source",
    "firesteel.datastream.connectors.jdbc",
    "firesteel.datastream.connectors.jdbc_source",
    "firesteel.datastream.connectors.mqtt",
    "firesteel.datastream.connectors.polling_source",
    "firesteel.datastream.connectors.rabbitmq",
    "firesteel.datastream.connectors.redis",
    "firesteel.datastream.connectors.spark",
    "firesteel.datastream.execution_mode",
    "firesteel.datastream.output_tag",
    "firesteel.datastream.slot_sharing_group",
    "firesteel.datastream.time_characteristic",
    "firesteel.datastream.time_domain",
    "firesteel.datastream.timerservice",
)


def _names() -> list[str]:
    names = list(MODULES)
    for package in PACKAGES:
        module = importlib.import_module(package)
        names.append(package)
        names.extend(found.name for found in pkgutil.walk_packages(module.__path__, f"{package}."))
    return names


@pytest.fixture(params=_names())
def module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def _with_examples() -> list[str]:
    """Every module that shows one, found by what is in its file."""
    package = Path(firesteel.__file__).parent
    files = [path.relative_to(package.parent) for path in package.rglob("*.py") if ">>> " in path.read_text()]
    return sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files)


@pytest.mark.parametrize("name", _with_examples())
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_all_is_complete_and_true(module: ModuleType) -> None:
    assert module.__doc__
    assert all(hasattr(module, name) for name in module.__all__)
