"""The commit protocol step by step: what is logged, committed, aborted and recovered, and in which order."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.engine.commit_log import CommitLog, job_id_of
from firesteel.engine.commit_watcher import CommitWatcher
from firesteel.engine.commits import Commits
from firesteel.engine.spark.attempt import Attempt
from firesteel.errors import CheckpointError
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.job_spec import JobSpec


class Recorder(Committer):
    def __init__(self, name: str, calls: list[Any], broken: set[str]) -> None:
        self.name, self.calls, self.broken = name, calls, broken

    def _note(self, what: str, given: Any = None) -> None:
        self.calls.append((self.name, what) if given is None else (self.name, what, given))
        if what in self.broken:
            raise ConnectionError(f"no {what}")

    def commit(self, committables: list[Any]) -> None:
        self._note("commit", committables)

    def abort(self, committables: list[Any]) -> None:
        self._note("abort", committables)

    def recover(self, pending: list[Any]) -> None:
        self._note("recover", pending)

    def recover_and_commit(self, committables: list[Any]) -> None:
        self._note("recover_and_commit", committables)

    def close(self) -> None:
        self._note("close")


class RecordingSink(Sink):
    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls
        self.broken: set[str] = set()
        self.contexts: list[CommitterContext] = []

    def create_writer(self, context: WriterContext) -> SinkWriter:
        raise NotImplementedError

    def create_committer(self, context: CommitterContext) -> Committer | None:
        self.contexts.append(context)
        if "create" in self.broken:
            raise ConnectionError("no connection")
        return None if self.name == "plain" else Recorder(self.name, self.calls, self.broken)


class Job:
    """A job with two committing sinks and one that only writes."""

    def __init__(self, folder: Path) -> None:
        self.calls: list[Any] = []
        self.folder, self.logged_until = folder, -1
        env = StreamExecutionEnvironment.get_execution_environment()
        numbers = env.from_collection([1])
        self.sinks = {name: RecordingSink(name, self.calls) for name in ("a", "b", "plain")}
        for name, sink in self.sinks.items():
            numbers.sink_to(sink).name(f"sink {name}").uid(name)
        self.spec = JobSpec("id", "job", build_job_graph(build_stream_graph(env.program, 1)))
        self.ids = {node.uid: node.id for node in self.spec.graph.graph.nodes.values()}
        self.commits = Commits(self.spec)

    def start(self, attempt: int = 0) -> Job:
        spec = replace(self.spec, attempt=attempt, restored=attempt > 0)
        self.commits.start(spec, str(self.folder), lambda batch: batch <= self.logged_until)
        return self

    def log(self, batch: int, **prepared: list[Any]) -> None:
        self.commits.log(batch, {self.ids[uid]: committables for uid, committables in prepared.items()})

    def files(self) -> list[str]:
        return sorted(os.listdir(self.folder)) if self.folder.exists() else []

    def take_calls(self) -> list[Any]:
        taken, self.calls[:] = list(self.calls), []
        return taken


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path / "commits").start()
    made.take_calls()
    return made


def test_nothing_is_committed_before_the_batch_is_logged(job: Job) -> None:
    job.log(0, a=["x"], b=["y", "z"])
    job.commits.settle()
    assert job.take_calls() == []
    assert job.files() == ["0"]
    job.logged_until = 0
    job.commits.settle()
    assert job.take_calls() == [("a", "commit", ["x"]), ("b", "commit", ["y", "z"])]
    assert job.files() == []
    job.commits.settle()
    assert job.take_calls() == [], "once"


@pytest.mark.parametrize(("committable", "shown"), [("transaction-7", "['transaction-7']"), (b"\x80\x05", None)])
def test_a_commit_that_fails_names_its_committables_unless_they_are_pickles(
    job: Job, committable: Any, shown: str | None
) -> None:
    job.sinks["a"].broken.add("commit")
    job.log(0, a=[committable])
    job.logged_until = 0
    with pytest.raises(OperatorFailure, match="no commit") as caught:
        job.commits.settle()
    assert caught.value.failure.element == shown


def test_a_batch_without_committables_writes_nothing(job: Job) -> None:
    job.log(0)
    job.log(1, plain=["not for a committer"])
    assert job.files() == []
    assert not job.commits.waiting.is_set()


def test_what_is_logged_survives_the_driver(job: Job) -> None:
    job.log(0, a=["x"])
    job.logged_until = 0
    later = Job(job.folder)
    later.logged_until = 0
    later.start()
    assert later.take_calls() == [("a", "recover", ["x"]), ("b", "recover", []), ("a", "recover_and_commit", ["x"])]
    assert later.files() == []


def test_a_batch_that_comes_again_is_aborted_and_the_one_before_committed(job: Job) -> None:
    job.log(4, a=["x"], b=["y"])
    job.log(5, a=["z"])
    later = Job(job.folder)
    later.logged_until = 4
    later.start()
    assert later.take_calls() == [
        ("a", "recover", ["x"]),
        ("b", "recover", ["y"]),
        ("a", "abort", ["z"]),
        ("a", "recover_and_commit", ["x"]),
        ("b", "recover_and_commit", ["y"]),
    ]
    assert later.files() == []
    later.log(5, a=["again"])
    later.logged_until = 5
    later.commits.settle()
    assert later.take_calls() == [("a", "commit", ["again"])]


def test_a_failed_commit_is_told_stays_and_comes_again(job: Job) -> None:
    job.sinks["b"].broken.add("commit")
    job.log(0, a=["x"], b=["y"])
    job.logged_until = 0
    for _ in range(2):
        with pytest.raises(OperatorFailure) as caught:
            job.commits.settle()
        failure = caught.value.failure
        assert (failure.operator, failure.error) == ("sink b", "ConnectionError: no commit")
        assert failure.built_at.endswith(f"{Path(__file__).name}:{failure.built_at.rpartition(':')[2]}")
    assert job.take_calls() == [("a", "commit", ["x"]), ("b", "commit", ["y"])], "not tried again in this attempt"
    assert job.files() == ["0"]
    job.sinks["b"].broken.clear()
    job.start(attempt=1)
    assert job.take_calls() == [
        ("a", "close"),
        ("b", "close"),
        ("a", "recover", ["x"]),
        ("b", "recover", ["y"]),
        ("a", "recover_and_commit", ["x"]),
        ("b", "recover_and_commit", ["y"]),
    ]
    assert job.files() == []


def test_a_sink_that_fails_keeps_no_other_one_waiting(job: Job) -> None:
    """Its outage may last; what the others have prepared may not stay so for ever."""
    job.sinks["a"].broken.add("recover_and_commit")
    for batch in range(2):
        job.log(batch, a=[f"x{batch}"], b=[f"y{batch}"])
    job.logged_until = 1
    with pytest.raises(OperatorFailure, match="no recover_and_commit"):
        job.commits.settle()
    again = "recover_and_commit"
    assert job.take_calls() == [("a", again, ["x0"]), ("b", again, ["y0"]), ("b", again, ["y1"])], (
        "and a later batch does not overtake an earlier one of the same sink"
    )
    assert job.files() == ["0", "1"]


def test_with_a_later_batch_prepared_a_committer_is_asked_as_after_a_failure(job: Job) -> None:
    """``commit`` may roll back what else it finds prepared."""
    for batch in range(3):
        job.log(batch, a=[batch])
    job.logged_until = 1
    job.commits.settle()
    assert job.take_calls() == [("a", "recover_and_commit", [0]), ("a", "recover_and_commit", [1])]
    job.logged_until = 2
    job.commits.settle()
    assert job.take_calls() == [("a", "commit", [2])]


@pytest.mark.parametrize("outage", ["create", "recover", "abort", "recover_and_commit"])
def test_a_sink_that_cannot_recover_keeps_no_other_one_waiting(job: Job, outage: str) -> None:
    job.log(0, a=["x0"], b=["y0"])
    job.log(1, b=["y1"])
    job.log(2, a=["x2"], b=["y2"])
    later = Job(job.folder)
    later.logged_until = 1
    later.sinks["a"].broken.add(outage)
    for attempt in range(2):
        with pytest.raises(OperatorFailure, match="no "):
            later.start(attempt)
        of_b = [("b", "recover", ["y0", "y1"] if attempt == 0 else ["y0"]), ("b", "abort", ["y2"])]
        if outage not in ("create", "recover", "abort") and attempt:
            of_b.pop()
        of_b += [("b", "recover_and_commit", ["y0"])] + [("b", "recover_and_commit", ["y1"])] * (attempt == 0)
        assert [call for call in later.take_calls() if call[0] == "b" and call[1] != "close"] == of_b
        assert later.commits.pending == ([0] if outage == "recover_and_commit" else [0, 2])
    later.commits.end()
    assert ("b", "recover_and_commit", ["y0"]) in later.take_calls()
    later.sinks["a"].broken.clear()
    later.start(2)
    calls = later.take_calls()
    assert ("a", "recover_and_commit", ["x0"]) in calls
    assert (("a", "abort", ["x2"]) in calls) == (outage != "recover_and_commit")
    assert later.files() == []


def test_committers_know_whom_they_work_for(job: Job) -> None:
    job.start(attempt=1)
    first, second = job.sinks["a"].contexts
    assert (first.job_name(), first.job_id(), first.sink_uid(), first.attempt(), first.restored()) == (
        ("job", "id", "a", 0, False)
    )
    assert (second.attempt(), second.restored()) == (1, True)
    assert first.name_prefix() == second.name_prefix() != job.sinks["b"].contexts[0].name_prefix()


def test_the_end_leaves_nothing_prepared(job: Job) -> None:
    job.log(0, a=["x"])
    job.log(1, a=["y"])
    job.logged_until = 0
    job.commits.end()
    assert job.take_calls() == [
        ("a", "recover", ["x"]),
        ("b", "recover", []),
        ("a", "abort", ["y"]),
        ("a", "recover_and_commit", ["x"]),
        ("a", "close"),
        ("b", "close"),
    ]
    assert job.files() == []
    job.commits.end()
    assert job.take_calls() == []


def test_what_fails_at_the_end_is_kept(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    job.sinks["a"].broken.update(("recover_and_commit", "close"))
    job.log(0, a=["x"])
    job.logged_until = 0
    job.commits.end()
    assert "could not be brought to an end" in caplog.text
    assert "closing the committer of 'sink a'" in caplog.text
    assert job.commits.pending == [0]
    assert job.files() == ["0"]


def test_a_damaged_entry_is_an_error_and_stays(job: Job) -> None:
    job.log(0, a=["x"])
    (job.folder / "0").write_bytes(b"damaged")
    later = Job(job.folder)
    with pytest.raises(CheckpointError, match=r"entry that cannot be read.*/0 "):
        later.start()
    later.commits.end()
    assert job.files() == ["0"]
    assert later.take_calls() == [("a", "close"), ("b", "close")], "nobody knows what is pending, so nothing is touched"


def test_an_entry_of_a_sink_that_is_gone_is_an_error(tmp_path: Path) -> None:
    CommitLog(str(tmp_path)).write(3, {"gone": ["x"]})
    with pytest.raises(CheckpointError, match=r"Batch 3 .*the program lacks: uid 'gone'"):
        (later := Job(tmp_path)).start()
    later.commits.end()
    assert os.listdir(tmp_path) == ["3"]
    assert later.take_calls() == [("a", "close"), ("b", "close")]


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        CommitLog(str(tmp_path / "file" / "below")).write(0, {"a": [1]})
    with pytest.raises(CheckpointError, match="cannot be read or written"):
        job_id_of(str(tmp_path / "file"), "new")


def test_a_draft_of_an_entry_is_none(job: Job) -> None:
    """What a crash while writing leaves behind."""
    job.folder.mkdir(exist_ok=True)
    (job.folder / ".0.abcd").write_bytes(b"half")
    assert CommitLog(str(job.folder)).read() == {}


def test_a_job_keeps_its_id_with_its_folder(tmp_path: Path) -> None:
    assert job_id_of(str(tmp_path / "a"), "first") == "first"
    assert job_id_of(str(tmp_path / "a"), "second") == "first"
    assert job_id_of(str(tmp_path / "b"), "second") == "second"
    assert CommitLog(str(tmp_path / "a")).read() == {}


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


def test_the_watcher_commits_when_the_batch_is_logged(job: Job) -> None:
    failures: list[BaseException] = []
    watcher = CommitWatcher(job.commits, failures.append)
    watcher.start()
    try:
        for batch in range(3):
            job.log(batch, a=[batch])
            time.sleep(0.05)
            assert job.take_calls() == []
            job.logged_until = batch
            wait_until(lambda: job.calls)
            assert job.take_calls() == [("a", "commit", [batch])]
            wait_until(lambda: not job.commits.waiting.is_set())
        job.sinks["a"].broken.add("commit")
        job.logged_until = 3
        job.log(3, a=["x"])
        wait_until(lambda: failures)
    finally:
        watcher.stop()
    assert isinstance(failures[0], OperatorFailure)
    assert len(failures) == 1


def test_on_spark_the_tasks_of_a_batch_begin_when_the_one_before_is_committed() -> None:
    """Committers rely on it: what is open when they have committed a batch was left by a task that is dead."""
    seen = MagicMock()
    seen.context.inbox.of_checkpoint.return_value = seen.context.inbox.of_batch.return_value = {}
    attempt = MagicMock(context=seen.context, _results=None)
    Attempt.take(attempt, seen.frame, 3)
    names = [name for name, *_ in seen.mock_calls]
    assert names.index("context.commits.settle") < names.index("frame.toArrow")
