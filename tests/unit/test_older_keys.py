"""Keys that Flink has renamed and still honours, and durations written as texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, ExecutionConfig
from firesteel.common.older_keys import OLDER_KEYS
from firesteel.datastream import CheckpointConfig, EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from firesteel.engine.backends import backend_name
from firesteel.engine.checkpointing import Checkpointing
from firesteel.engine.known_keys import KNOWN, misspelt
from firesteel.engine.restarts import FixedDelay, restarts_of
from firesteel.engine.savepoints.taking import new_place
from firesteel.engine.settings import Settings
from firesteel.errors import ConfigurationError
from firesteel.metrics.scopes import ScopeFormats

RETAINED = "spark.sql.streaming.minBatchesToRetain"


def env_of(**settings: str) -> StreamExecutionEnvironment:
    dotted = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(dotted))


def test_operator_chaining() -> None:
    assert env_of().is_chaining_enabled()
    assert not env_of(pipeline__operator_chaining="false").is_chaining_enabled()
    # The newer key wins, wherever it comes from.
    env = env_of(pipeline__operator_chaining="false")
    env.configure(Configuration.from_dict({"pipeline.operator-chaining.enabled": "true"}))
    assert env.is_chaining_enabled()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("10 s", 10_000), ("1min", 60_000), ("250", 250), ("PT2S", 2_000), ("1 h", 3_600_000), ("0", 0)],
)
@pytest.mark.parametrize("key", ["execution.buffer-timeout", "execution.buffer-timeout.interval"])
def test_buffer_timeout(key: str, text: str, milliseconds: int) -> None:
    assert env_of(**{key: text}).get_buffer_timeout() == milliseconds


def test_buffer_timeout_that_is_off() -> None:
    assert env_of(execution__buffer_timeout__enabled="false").get_buffer_timeout() == -1
    assert env_of().set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert env_of().set_buffer_timeout(12_000).get_buffer_timeout() == 12_000
    assert env_of().get_buffer_timeout() == 100


def test_state_backend() -> None:
    assert backend_name(Configuration.from_dict({"state.backend": "rocksdb"}), None) == "rocksdb"
    both = {"state.backend": "rocksdb", "state.backend.type": "hashmap"}
    assert backend_name(Configuration.from_dict(both), None) == "hashmap"
    assert backend_name(Configuration.from_dict(both), EmbeddedRocksDBStateBackend()) == "rocksdb"


def test_metric_scopes() -> None:
    assert ScopeFormats.of({"metrics.scope.jm.job": "older.<job_name>"}).jm_job == "older.<job_name>"
    both = {"metrics.scope.jm.job": "older", "metrics.scope.jm-job": "newer", "metrics.scope.delimiter": "_"}
    assert ScopeFormats.of(both) == ScopeFormats(jm_job="newer", delimiter="_")


def test_directories(tmp_path: Any) -> None:
    job = {"execution.checkpointing.interval": "1 s"}
    for key in ("execution.checkpointing.dir", "state.checkpoints.dir", "state.backend.fs.checkpointdir"):
        found = Checkpointing.of(Configuration.from_dict({**job, key: str(tmp_path)}), "orders")
        assert found.folder == str(tmp_path / "orders")
    for key in ("execution.checkpointing.savepoint-dir", "state.savepoints.dir", "savepoints.state.backend.fs.dir"):
        env = env_of(**{key: str(tmp_path)})
        assert env.get_default_savepoint_directory() == str(tmp_path)
        assert str(new_place(None, env.get_configuration(), "job").address).startswith(str(tmp_path))


def test_checkpoints() -> None:
    older = {
        "execution.checkpointing.interval": "1 min",
        "execution.checkpointing.unaligned": "true",
        "execution.checkpointing.alignment-timeout": "3 s",
        "state.checkpoints.num-retained": "7",
    }
    config = CheckpointConfig(Configuration.from_dict(older))
    assert config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(3)
    assert Settings.of(Configuration.from_dict(older)).spark[RETAINED] == "7"


def test_restarts() -> None:
    settings = {"restart-strategy": "fixed-delay", "restart-strategy.fixed-delay.delay": "2 min"}
    strategy = restarts_of(Configuration.from_dict(settings), checkpointing=False)
    assert isinstance(strategy, FixedDelay)
    assert strategy.after(0) == 120


def test_what_a_changelog_was_set_to() -> None:
    assert env_of().is_changelog_state_backend_enabled() is None
    assert env_of(state__backend__changelog__enabled="true").is_changelog_state_backend_enabled() is True


def test_execution_config_reads_durations_as_texts() -> None:
    settings = {
        "pipeline.auto-watermark-interval": "3 s",
        "metrics.latency.interval": "5 min",
        "task.cancellation-interval": "7 s",
        "task.cancellation.timeout": "1 h",
        "execution.checkpointing.snapshot-compression": "true",
        "pipeline.closure-cleaner-level": "NONE",
        "pipeline.force-avro": "true",
        "pipeline.force-kryo": "true",
        "pipeline.generic-types": "false",
    }
    config = ExecutionConfig().configure(Configuration.from_dict(settings))
    assert config.get_auto_watermark_interval() == 3_000
    assert config.get_latency_tracking_interval() == 300_000
    assert config.get_task_cancellation_interval() == 7_000
    assert config.get_task_cancellation_timeout() == 3_600_000
    assert config.is_use_snapshot_compression()
    assert not config.is_closure_cleaner_enabled()
    assert config.is_force_avro_enabled()
    assert config.is_force_kryo_enabled()
    assert config.has_generic_types_disabled()


def test_reading_a_key_finds_its_older_names() -> None:
    config = Configuration.from_dict({"state.backend.fs.checkpointdir": "/old", "state.checkpoints.dir": "/newer"})
    assert config.get_string("execution.checkpointing.dir", None) == "/newer"
    assert config.get_string("state.backend.fs.checkpointdir", None) == "/old"
    assert not config.contains_key("execution.checkpointing.dir")
    assert "execution.checkpointing.dir" not in config.to_dict()


def test_an_error_names_the_key_that_was_set() -> None:
    config = Configuration.from_dict({"execution.buffer-timeout": "soon", "state.checkpoints.num-retained": "many"})
    with pytest.raises(ConfigurationError, match=r"Setting 'execution\.buffer-timeout': 'soon' is not a duration"):
        config.get_duration_ms("execution.buffer-timeout.interval", 0)
    with pytest.raises(ConfigurationError, match=r"Setting 'state\.checkpoints\.num-retained' should be a whole"):
        config.get_integer("execution.checkpointing.num-retained", 0)


def test_older_keys_are_known() -> None:
    """A misspelt one is noticed, and none is taken for a misspelt newer one."""
    for newer, older in OLDER_KEYS.items():
        assert {newer, *older} <= KNOWN
    assert misspelt("state.backend") is None
    assert misspelt("execution.buffer-timeouts") == "execution.buffer-timeout"


def test_the_page_of_settings_lists_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    for newer, older in OLDER_KEYS.items():
        assert f"| `{newer}` | {', '.join(f'`{key}`' for key in older)} |" in page
