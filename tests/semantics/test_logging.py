"""A job's log: levels, format, secrets, and what comes from workers."""

from __future__ import annotations

import io
import json
import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import eventually

from firesteel.cli import main
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.engine.job_log import JobLog, LogFile
from firesteel.errors import ConfigurationError, JobCommandError
from firesteel.testing import memory_environment

SECRET = "hunter2-and-more"


@pytest.fixture(autouse=True)
def levels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test leaves the process's log as it was, and does not mind what others have set."""
    root = logging.getLogger()
    before = root.level
    monkeypatch.setattr(logging.getLogger("firesteel"), "level", logging.NOTSET)
    yield
    assert root.level == before
    assert not [handler for handler in root.handlers if type(handler).__module__ == JobLog.__module__]
    assert logging.getLogger("shop").level == logging.NOTSET


def environment(**settings: str) -> StreamExecutionEnvironment:
    config = {"firesteel.master": "memory", "parallelism.default": "2", **settings}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))


def noisy(value: int) -> int:
    logger = logging.getLogger("shop")
    logger.info("got %d", value)
    logger.debug("nobody wants to know of %d", value)
    if value == 3:
        try:
            raise ValueError(f"with {SECRET}")
        except ValueError:
            logger.exception("token %s failed at http://me:%s@host/", SECRET, "pass")
    return value


def run(env: StreamExecutionEnvironment) -> Any:
    env.from_collection([1, 2, 3]).key_by(lambda n: n).map(noisy).name("parse").print()
    job: Any = env.execute_async("orders")
    job.get_job_execution_result().result()
    return job


def test_json_with_job_operator_and_subtask_and_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    settings = {"firesteel.log.format": "json", "firesteel.log.file": str(path), "firesteel.log.level": "INFO"}
    job = run(environment(**settings, **{"shop.api.token": SECRET}))
    text = path.read_text()
    assert SECRET not in text
    assert "http://me:***@host/" in text
    entries = [json.loads(line) for line in text.splitlines()]
    ours = [entry for entry in entries if entry["logger"] == "shop"]
    assert sorted(entry["message"] for entry in ours if entry["level"] == "INFO") == ["got 1", "got 2", "got 3"]
    assert {(entry["job_id"], entry["job_name"], entry["operator"]) for entry in ours} == {
        (job.job_id, "orders", "parse")
    }
    assert {entry["subtask"] for entry in ours} <= {0, 1}
    (failed,) = [entry for entry in ours if entry["level"] == "ERROR"]
    assert failed["exception"].endswith("ValueError: with ***")
    # What the driver says is there, too, to the last line.
    assert entries[-1]["message"].startswith("job 'orders' finished after")
    assert "operator" not in entries[-1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_levels_of_single_loggers(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    settings = {"firesteel.log.file": str(path), "firesteel.log.level": "ERROR", "firesteel.log.level.shop": "debug"}
    run(environment(**settings))
    lines = path.read_text().splitlines()
    assert sum("DEBUG shop [parse " in line for line in lines) == 3
    assert not [line for line in lines if " INFO firesteel" in line]


def test_a_level_is_changed_while_the_job_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = JobLog("a" * 32, "orders", {})
    told: list[Any] = []
    log.send_to_workers = lambda **message: told.append(message)
    log.start()
    assert not logging.getLogger("shop").isEnabledFor(logging.DEBUG)
    assert log.set_level("debug", "shop") == {"shop": "DEBUG"}
    assert logging.getLogger("shop").isEnabledFor(logging.DEBUG)
    assert log.set_level("WARN") == {"shop": "DEBUG", "": "WARNING"}
    assert told == [{"levels": {"shop": "DEBUG"}}, {"levels": {"shop": "DEBUG", "": "WARNING"}}]
    with pytest.raises(JobCommandError, match="'loud' is not a level of a log: it must be DEBUG, INFO"):
        log.set_level("loud")
    log.stop()


def test_the_command_line_changes_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment()
    source = DataGeneratorSource(lambda n: n, 10**9, 500)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").filter(lambda n: False).print()
    job: Any = env.execute_async("talkative")
    try:
        assert main(["log-level", job.job_id, "debug", "shop"]) == 0
        assert capsys.readouterr().out == "shop: DEBUG\n"
        assert logging.getLogger("shop").level == logging.DEBUG
        assert main(["log-level", job.job_id, "loud"]) == 1
        assert "'loud' is not a level of a log" in capsys.readouterr().err
    finally:
        job.cancel()


def test_settings_that_are_wrong() -> None:
    with pytest.raises(ConfigurationError, match="'loud' is not a level"):
        JobLog("a", "orders", {"firesteel.log.level": "loud"})
    with pytest.raises(ConfigurationError, match=r"firesteel.log.format is 'xml': it must be text or json"):
        JobLog("a", "orders", {"firesteel.log.format": "xml"}).start()


def entry(**changed: Any) -> dict[str, Any]:
    place = {"operator": "parse", "subtask": 1, "parallelism": 2}
    return {"name": "shop", "level": 30, "message": "odd", "time": 0.5, **place, **changed}


def test_what_workers_log_goes_where_the_programs_log_goes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = JobLog("a" * 32, "orders", {"db.password": SECRET})
    with caplog.at_level(logging.INFO):
        log.take(entry(message=f"odd {SECRET}"))
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("shop", "WARNING", "[parse 2/2] odd ***")
    assert (record.operator, record.subtask, record.job_name) == ("parse", 1, "orders")  # type: ignore[attr-defined]
    # Without a log of the program's it is a line on standard error.
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log.take(entry(message=f"odd {SECRET}"))
    log.take(entry(name="stdout", level=20, message="printed"))
    log.take({"name": "stderr", "level": 20, "message": "of nobody", "time": 0.5})
    assert shown.getvalue() == "WARNING shop [parse 2/2]: odd ***\n[parse 2/2] printed\nof nobody\n"


def test_what_workers_print_is_part_of_a_log_that_the_job_has(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    log = JobLog("a" * 32, "orders", {"firesteel.log.file": str(path), "firesteel.log.format": "json"}, lambda: 2)
    log.start()
    log.take(entry(name="stdout", level=20, message="printed"))
    log.take(entry())
    log.stop()
    printed, logged = (json.loads(line) for line in path.read_text().splitlines())
    assert (printed["logger"], printed["message"], printed["subtask"], printed["attempt"]) == (
        "stdout",
        "printed",
        1,
        2,
    )
    assert (logged["logger"], logged["level"], logged["operator"]) == ("shop", "WARNING", "parse")
    assert logged["time"] == "1970-01-01T00:00:00.500Z"


def test_a_file_that_is_full_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    log = LogFile(str(path), maxBytes=300, backupCount=2, encoding="utf-8")
    log.setFormatter(logging.Formatter("%(message)s"))
    for number in range(20):
        log.handle(logging.makeLogRecord({"msg": f"line {number:02d} {'x' * 40}"}))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["job.log", "job.log.1", "job.log.2"]
    assert all(file.stat().st_size <= 300 and stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert "line 19" in path.read_text()


class SlowMap(MapFunction):
    """Logs, too, while both jobs run."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder

    def map(self, value: int) -> int:
        logging.getLogger("shop").warning("in %s", self._name)
        (self._folder / self._name).touch()
        assert eventually(lambda: len(list(self._folder.iterdir())) == 2)
        return value


def test_two_jobs_of_one_process_have_a_log_each(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    jobs = []
    for name in ("orders", "clicks"):
        file = {"firesteel.log.file": str(tmp_path / f"{name}.log"), "firesteel.log.level": "INFO"}
        env = memory_environment(config={**file, "firesteel.log.format": "json"})
        env.from_collection([1]).map(SlowMap(name, seen)).print()
        jobs.append(env.execute_async(name))
        if name == "orders":
            assert eventually(lambda: (seen / "orders").exists())
    for job in jobs:
        job.get_job_execution_result().result()
    for name, other in (("orders", "clicks"), ("clicks", "orders")):
        entries = [json.loads(line) for line in (tmp_path / f"{name}.log").read_text().splitlines()]
        assert f"in {name}" in [entry["message"] for entry in entries]
        assert any(entry["message"].startswith(f"job '{name}' finished") for entry in entries)
        assert not [entry for entry in entries if other in entry["message"]]
        assert {entry["job_name"] for entry in entries} == {name}
