"""Makes the golden checkpoints and savepoints of the present version, in ``tests/golden/<version>``.

    .venv/bin/python tools/make_golden.py          # after the version of the durable format was raised

They are the first half of the program in ``tests/goldenkit.py``, as it was written to disk:

| what | how it was made |
|---|---|
| ``memory-<backend>.json`` | the state stores of a job in memory and its last offset |
| ``savepoint.tar.xz`` | a savepoint of a job in memory |
| ``spark.tar.xz`` | a checkpoint folder of Spark, of a job that was killed with a commit pending; its sink's folder |
| ``records.json`` | one sample of each kind of record, from ``tests/goldenrecords.py`` |
| ``lines.json`` | what the first half and the whole program give |

Data of former versions stays as it is: later versions must open it, or say what to do.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

import goldenkit  # noqa: E402
import goldenrecords  # noqa: E402

from firesteel.common import Configuration  # noqa: E402
from firesteel.datastream import StreamExecutionEnvironment  # noqa: E402
from firesteel.engine import submit  # noqa: E402
from firesteel.engine.job import EngineJob  # noqa: E402
from firesteel.engine.memory import MemoryJob  # noqa: E402
from firesteel.graph.specs import CollectSpec  # noqa: E402
from firesteel.testing import CommitCrashes, CrashPoint  # noqa: E402

BACKENDS = {
    "hashmap": {},
    "rocksdb": {"state.backend.type": "rocksdb"},
    "pages": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"},
}


def environment(**settings: str) -> StreamExecutionEnvironment:
    known = {**goldenkit.SETTINGS, **settings}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(known))


def in_memory(whole: bool, settings: dict[str, str]) -> tuple[EngineJob, list[Any], threading.Thread]:
    env = environment(**{"firesteel.master": "memory", **settings})
    channel = uuid.uuid4().hex
    goldenkit.build(env, whole)._sink("Collect", CollectSpec(channel))
    job = submit(env._submission("golden"))
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.extend(job.collect(channel)), daemon=True)
    reader.start()
    return job, found, reader


def first_half(settings: dict[str, str]) -> tuple[EngineJob, list[Any], threading.Thread]:
    job, found, reader = in_memory(False, settings)
    while job.inbox.progress.batches < len(goldenkit.FIRST):
        assert not job._result.done(), job._result.result()
        time.sleep(0.01)
    return job, found, reader


def stores(target: Path, name: str, settings: dict[str, str]) -> list[Any]:
    job, found, reader = first_half(settings)
    run = job._run
    assert isinstance(run, MemoryJob)
    content = {
        "offset": run._offset_now(),
        "stores": {
            f"{stage}/{subtask}": {
                base64.b85encode(key).decode(): base64.b85encode(value).decode()
                for key, value in sorted(store.content.items())
            }
            for (stage, subtask), store in sorted(run._stores.items())
        },
    }
    (target / f"memory-{name}.json").write_text(json.dumps(content, indent=0) + "\n")
    job.cancel()
    reader.join()
    return found


def savepoint(target: Path) -> None:
    job, _, reader = first_half({})
    with tempfile.TemporaryDirectory() as folder:
        path = job.stop_with_savepoint(False, folder).result()
        reader.join()
        shutil.move(path, target / "savepoint")
    pack(target, "savepoint")


def spark(target: Path) -> None:
    """In a process of its own, which kills itself."""
    for name in ("checkpoint", "out"):
        (target / "spark" / name).mkdir(parents=True)
    subprocess.run([sys.executable, __file__, "--spark", str(target / "spark")], check=False)
    for name in ("firesteel-lock", "firesteel-coordinator-lock", "firesteel-holder.json"):
        (target / "spark" / "checkpoint" / name).unlink(missing_ok=True)
    pack(target, "spark")


def pack(target: Path, name: str) -> None:
    """One file instead of hundreds of small ones."""
    with tarfile.open(target / f"{name}.tar.xz", "w:xz") as archive:
        archive.add(target / name, name)
    shutil.rmtree(target / name)


def run_on_spark(target: Path) -> None:
    words = ["pass"] * (len(goldenkit.FIRST) - 1) + ["kill"]
    with CommitCrashes({CrashPoint.BEFORE_COMMIT: words}) as crashes:
        env = environment(
            **{
                "firesteel.master": "local",
                "firesteel.checkpoint.dir": str(target / "checkpoint"),
                "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
                **crashes.config,
            }
        )
        goldenkit.to_files(goldenkit.build(env, False), target / "out")
        env.execute("golden")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", help="the name of the folder; that of the present format if it is left out")
    parser.add_argument("--again", action="store_true", help="replace what is there")
    parser.add_argument("--spark", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.spark:
        run_on_spark(chosen.spark)
        return
    target = goldenkit.GOLDEN / (chosen.version or goldenkit.PRESENT)
    if target.exists() and not chosen.again:
        parser.error(f"{target} is there: raise the version first, or say --again while that version is unreleased")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        (target / "records.json").write_text(json.dumps(goldenrecords.records(Path(folder)), indent=1) + "\n")
    for name, settings in BACKENDS.items():
        first = stores(target, name, settings)
    job, whole, reader = in_memory(True, {})
    job.get_job_execution_result().result()
    reader.join()
    (target / "lines.json").write_text(json.dumps({"first": first, "whole": whole}, indent=0) + "\n")
    savepoint(target)
    spark(target)


if __name__ == "__main__":
    main()
