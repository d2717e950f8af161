"""Golden state stores and savepoints of every version of the durable format: this version goes on from them."""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import goldenkit
import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine import submit
from firesteel.engine.memory import MemoryJob, VersionedStore
from firesteel.graph.specs import CollectSpec

VERSIONS = sorted(folder.name for folder in goldenkit.GOLDEN.iterdir())
BACKENDS = {
    "hashmap": {},
    "rocksdb": {"state.backend.type": "rocksdb"},
    "tight": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"},
}
# The same as when tables of columns had no pages yet.
BACKENDS["pages"] = BACKENDS["tight"]
STORES = [
    (version, backend)
    for version in VERSIONS
    for backend in BACKENDS
    if (goldenkit.GOLDEN / version / f"memory-{backend}.json").exists()
]


def run(settings: dict[str, str], version: str = goldenkit.PRESENT) -> Counter[str]:
    """The whole program in memory."""
    known = {"firesteel.master": "memory", **goldenkit.SETTINGS, **settings}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(known))
    channel = uuid.uuid4().hex
    goldenkit.build(env, True, version)._sink("Collect", CollectSpec(channel))
    job = submit(env._submission("golden"))
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.extend(job.collect(channel)), daemon=True)
    reader.start()
    job.get_job_execution_result().result()
    reader.join()
    return Counter(found)


def golden_stores(version: str, backend: str) -> tuple[dict[str, Any], dict[tuple[int, int], VersionedStore]]:
    """The last offset and the stores of a job in memory."""
    content = json.loads((goldenkit.GOLDEN / version / f"memory-{backend}.json").read_text())
    stores: dict[tuple[int, int], VersionedStore] = {}
    for place, cells in content["stores"].items():
        stage, subtask = map(int, place.split("/"))
        store = stores[stage, subtask] = VersionedStore()
        store.content.update({base64.b85decode(key): base64.b85decode(value) for key, value in cells.items()})
    return content["offset"], stores


@pytest.mark.parametrize(("version", "backend"), STORES)
def test_a_job_goes_on_from_golden_stores(version: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offset, stores = golden_stores(version, backend)
    begin = MemoryJob.__init__

    def with_stores(self: MemoryJob, *known: Any) -> None:
        begin(self, *known)
        self._offset, self._stores, self._done = offset, stores, offset["batch"]

    monkeypatch.setattr(MemoryJob, "__init__", with_stores)
    first, whole = goldenkit.lines_of(version)
    found = run(BACKENDS[backend], version)
    # Nobody hands the lists of all subtasks round where nothing was restarted.
    assert Counter(line for line in found.elements() if not line.startswith(goldenkit.FOUND)) == whole - first


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_begins_with_a_golden_savepoint(version: str, tmp_path: Path) -> None:
    first, whole = goldenkit.lines_of(version)
    path = goldenkit.unpacked(version, "savepoint", tmp_path)
    goldenkit.check(run({"execution.state-recovery.path": str(path)}, version), whole - first, version)


def test_the_program_gives_what_it_gave() -> None:
    _, whole = goldenkit.lines_of(VERSIONS[-1])
    assert run({}) == whole
