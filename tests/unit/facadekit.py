"""Jobs in memory that can be asked, in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folderkit import runtime_folder
from sparkkit import eventually

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource


@pytest.fixture(autouse=True, name="runtime")
def own_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A short path: that of a socket must be.
    with runtime_folder() as folder:
        monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", folder)
        yield Path(folder)


def environment(parallelism: int = 1, **settings: str) -> StreamExecutionEnvironment:
    config = {"firesteel.master": "memory", **{key.replace("_", "."): value for key, value in settings.items()}}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    env.set_parallelism(parallelism)
    return env


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def map(self, value: int) -> int:
        self.calls.inc()
        return value


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def endless(name: str) -> Any:
    env = environment()
    numbers = env.from_source(
        DataGeneratorSource(lambda n: n, 10**9, 500), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.key_by(lambda n: n % 2).map(Counted()).name("counted").uid("counted").filter(lambda n: False).print()
    job = env.execute_async(name)
    assert eventually(lambda: job.inbox.progress.records > 0)  # type: ignore[attr-defined]
    return job


# Jobs that have ended


def finished(name: str = "done", count: int = 3) -> None:
    env = environment()
    env.from_collection(list(range(count))).map(lambda n: n).name("same").print()
    env.execute(name)
