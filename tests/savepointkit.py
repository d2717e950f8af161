"""Runs a program in two halves with a savepoint in between."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkkit import QUICK

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.engine import submit
from firesteel.engine.job import EngineJob
from firesteel.graph.specs import CollectSpec
from firesteel.testing import ListSource

Build = Callable[[DataStream], DataStream]
"""From the source's stream to the one that is looked at."""

Steps = Sequence[Any] | Mapping[str, Sequence[Any]]

NONE = WatermarkStrategy.no_watermarks()


class Halves:
    """The first steps of a script, a savepoint, and the rest from there: perhaps as another program."""

    def __init__(self, folder: Path, master: str = "memory") -> None:
        self.folder = folder
        self.master = master
        self.path = ""
        self._jobs: list[EngineJob] = []

    def end(self) -> None:
        """Cancels what a test has left running, because it failed or expected a failure: its thread would stay."""
        for job in self._jobs:
            job.stop_collecting()

    def start(
        self,
        build: Build,
        steps: Steps,
        ends: bool,
        parallelism: int,
        settings: dict[str, str],
        strategy: WatermarkStrategy = NONE,
        source_parallelism: int = 1,
    ) -> tuple[EngineJob, list[Any], threading.Thread]:
        known = {"firesteel.master": self.master, **QUICK, **settings}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(known))
        env.set_parallelism(parallelism)
        source = env.from_source(ListSource(steps, ends=ends), strategy, "script").uid("script")
        source.set_parallelism(source_parallelism)
        channel = uuid.uuid4().hex
        build(source)._sink("Collect", CollectSpec(channel))
        job = submit(env._submission("halves"))
        self._jobs.append(job)
        found: list[Any] = []

        def collect() -> None:
            # A failure is told by the job's result, too.
            with contextlib.suppress(Exception):
                found.extend(job.collect(channel))

        reader = threading.Thread(target=collect, daemon=True)
        reader.start()
        return job, found, reader

    def whole(self, build: Build, steps: Sequence[Any], parallelism: int = 2, **settings: str) -> list[Any]:
        """All of it in one run."""
        job, found, reader = self.start(build, steps, True, parallelism, _dotted(settings))
        job.get_job_execution_result().result()
        reader.join()
        return found

    def save(
        self,
        build: Build,
        steps: Steps,
        parallelism: int = 2,
        drain: bool = False,
        stop: bool = True,
        strategy: WatermarkStrategy = NONE,
        source_parallelism: int = 1,
        **settings: str,
    ) -> list[Any]:
        """The first half, up to a savepoint."""
        keys = _dotted(settings)
        job, found, reader = self.start(build, steps, False, parallelism, keys, strategy, source_parallelism)
        batches = max(map(len, steps.values())) if isinstance(steps, Mapping) else len(steps)
        deadline = time.monotonic() + 400
        while job.inbox.progress.batches < batches and time.monotonic() < deadline:
            if job._result.done():
                job.get_job_execution_result().result()
            time.sleep(0.01)
        if stop:
            self.path = job.stop_with_savepoint(drain, str(self.folder)).result()
        else:
            self.path = job.trigger_savepoint(str(self.folder)).result()
            job.cancel()
        reader.join(180)
        return found

    def resume(
        self,
        build: Build,
        steps: Steps,
        parallelism: int = 2,
        lenient: bool = False,
        strategy: WatermarkStrategy = NONE,
        source_parallelism: int = 1,
        **settings: str,
    ) -> list[Any]:
        """The second half: ``steps`` are those of both."""
        keys = {
            **_dotted(settings),
            "execution.state-recovery.path": self.path,
            "execution.state-recovery.ignore-unclaimed-state": str(lenient).lower(),
        }
        job, found, reader = self.start(build, steps, True, parallelism, keys, strategy, source_parallelism)
        job.get_job_execution_result().result()
        reader.join(180)
        return found

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((Path(self.path) / "manifest.json").read_text())
        return found


def _dotted(settings: dict[str, str]) -> dict[str, str]:
    return {key.replace("__", "-").replace("_", "."): value for key, value in settings.items()}
