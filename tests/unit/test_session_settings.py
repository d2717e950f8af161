"""How the JVM is started for a job, without starting it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark import SparkContext
from sparkkit import spark_env

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors.collection import CollectionEnumerator
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.text import TextFileEnumerator
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.settings import Settings
from firesteel.engine.spark import context, engine, session, spark_defaults
from firesteel.engine.spark.context import (
    context_options,
    has_worker_module,
    running_session,
    start_spark,
    with_master,
)
from firesteel.engine.spark.session_settings import FILE_MANAGER, REQUIRED, WORKER_MODULE, session_settings
from firesteel.errors import ConfigurationError, SetupError
from firesteel.testing import ListSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Asked(Exception):
    """Instead of a session."""


@pytest.mark.parametrize(
    ("count", "jit", "flag"),
    [
        (100_000, "auto", True),
        (100_001, "auto", False),
        (None, "auto", False),
        (None, "quick", True),
        (10, "full", False),
    ],
)
def test_a_job_with_much_to_do_has_the_full_compiler(
    count: int | None, jit: str, flag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def environment(java: Any, home: Any, options: Any, quick: bool, lasting: bool) -> None:
        asked.append(quick)
        raise Asked

    monkeypatch.setattr(context, "_environment", environment)
    monkeypatch.setattr(engine, "job_session", lambda settings, name, lasting, _: start_spark(settings, name, lasting))
    env = spark_env(config={"firesteel.spark.jit": jit})
    numbers = env.from_source(DataGeneratorSource(lambda n: n, count), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.union(env.from_collection([1])).print()
    with pytest.raises(Asked):
        env.execute()
    assert asked == [flag]


def test_what_a_source_knows_of_its_size(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("a line\n" * 100)
    small = [
        CollectionEnumerator.of([1, 2]),
        IndexEnumerator(2),
        IndexEnumerator(2, 1.0),
        TextFileEnumerator.of(str(file)),
        ListSource([[1]]).create_enumerator(),
    ]
    assert all(source.ends_within(100) for source in small)
    assert not any(source.ends_within(1) for source in small)
    assert not IndexEnumerator(None, 1.0).ends_within(100)


def test_no_other_compiler_is_known() -> None:
    with pytest.raises(ConfigurationError, match="'fast': it must be auto, quick or full"):
        Settings.of(Configuration.from_dict({"firesteel.spark.jit": "fast"}))


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the user's spark-defaults.conf, with no JVM that somebody else has started."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(context, "_others_jvm", lambda: False)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)

    def write(text: str) -> None:
        (tmp_path / "spark-defaults.conf").write_text(text)

    return write


def test_a_new_context_has_our_settings_then_the_users_then_the_jobs(defaults: Callable[[str], None]) -> None:
    defaults("spark.shuffle.compress true\nspark.local.dir /data\nspark.app.name users\nspark.sql.ansi.enabled true\n")
    asked = {"spark.local.dir": "/job", "spark.sql.shuffle.partitions": "3", "spark.sql.catalog.a": "b"}
    made = context_options(Settings(master="local[2]", spark=asked), "job", spark_defaults.spark_defaults())
    assert made["spark.shuffle.compress"] == "true"
    assert made["spark.shuffle.spill.compress"] == "false"
    assert made["spark.local.dir"] == "/job"
    assert made["spark.app.name"] == "users"
    # The user's are for all sessions, the job's for its own.
    assert made["spark.sql.ansi.enabled"] == "true"
    assert [key for key in made if key.startswith("spark.sql.") and key in asked] == []
    assert made["spark.pyspark.python"] == sys.executable
    assert "spark.driver.host" not in context_options(Settings(master="spark://a:1"), "job", {})


def test_spark_defaults_in_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert spark_defaults.spark_defaults() == {}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.a 1\nother.b 2\n")
    assert spark_defaults.spark_defaults() == {"spark.a": "1"}
    monkeypatch.delenv("SPARK_HOME")
    assert spark_defaults.spark_defaults() == {}


def test_which_master_auto_is(defaults: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_master(Settings()).master == "local"
    assert with_master(Settings(master="local[3]")).master == "local[3]"
    defaults("spark.master spark://host:7077")
    assert with_master(Settings()).master == "spark://host:7077"
    assert with_master(Settings(master="local")).master == "local"
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(master="yarn"))
    assert with_master(Settings()).master == "yarn"


@pytest.mark.parametrize(
    ("variables", "master", "text"),
    [
        (
            {"SPARK_REMOTE": "sc://host:15002/;token=hunter2"},
            "auto",
            r"there is the variable SPARK_REMOTE: Spark Connect .* unset SPARK_REMOTE\.$",
        ),
        (
            {"SPARK_API_MODE": "Connect"},
            "auto",
            r"there is the variable SPARK_API_MODE=connect: .* unset SPARK_API_MODE\.$",
        ),
        (
            {"SPARK_CONNECT_MODE_ENABLED": "1"},
            "local",
            "there is a session of Spark Connect in this process: .* run the job in a process of its own",
        ),
        ({}, "sc://host/;token=hunter2", r"there is a master with sc://: .* such as local\[4\]"),
    ],
)
def test_spark_connect_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], master: str, text: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    expected = f"^Firesteel needs a classic Spark session, and {text}"
    with pytest.raises(SetupError, match=expected):
        running_session(Settings(master=master))
    with pytest.raises(SetupError, match=expected):
        start_spark(Settings(master=master), "job", lasting=False)


def test_whether_workers_are_forked_from_our_process(
    defaults: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, module = WORKER_MODULE
    assert has_worker_module(Settings())
    assert not has_worker_module(Settings(spark={key: "theirs"}))
    defaults(f"{key} theirs")
    assert not has_worker_module(Settings())
    for running, expected in (({}, False), ({key: "theirs"}, False), ({key: module}, True)):
        context_of = SimpleNamespace(getConf=lambda running=running: running)
        monkeypatch.setattr(SparkContext, "_active_spark_context", context_of)
        assert has_worker_module(Settings()) is expected


def test_what_the_jvms_command_line_needs_is_left_to_sparks_launcher(
    defaults: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    homes: list[Any] = []

    def environment(java: Any, home: Any, options: Any, quick: bool, lasting: bool) -> None:
        homes.append(home)
        raise Asked

    monkeypatch.setattr(context, "_environment", environment)
    for text in ("spark.driver.memory 2g", "spark.driver.extraJavaOptions -XX:+UseG1GC"):
        defaults(text)
        with pytest.raises(Asked):
            start_spark(Settings(), "job", lasting=False)
    assert [home is None for home in homes] == [False, True]


def test_spark_remembers_little_where_it_has_no_page() -> None:
    key = "spark.ui.retainedJobs"
    assert context_options(Settings(), "job", {})[key] == "50"
    assert context_options(Settings(), "job", {key: "7"})[key] == "7"
    assert key not in context_options(Settings(), "job", {"spark.ui.enabled": "true"})
    assert key not in context_options(Settings(ui=True), "job", {})


def test_the_file_manager_is_for_local_folders() -> None:
    key, value = FILE_MANAGER
    assert session_settings({}, {}, local=True, local_files=True)[key] == value
    assert key not in session_settings({}, {}, local=True, local_files=False)
    assert key not in session_settings({key: "theirs"}, {}, local=True, local_files=True)
    assert session_settings({}, {key: "theirs"}, local=True, local_files=True)[key] == "theirs"


UNSAFE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": "theirs.Provider",
}


def test_a_job_cannot_have_settings_with_which_it_would_be_wrong() -> None:
    assert UNSAFE.keys() == REQUIRED.keys()
    made = session_settings({}, {**UNSAFE, "spark.sql.shuffle.partitions": "7"}, local=True, local_files=True)
    assert made.items() >= REQUIRED.items()
    assert made["spark.sql.shuffle.partitions"] == "7"


class FakeSession:
    """A session with settings, for the pool of sessions."""

    def __init__(self, context: Any, settings: dict[str, str]) -> None:
        self.sparkContext = context
        self.settings = dict(settings)
        self.conf = SimpleNamespace(
            set=self.settings.__setitem__,
            unset=lambda key: self.settings.pop(key, None),
            isModifiable=lambda key: key != "spark.sql.warehouse.dir",
        )

    def newSession(self) -> FakeSession:
        return FakeSession(self.sparkContext, self.sparkContext.started_with)


def test_a_session_serves_one_job_after_the_other(caplog: pytest.LogCaptureFixture) -> None:
    started_with = {"spark.sql.ansi.enabled": "true", WORKER_MODULE[0]: WORKER_MODULE[1]}
    conf = SimpleNamespace(getAll=lambda: list(started_with.items()))
    fake = SimpleNamespace(master="local[2]", started_with=started_with, getConf=lambda: conf, _jvm=None)
    users = FakeSession(fake, started_with)
    sessions = session._Sessions(cast("SparkSession", users))
    asked = {"spark.sql.ansi.enabled": "false", "spark.sql.streaming.minBatchesToRetain": "2"}
    first = cast("FakeSession", sessions.take(Settings(spark=asked), local_files=True))
    second = cast("FakeSession", sessions.take(Settings(), local_files=True))
    assert first is not second
    assert first.settings.items() >= asked.items()
    assert second.settings["spark.sql.ansi.enabled"] == "true"
    assert "spark.sql.streaming.minBatchesToRetain" not in second.settings
    # Given back twice is given back once.
    sessions.give_back(cast("SparkSession", first))
    sessions.give_back(cast("SparkSession", first))
    third = cast("FakeSession", sessions.take(Settings(), local_files=True))
    assert third is first
    assert third.settings == second.settings
    assert sessions.take(Settings(), local_files=True) not in (first, second)
    assert users.settings == started_with
    assert not caplog.records
    sessions.take(Settings(spark={"spark.sql.warehouse.dir": "/x", "spark.executor.memory": "2g"}), local_files=True)
    (warning,) = caplog.messages
    assert "no effect: spark.executor.memory, spark.sql.warehouse.dir." in warning
    assert "spark.sql.warehouse.dir" not in first.settings


def test_a_job_is_told_which_of_its_settings_would_make_it_wrong(caplog: pytest.LogCaptureFixture) -> None:
    started_with = {WORKER_MODULE[0]: WORKER_MODULE[1]}
    conf = SimpleNamespace(getAll=lambda: list(started_with.items()))
    fake = SimpleNamespace(master="local[2]", started_with=started_with, getConf=lambda: conf, _jvm=None)
    sessions = session._Sessions(cast("SparkSession", FakeSession(fake, started_with)))
    kept = {"spark.sql.ansi.enabled": "true", "spark.sql.adaptive.enabled": "False"}
    sessions.take(Settings(spark=kept), local_files=True)
    assert not caplog.records, "what is asked for is what jobs have"
    taken = cast("FakeSession", sessions.take(Settings(spark=UNSAFE), local_files=True))
    assert taken.settings.items() >= REQUIRED.items()
    assert len(caplog.messages) == len(UNSAFE)
    for (key, value), message in zip(sorted(UNSAFE.items()), caplog.messages, strict=True):
        assert message.startswith(f"the setting {key}={value} of the job has no effect")
        assert message.endswith(f"so jobs run with {REQUIRED[key]}.")


def test_other_work_has_the_settings_that_it_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    started_with = {WORKER_MODULE[0]: WORKER_MODULE[1]}
    conf = SimpleNamespace(getAll=lambda: list(started_with.items()))
    fake = SimpleNamespace(master="local[2]", started_with=started_with, getConf=lambda: conf, _jvm=None)
    sessions = session._Sessions(cast("SparkSession", FakeSession(fake, started_with)))
    asked = {"spark.sql.adaptive.enabled": "true"}
    shared = cast("FakeSession", sessions.shared("tables", Settings(spark=asked)))
    assert shared.settings["spark.sql.adaptive.enabled"] == "true"
    others = cast("FakeSession", sessions.shared("replay", Settings()))
    assert others.settings.items() >= REQUIRED.items()
    assert not caplog.records


def test_a_context_without_our_worker_module_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    conf = SimpleNamespace(getAll=list)
    fake = SimpleNamespace(master="local[2]", started_with={}, getConf=lambda: conf, _jvm=None)
    sessions = session._Sessions(cast("SparkSession", FakeSession(fake, {})))
    for _ in range(3):
        sessions.take(Settings(), local_files=True)
    (warning,) = caplog.messages
    assert "without Firesteel's worker module" in warning
    assert "Start the application with spark.python.daemon.module=firesteel.engine.spark.daemon" in warning


def test_nothing_is_loaded_any_more_when_a_start_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or CPython may take the program's end by Ctrl-C for a failure."""
    loaded: list[str] = []
    begun = threading.Event()

    def load(name: str) -> None:
        begun.set()
        time.sleep(0.2)
        loaded.append(name)

    monkeypatch.setattr(context.importlib, "import_module", load)

    def interrupted() -> None:
        with context._preloading():
            assert begun.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert loaded
    assert "preload" not in [thread.name for thread in threading.enumerate()]
