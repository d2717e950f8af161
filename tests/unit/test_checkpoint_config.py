"""Settings of checkpoints, restart strategies, and where a job's folder is. Values as PyFlink 2.3 gives them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, JobStatus
from firesteel.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    StreamExecutionEnvironment,
)
from firesteel.engine.checkpointing import Checkpointing
from firesteel.engine.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestarts, restarts_of
from firesteel.engine.settings import Settings
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.filesystems import LOCAL

RETAIN = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
DELETE = ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
NO = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
ON = {"execution.checkpointing.interval": "1 s"}


def config(**values: str) -> Configuration:
    return Configuration.from_dict({key.replace("__", ".").replace("_", "-"): v for key, v in values.items()})


def test_defaults_are_flinks() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    checkpoints = env.get_checkpoint_config()
    assert not checkpoints.is_checkpointing_enabled()
    assert env.get_checkpoint_interval() == checkpoints.get_checkpoint_interval() == -1
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert checkpoints.get_checkpoint_timeout() == 600_000
    assert checkpoints.get_min_pause_between_checkpoints() == 0
    assert checkpoints.get_max_concurrent_checkpoints() == 1
    assert checkpoints.get_tolerable_checkpoint_failure_number() == 0
    assert checkpoints.is_fail_on_checkpointing_errors()
    assert checkpoints.get_externalized_checkpoint_retention() is NO
    assert not checkpoints.is_externalized_checkpoints_enabled()
    assert not checkpoints.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    assert checkpoints.get_alignment_timeout() == Duration.of_millis(0)


def test_what_is_set_is_given_back() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.enable_checkpointing(1000) is env
    checkpoints = env.get_checkpoint_config()
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.EXACTLY_ONCE
    checkpoints.enable_unaligned_checkpoints()
    assert env.is_unaligned_checkpoints_enabled()
    env.enable_checkpointing(2000, CheckpointingMode.AT_LEAST_ONCE)
    assert (env.get_checkpoint_interval(), env.get_checkpointing_mode()) == (2000, CheckpointingMode.AT_LEAST_ONCE)
    assert not env.is_unaligned_checkpoints_enabled(), "they are for EXACTLY_ONCE"
    checkpoints.set_fail_on_checkpointing_errors(False)
    assert checkpoints.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    checkpoints.set_externalized_checkpoint_retention(DELETE).set_checkpoint_timeout(20).set_max_concurrent_checkpoints(
        3
    )
    assert checkpoints.is_externalized_checkpoints_enabled()
    assert (checkpoints.get_checkpoint_timeout(), checkpoints.get_max_concurrent_checkpoints()) == (20, 3)
    checkpoints.set_aligned_checkpoint_timeout(Duration.of_seconds(3)).set_force_unaligned_checkpoints()
    assert checkpoints.get_alignment_timeout() == Duration.of_seconds(3)
    assert env.is_force_unaligned_checkpoints()


def test_the_program_wins_over_the_configuration() -> None:
    settings = config(execution__checkpointing__interval="10 s", execution__checkpointing__mode="at-least-once")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    assert (env.get_checkpoint_interval(), env.get_checkpointing_mode()) == (10_000, CheckpointingMode.AT_LEAST_ONCE)
    env.enable_checkpointing(3000)
    assert (env.get_checkpoint_interval(), env.get_checkpointing_mode()) == (3000, CheckpointingMode.AT_LEAST_ONCE)
    assert settings.get_string("execution.checkpointing.interval", "") == "10 s"


@pytest.mark.parametrize(
    ("method", "value", "words"),
    [
        ("set_checkpoint_interval", 9, "at least 10, got 9"),
        ("set_checkpoint_timeout", 5, "at least 10, got 5"),
        ("set_min_pause_between_checkpoints", -1, "at least 0, got -1"),
        ("set_max_concurrent_checkpoints", 0, "at least 1, got 0"),
        ("set_tolerable_checkpoint_failure_number", True, "got True"),
        ("set_checkpointing_mode", "EXACTLY_ONCE", "takes a CheckpointingMode, got 'EXACTLY_ONCE'"),
        ("set_aligned_checkpoint_timeout", 5, "takes a Duration, got 5"),
    ],
)
def test_what_makes_no_sense_is_refused(method: str, value: Any, words: str) -> None:
    with pytest.raises(ProgramError, match=words):
        getattr(CheckpointConfig(), method)(value)


def test_a_misspelt_retention_is_named() -> None:
    settings = config(execution__checkpointing__externalized_checkpoint_retention="KEEP")
    with pytest.raises(ConfigurationError, match=r"DELETE_ON_CANCELLATION, RETAIN_ON_CANCELLATION, .* got 'KEEP'"):
        CheckpointConfig(settings).get_externalized_checkpoint_retention()


# Where the folder is


def folder(settings: dict[str, str], name: str = "job", batch: bool = False) -> str | None:
    return Checkpointing.of(Configuration.from_dict(settings), name, batch).folder


def test_one_folder_per_job() -> None:
    assert folder({}) is None
    assert folder({"state.checkpoints.dir": "/c"}) is None, "without checkpoints nothing is left behind"
    assert folder({**ON, "state.checkpoints.dir": "/c"}) == "/c/job"
    assert folder({**ON, "state.checkpoints.dir": "/c", "execution.checkpointing.dir": "file:///d%20e"}) == "/d e/job"
    assert folder({"firesteel.checkpoint.dir": "/exact"}) == "/exact", "also without an interval"
    assert folder({**ON, "firesteel.checkpoint.dir": "/exact", "state.checkpoints.dir": "/c"}) == "/exact"
    assert folder({**ON, "state.checkpoints.dir": "/c"}, batch=True) is None
    names = ["a b", "a-b", "a/b", "../a b", "..", "", "a" * 300]
    folders = {str(folder({**ON, "state.checkpoints.dir": "/c"}, name)) for name in names}
    assert len(folders) == len(names)
    assert all(os.path.dirname(one) == "/c" and os.path.basename(one)[0] != "." for one in folders)
    for same in ("s3a://bucket/c/", "s3://bucket/c"):
        assert folder({**ON, "state.checkpoints.dir": same}) == "s3a://bucket/c/job", "as Spark's client calls it"
    with pytest.raises(ConfigurationError, match=r"state\.checkpoints\.dir.* got 's3a:/bucket/c'"):
        folder({**ON, "state.checkpoints.dir": "s3a:/bucket/c"})


def test_a_folder_that_an_earlier_version_has_named_is_found(tmp_path: Path) -> None:
    settings = Configuration.from_dict({**ON, "state.checkpoints.dir": str(tmp_path)})
    checkpointing = Checkpointing.of(settings, "word count")
    assert checkpointing.found(LOCAL) == checkpointing
    (tmp_path / "word-count-16eea39c").mkdir()
    assert checkpointing.found(LOCAL).folder == str(tmp_path / "word-count-16eea39c")
    assert checkpointing.folder is not None
    Path(checkpointing.folder).mkdir()
    assert checkpointing.found(LOCAL) == checkpointing
    assert Checkpointing.of(settings, "orders").found(LOCAL).folder == str(tmp_path / "orders")


@pytest.mark.parametrize(
    ("retention", "exact", "stays"),
    [
        (None, False, (False, True, False)),
        (NO, False, (False, True, False)),
        (DELETE, False, (False, True, False)),
        (RETAIN, False, (True, True, False)),
        (None, True, (True, True, True)),
        (DELETE, True, (False, True, True)),
    ],
)
def test_retention(
    retention: ExternalizedCheckpointRetention | None, exact: bool, stays: tuple[bool, ...], tmp_path: Path
) -> None:
    checkpointing = Checkpointing(True, str(tmp_path), exact, retention)
    ends = (JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED)
    assert tuple(checkpointing.stays(status) for status in ends) == stays


def test_settings_of_the_engine() -> None:
    settings = Settings.of(Configuration.from_dict({**ON, "execution.checkpointing.min-pause": "300 ms"}))
    assert (settings.checkpoint_interval_ms, settings.interval_ms) == (1000, 0)
    settings = Settings.of(Configuration.from_dict({**ON, "firesteel.batch.interval": "5 ms"}))
    assert (settings.checkpoint_interval_ms, settings.interval_ms) == (1000, 5)
    assert Settings.of(Configuration()).checkpoint_interval_ms == 0
    key = "spark.sql.streaming.minBatchesToRetain"
    assert key not in Settings.of(Configuration()).spark
    assert Settings.of(config(state__checkpoints__num_retained="7")).spark[key] == "7"
    assert Settings.of(config(execution__checkpointing__num_retained="1")).spark[key] == "2"
    assert Settings.of(Configuration.from_dict({"state.checkpoints.num-retained": "7", key: "9"})).spark[key] == "9"


# Restart strategies


@pytest.mark.parametrize(
    ("settings", "checkpoints", "kind"),
    [
        ({}, False, NoRestarts),
        ({}, True, ExponentialDelay),
        ({"restart-strategy.type": "off"}, True, NoRestarts),
        ({"restart-strategy": "fixeddelay"}, False, FixedDelay),
        ({"restart-strategy.type": "Failure-Rate", "restart-strategy": "none"}, False, FailureRate),
    ],
)
def test_which_strategy(settings: dict[str, str], checkpoints: bool, kind: type) -> None:
    assert type(restarts_of(Configuration.from_dict(settings), checkpoints)) is kind


def test_flinks_defaults() -> None:
    fixed = restarts_of(Configuration.from_dict({"restart-strategy.type": "fixed-delay"}), False)
    assert [fixed.after(0), fixed.after(0)] == [1, None]
    rate = restarts_of(Configuration.from_dict({"restart-strategy.type": "failure-rate"}), False)
    assert [rate.after(0), rate.after(61), rate.after(70)] == [1, 1, None]
    growing = restarts_of(Configuration.from_dict({"restart-strategy.exponential-delay.jitter-factor": "0"}), True)
    pauses = [growing.after(second) for second in range(30)]
    assert pauses[:3] == [1, 1.5, 2.25]
    assert pauses[-1] == 60


def test_exponential_delay() -> None:
    highest = ExponentialDelay(initial=10, longest=100, multiplier=2, jitter=0.5, random_number=lambda: 1)
    assert [highest.after(0) for _ in range(5)] == [15, 30, 60, 100, 100]
    lowest = ExponentialDelay(initial=10, longest=100, multiplier=2, jitter=0.5, random_number=lambda: 0)
    assert [lowest.after(0) for _ in range(5)] == [10, 10, 20, 40, 50]
    few = ExponentialDelay(reset_after=100, attempts=2, jitter=0)
    assert [few.after(0), few.after(1), few.after(200), few.after(201), few.after(202)] == [1, 1.5, 1, 1.5, None]
    assert few.after(203) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"restart-strategy.type": "sometimes"}, "none, fixed-delay, .* got 'sometimes'"),
        (
            {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "-1"},
            "fixed-delay.attempts' should lie between 0 .* got -1",
        ),
        ({"restart-strategy.exponential-delay.backoff-multiplier": "0.5"}, "multiplier' should lie between 1.0"),
        ({"restart-strategy.exponential-delay.initial-backoff": "2 min"}, "max-backoff' .* should not be below"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        restarts_of(Configuration.from_dict(settings), checkpointing=True)
