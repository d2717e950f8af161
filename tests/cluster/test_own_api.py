"""The page's own API over real jobs in memory: rows, diagnosis of jobs that are made slow on purpose, state, logs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from folderkit import runtime_folder
from sparkkit import eventually
from starlette.applications import Starlette

from firesteel.cluster import diagnosis
from firesteel.cluster.jobs_view import JobsOfUser, LogFile
from firesteel.cluster.own_api import own_routes
from firesteel.common import Configuration, JobClient, Types, WatermarkStrategy
from firesteel.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError
from firesteel.testing import ListSource, Record, Watermark

API = "/firesteel/v1/jobs"


SMALL = {"firesteel.batch.max-records": "60"}
"""Batches that take a moment although each record does."""


class JobsWithLogs(JobsOfUser):
    """Jobs of this process, with log files that a test wrote."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def logs(self, job_id: str) -> list[LogFile]:
        self.job(job_id)

        def mask(text: str) -> str:
            return text.replace("hunter2", "***")

        return [LogFile(path.name, path, 0, mask) for path in sorted(self._folder.glob("*.log"))]


class Jobs:
    """Starts jobs, asks the API about them, ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._app = Starlette(routes=own_routes(JobsWithLogs(folder)))
        self._started: list[JobClient] = []

    def start(
        self, name: str, build: Callable[[StreamExecutionEnvironment], DataStream], parallelism: int = 1, **config: str
    ) -> str:
        settings = {"firesteel.master": "memory", **config}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(parallelism)
        build(env).filter(lambda one: False).name("nothing").print()
        job = env.execute_async(name)
        self._started.append(job)
        return str(job.get_job_id())

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        return self.ask("GET", path, status, **query)

    def ask(self, method: str, path: str, status: int = 200, **query: Any) -> Any:
        async def answered() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, f"{API}/{path}".rstrip("/"), params=query)

        answer = asyncio.run(answered())
        assert answer.status_code == status, answer.text
        return answer.json()

    def diagnosis(self, job: str, rule: str) -> dict[str, Any]:
        """What is said of a job, once it is something of a kind."""
        found: dict[str, Any] = {}

        def said() -> bool:
            found.update(self.get(f"{job}/diagnosis"))
            return bool(found["rule"] == rule)

        assert eventually(said), found
        return found

    def wait(self) -> None:
        """Until the job that was started last has ended, and is known as one that has."""
        with contextlib.suppress(JobExecutionError):
            self._started[-1].get_job_execution_result().result()

    def end(self) -> None:
        for job in self._started:
            if not job.get_job_status().result().is_terminal_state():
                job.cancel().result()
            # One that has just ended is still being written down.
            with contextlib.suppress(Exception):
                job.get_job_execution_result().result()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Jobs]:
    # A short path: that of a socket must be.
    with runtime_folder() as folder:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        found = Jobs(tmp_path)
        try:
            yield found
        finally:
            found.end()


def numbers(env: StreamExecutionEnvironment, rate: float | None = None) -> DataStream:
    source = DataGeneratorSource(lambda number: number, None, rate)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


def slow(value: int) -> int:
    time.sleep(0.002)
    return value


def test_jobs_with_rate_and_last_error(jobs: Jobs) -> None:
    running = jobs.start("steady", lambda env: numbers(env, 200), **{"firesteel.batch.interval": "200 ms"})

    def broken(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection(["1", "x"]).map(int).name("parse")

    failed = jobs.start("broken", broken)
    jobs.wait()
    assert eventually(lambda: {one["status"] for one in jobs.get("")["jobs"]} == {"RUNNING", "FAILED"})
    assert eventually(lambda: by_id(jobs)[running]["rate"])
    rows = by_id(jobs)
    assert rows[running]["lastError"] is None
    assert rows[running]["lag"] is None, "its records have no event time"
    assert rows[running]["duration"] >= 0
    assert rows[failed]["lastError"] == "ValueError: invalid literal for int() with base 10: 'x'"
    assert rows[failed]["rate"] is not None
    (failure,) = jobs.get(f"{failed}/exceptions")["failures"]
    assert failure["cause"] == rows[failed]["lastError"]
    assert failure["operator"] == "parse"
    assert failure["element"] == "'x'"
    assert failure["replay"] is None, "a job in memory has no log to replay from"
    said = jobs.get(f"{failed}/diagnosis")
    assert (said["level"], said["operator"]) == ("bad", "parse")


def by_id(jobs: Jobs) -> dict[str, Any]:
    return {one["id"]: one for one in jobs.get("")["jobs"]}


def test_a_job_has_plan_metrics_and_batches(jobs: Jobs) -> None:
    job = jobs.start(
        "steady", lambda env: numbers(env, 500).map(lambda n: n).name("same"), **{"firesteel.batch.interval": "100 ms"}
    )
    assert eventually(lambda: len(jobs.get(f"{job}/batches")["batches"]) >= 3)
    told = jobs.get(job)
    assert [node["type"] for node in told["plan"]["nodes"]][:2] == ["Source: numbers", "same"]
    operators = {one["name"]: one for one in told["metrics"]["operators"]}
    assert operators["same"]["subtasks"][0]["records_in"] > 0
    assert told["checkpoints"]["completed"] >= 3
    batches = jobs.get(f"{job}/batches")["batches"]
    assert batches[0]["parts"]["tasks"] > 0
    later = jobs.get(f"{job}/batches", after=batches[1]["number"])["batches"]
    assert later[0]["number"] == batches[2]["number"], "only what is new"
    assert jobs.get(f"{job}/checkpoints")["history"]
    (driver,) = [one for one in jobs.get(f"{job}/processes")["processes"] if one["kind"] == "driver"]
    assert driver["memory"] > 1 << 20


def test_what_is_not_known_is_told(jobs: Jobs) -> None:
    nobody = "0" * 32
    assert jobs.get(nobody, 404)["errors"] == [f"Job {nobody} is not known."]
    job = jobs.start("waits", lambda env: numbers(env, 10))
    assert "whole number" in jobs.get(f"{job}/batches", 400, after="x")["errors"][0]
    assert jobs.get(f"{job}/logs/other.log", 404)["errors"] == ["The job has no such log file."]
    assert jobs.get(f"{job}/state/rows", 404)["errors"]


def test_the_operator_that_a_slow_job_waits_for(jobs: Jobs) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).map(lambda n: n).name("quick").rebalance().map(slow).name("slow")

    job = jobs.start("slow", build, **SMALL)
    said = jobs.diagnosis(job, "bottleneck")
    assert said["operator"] == "slow"
    assert said["text"].startswith("Operator 'slow' is the bottleneck: ")


def test_the_subtask_and_key_groups_of_a_hot_key(jobs: Jobs) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = numbers(env).key_by(lambda n: "hot" if n % 20 else str(n), key_type=Types.STRING())
        return keyed.map(slow).name("per key")

    job = jobs.start("skewed", build, parallelism=4, **SMALL)
    said = jobs.diagnosis(job, "skewed")
    assert said["operator"] == "per key"
    # The key lies in one group, so in one of the four ranges.
    assert "(key groups " in said["text"]
    assert "spread evenly, each of 4 subtasks would get 25%" in said["text"]


def test_a_batch_that_does_not_end(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "STUCK_AT_LEAST", 300)
    job = jobs.start("stuck", lambda env: env.from_collection([1]).map(waits).name("waits"))
    try:
        said = jobs.diagnosis(job, "batch_stuck")
        assert "does not end: it runs for " in said["text"]
    finally:
        GO_ON.set()


GO_ON = threading.Event()


def waits(value: int) -> int:
    GO_ON.wait(300)
    return value


def test_the_source_that_holds_event_time_back(jobs: Jobs) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        ahead = ListSource([[Record(1, 900_000)], Watermark(900_000), [Record(2, 901_000)], []], ends=False)
        behind = ListSource([[Record(1, 1_000)], Watermark(1_000), [Record(2, 2_000)], []], ends=False)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        return env.from_source(ahead, strategy, "ahead").union(env.from_source(behind, strategy, "behind"))

    said = jobs.diagnosis(jobs.start("two sources", build), "event_time_held_back")
    assert said["operator"] == "Source: behind"
    assert "held back by source 'behind', which is 14 min 59 s behind" in said["text"]


def test_a_job_without_input_waits(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "IDLE_AFTER", 300)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_source(ListSource([[1]], ends=False), WatermarkStrategy.no_watermarks(), "script")

    said = jobs.diagnosis(jobs.start("quiet", build), "idle")
    assert said["text"].startswith("The job waits for input: source 'script' has given no record for ")


class CountClicks(MapFunction):
    """Keeps a number for each user, and something that only its program knows the class of."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("clicks", Types.LONG()))
        self.share = runtime_context.get_state(ValueStateDescriptor("share", Types.PICKLED_BYTE_ARRAY()))

    def map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.share.update(Fraction(1, 3))
        return value


def test_state_as_rows(jobs: Jobs) -> None:
    users = [f"user-{number % 250:03}" for number in range(1_000)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        source = env.from_source(
            ListSource([users], ends=False), WatermarkStrategy.no_watermarks(), "users", Types.STRING()
        )
        return source.key_by(lambda user: user, key_type=Types.STRING()).map(CountClicks()).name("count").uid("count")

    job = jobs.start("counts", build, parallelism=2)
    assert eventually(lambda: jobs.get(job)["checkpoints"]["completed"])
    before = jobs.get(f"{job}/state")
    assert (before["taken"], before["states"]) == (None, [])
    taken = jobs.ask("POST", f"{job}/state")
    assert {(one["name"], one["rows"]) for one in taken["states"]} == {("clicks", 250), ("share", 250)}
    rows = jobs.get(f"{job}/state/rows", uid="count", state="clicks", key="R-01", limit=4)
    assert rows["columns"] == ["key", "value"]
    assert (rows["matching"], rows["total"], len(rows["rows"])) == (10, 250, 4)
    second = jobs.get(f"{job}/state/rows", uid="count", state="clicks", key="R-01", limit=40, offset=4)["rows"]
    assert sorted(rows["rows"] + second) == [[f"user-01{number}", 4] for number in range(10)]
    # Nothing of the program is loaded to show it.
    shares = jobs.get(f"{job}/state/rows", uid="count", state="share", limit=1)["rows"]
    assert shares[0][1].startswith("an object of fractions.Fraction (")
    assert jobs.get(f"{job}/state/rows", 409, uid="count", state="other")["errors"]


def test_state_of_a_job_that_has_left_none(jobs: Jobs) -> None:
    job = jobs.start("over", lambda env: env.from_collection([1, 2]))
    jobs.wait()
    (message,) = jobs.ask("POST", f"{job}/state", 409)["errors"]
    assert message.startswith("The job has ended and kept no checkpoint.")
    # Where a folder was named, and nothing is in it.
    folder = str(jobs.folder / "checkpoints")
    job = jobs.start("over, too", lambda env: env.from_collection([1]), **{"execution.checkpointing.dir": folder})
    jobs.wait()
    (message,) = jobs.ask("POST", f"{job}/state", 409)["errors"]
    assert message.startswith(("The job has left no checkpoint in ", "The job has ended and kept no checkpoint."))


def test_logs_by_parts_and_by_text(jobs: Jobs) -> None:
    path = jobs.folder / "attempt-0.log"
    path.write_text("".join(f"line {number} ä\n" for number in range(1_000)) + "password is hunter2\n")
    job = jobs.start("logs", lambda env: numbers(env, 10))
    (file,) = jobs.get(f"{job}/logs")["files"]
    assert (file["name"], file["attempt"], file["size"]) == ("attempt-0.log", 0, path.stat().st_size)
    end = jobs.get(f"{job}/logs/attempt-0.log", length=200)
    assert end["text"].endswith("line 999 ä\npassword is ***\n")
    assert end["text"].startswith("line "), "whole lines"
    assert end["end"] == end["size"]
    with path.open("a") as file_itself:
        file_itself.write("one more\n")
    more = jobs.get(f"{job}/logs/attempt-0.log", start=end["end"])
    assert (more["text"], more["start"]) == ("one more\n", end["end"])
    before = jobs.get(f"{job}/logs/attempt-0.log", start=0, length=25)
    assert before["text"] == "line 0 ä\nline 1 ä\n"
    path.write_text("rotated\n")
    assert jobs.get(f"{job}/logs/attempt-0.log", start=more["end"])["text"] == "rotated\n"
    path.write_text("INFO begin\nERROR Bad\nERROR hunter2\n")
    assert jobs.get(f"{job}/logs/attempt-0.log", search="error b")["lines"] == [{"position": 11, "text": "ERROR Bad"}]
    assert jobs.get(f"{job}/logs/attempt-0.log", search="hunter")["lines"] == [], "what is masked is not found"
