"""Configuration, execution config, watermark strategies and the other settings."""

from __future__ import annotations

import copy
import re
from datetime import timedelta
from pathlib import Path

import pytest

from firesteel.common import (
    CompletableFuture,
    Configuration,
    Duration,
    Encoder,
    ExecutionConfig,
    JobID,
    JobStatus,
    RestartStrategies,
    SimpleStringSchema,
    TimestampAssigner,
    WatermarkStrategy,
)
from firesteel.common.duration_settings import DURATIONS
from firesteel.common.older_keys import OLDER_KEYS
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine.known_keys import KNOWN
from firesteel.errors import ConfigurationError, ProgramError, TypeMismatchError


def full() -> Configuration:
    config = Configuration().set_string("s", "a b").set_integer("i", 5).set_boolean("b", True)
    return config.set_float("f", 1.5).set_bytearray("y", bytearray(b"ab"))


def test_values_read_as_pyflink_reads_them() -> None:
    config = full().set_string("n", " 10").set_string("t", "TRUE")
    assert config.get_integer("n", 0) == 10
    assert config.get_boolean("t", False) is True
    assert config.get_float("i", 0.0) == 5.0
    assert config.get_float("missing", 7) == 7.0
    assert [config.get_string(key, None) for key in "sibf"] == ["a b", "5", "true", "1.5"]
    assert config.get_string("missing", "d") == "d"
    assert config.get_bytearray("y", b"") == bytearray(b"ab")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda c: c.get_integer("f", 0), "Setting 'f' should be a whole number, got '1.5'."),
        (lambda c: c.get_boolean("i", False), "Setting 'i' should be true or false, got '5'."),
        (lambda c: c.get_float("s", 0.0), "Setting 's' should be a number, got 'a b'."),
        (lambda c: c.get_bytearray("s", b""), "Setting 's' should be bytes, got 'a b'."),
        (lambda c: c.get_duration_ms("s", 0), "Setting 's': 'a b' is not a duration."),
        (lambda c: c.get_memory_bytes("s", 0), "Setting 's': 'a b' is not a memory size."),
        (lambda c: c.set_string("x", 5), "Setting 'x' takes a string here, got int 5."),
        (lambda c: c.set_integer("x", True), "Setting 'x' takes a whole number here, got bool True."),
    ],
)
def test_a_wrong_value_is_named_with_its_key(read, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError) as caught:
        read(full())
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("key", "newer"),
    [*((key, key) for key in DURATIONS), ("execution.buffer-timeout", "execution.buffer-timeout.interval")],
)
def test_durations_are_checked_before_a_job_runs(key: str, newer: str) -> None:
    text = re.escape(f"Setting '{key}': 'abc' is not a duration. Write a number and a unit, such as '10 s'")
    with pytest.raises(ConfigurationError, match=text):
        StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({key: "abc"}))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    env.get_configuration().set_string(key, "abc")
    with pytest.raises(ConfigurationError, match=text):
        env._submission("orders")
    assert newer in DURATIONS


def test_all_known_durations_are_among_them() -> None:
    likely = re.compile(r"(timeout|interval|delay|backoff|duration|pause|ttl|reset-backoff-threshold)$")
    others = {
        "sql-gateway.session.idle-timeout",  # of job managers
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",  # a number
        "restart-strategy.failure-rate.max-failures-per-interval",  # a number
        *(key for keys in OLDER_KEYS.values() for key in keys),
    }
    found = {key for key in KNOWN - others if likely.search(key)}
    assert set(DURATIONS) <= KNOWN
    assert set(DURATIONS) == found


def test_collections_of_settings() -> None:
    config = full()
    assert config.key_set() == set("sibfy")
    target: dict[str, object] = {}
    config.add_all_to_dict(target)
    assert target == {"s": "a b", "i": 5, "b": True, "f": 1.5, "y": b"ab"}
    assert config.to_dict()["b"] == "true"
    config.add_all(Configuration.from_dict({"k": "v"}), "p.")
    assert config.get_string("p.k", "") == "v"
    assert (config.remove_config("p.k"), config.remove_config("p.k")) == (True, False)
    assert str(Configuration.from_dict({"b": "2", "a": "1"})) == "{a=1, b=2}"


def test_equality_minds_the_type_a_value_was_set_with() -> None:
    five = Configuration().set_integer("i", 5)
    assert five == Configuration().set_integer("i", 5)
    assert hash(five) == hash(Configuration().set_integer("i", 5))
    assert five != Configuration().set_string("i", "5")
    assert Configuration().set_integer("i", 1) != Configuration().set_boolean("i", True)
    clone = copy.deepcopy(five)
    clone.set_integer("i", 6)
    assert five.get_integer("i", 0) == 5


def test_nested_yaml_is_flattened_and_spelling_kept(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "# comment\nparallelism:\n  default: 4\npipeline.object-reuse: yes\n"
        "env:\n  java:\n    opts:\n      all: -Xmx1g\nlist:\n  - a\n  - b;c\nempty:\nversion: 1.10\n"
    )
    config = Configuration.from_file(tmp_path)
    assert config.to_dict() == {
        "parallelism.default": "4",
        "pipeline.object-reuse": "yes",
        "env.java.opts.all": "-Xmx1g",
        "list": "[a, b;c]",
        "empty": "",
        "version": "1.10",
    }
    assert Configuration.parse_list_value(config.get_string("list", "")) == ["a", "b;c"]


def test_old_flat_files_need_not_be_yaml(tmp_path: Path) -> None:
    path = tmp_path / "flink-conf.yaml"
    path.write_text("# old\ntaskmanager.numberOfTaskSlots: 2\nenv.java.opts: -Da: b # more\nodd: %x\n")
    assert Configuration.from_file(path).to_dict() == {
        "taskmanager.numberOfTaskSlots": "2",
        "env.java.opts": "-Da: b",
        "odd": "%x",
    }


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot read the configuration file .*No such file"):
        Configuration.from_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match=r"No config\.yaml and no flink-conf\.yaml in the folder"):
        Configuration.from_file(tmp_path)
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    with pytest.raises(ConfigurationError, match="should hold 'key: value' lines, got a list"):
        Configuration.from_file(tmp_path / "list.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1\n  b\n")
    with pytest.raises(ConfigurationError, match="is not valid YAML"):
        Configuration.from_file(tmp_path / "bad.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert Configuration.from_file(tmp_path / "empty.yaml").to_dict() == {}


def test_execution_config_has_flinks_defaults_and_limits() -> None:
    config = ExecutionConfig()
    assert (config.get_parallelism(), config.get_max_parallelism()) == (-1, -1)
    assert (config.get_auto_watermark_interval(), config.is_auto_watermark_interval_explicit()) == (
        200,
        False,
    )
    assert config.set_auto_watermark_interval(1).is_auto_watermark_interval_explicit()
    with pytest.raises(ProgramError, match="Parallelism is at least 1, or -1 for the default, got 0"):
        config.set_parallelism(0)
    with pytest.raises(ProgramError, match="between 1 and 32768, got 40000"):
        config.set_max_parallelism(40000)
    assert config.set_global_job_parameters({"a": 1, "b": True}).get_global_job_parameters() == {
        "a": "1",
        "b": "True",
    }


def test_execution_config_takes_settings_over() -> None:
    settings = Configuration.from_dict(
        {
            "parallelism.default": "3",
            "pipeline.max-parallelism": "64",
            "pipeline.auto-watermark-interval": "2 s",
            "pipeline.object-reuse": "true",
            "pipeline.global-job-parameters": "a:1, b:'x'",
        }
    )
    config = ExecutionConfig().configure(settings)
    assert (config.get_parallelism(), config.get_max_parallelism()) == (3, 64)
    assert config.get_auto_watermark_interval() == 2000
    assert config.is_object_reuse_enabled()
    assert config.get_global_job_parameters() == {"a": "1", "b": "x"}


class At(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def test_watermark_strategies_are_plain_data() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    assert strategy.with_timestamp_assigner(At()) is strategy
    idle = strategy.with_idleness(Duration.of_minutes(1))
    assert (idle.kind, idle.max_out_of_orderness_ms, idle.idle_timeout_ms) == ("bounded", 5000, 60000)
    assert isinstance(idle.timestamp_assigner, At)
    assert strategy.idle_timeout_ms is None


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda s: s.with_timestamp_assigner(At), "got the class At. Pass an instance: At()."),
        (lambda s: s.with_timestamp_assigner(5), "needs a TimestampAssigner"),
        (
            lambda s: s.with_idleness(5),
            "with_idleness() needs a Duration, such as Duration.of_seconds(5), got 5.",
        ),
        (lambda s: s.with_idleness(Duration.of_millis(0)), "at least 1 ms, got PT0S"),
        (lambda s: s.for_bounded_out_of_orderness(Duration.of_millis(-1)), "at least 0 ms, got PT-0.001S"),
    ],
)
def test_watermark_strategies_refuse_nonsense(build, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ProgramError) as caught:
        build(WatermarkStrategy.no_watermarks())
    assert text in str(caught.value)


def test_restart_strategies() -> None:
    fixed = RestartStrategies.fixed_delay_restart(3, 1000)
    assert fixed == RestartStrategies.FixedDelayRestartStrategyConfiguration(3, timedelta(seconds=1))
    assert fixed.get_delay_between_attempts_interval() == timedelta(seconds=1)
    with pytest.raises(ProgramError, match="A pause is a number of milliseconds or a timedelta, got '1 s'"):
        RestartStrategies.failure_rate_restart(1, "1 s", 5)  # type: ignore[arg-type]


def test_job_vocabulary() -> None:
    assert JobStatus.SUSPENDED.is_terminal_state()
    assert not JobStatus.SUSPENDED.is_globally_terminal_state()
    assert len(str(JobID())) == 32
    assert JobID() != JobID()
    with pytest.raises(ProgramError, match="32 hexadecimal digits, got 'abc'"):
        JobID("abc")


def test_futures() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    seen: list[int] = []
    future.add_done_callback(lambda done: seen.append(done.result()))
    assert future.exception() is None
    assert future.complete(1)
    assert not future.complete(2)
    assert seen == [1]
    failed = CompletableFuture.failed(ValueError("x"))
    assert isinstance(failed.exception(), ValueError)
    with pytest.raises(ValueError, match="x"):
        failed.result()
    waiting: CompletableFuture[int] = CompletableFuture()
    assert waiting.cancel()
    assert waiting.cancelled()


def test_schemas() -> None:
    with pytest.raises(TypeMismatchError, match="SimpleStringSchema writes strings, got int 5"):
        SimpleStringSchema().serialize(5)
    with pytest.raises(ConfigurationError, match="No such character set: 'klingon'"):
        Encoder.simple_string_encoder("klingon")
    assert SimpleStringSchema("UTF-16-LE").serialize("a") == b"a\x00"
