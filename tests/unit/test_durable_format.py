"""What is written to disk and to the state store: nobody changes it unawares, and no module path stands in it.

A test here that is red because bytes differ means: a checkpoint of today could not be read tomorrow. Undo the change,
or raise the version in ``firesteel/durable/versions.py``, read both, and make golden data (``tools/make_golden.py``).
"""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import goldenkit
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from goldenrecords import OBJECTS, TYPES, records
from test_golden import BACKENDS, golden_stores, run

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.ledger import Ledger
from firesteel.connectors.record_log import RecordLog
from firesteel.durable import names
from firesteel.durable.cells import HEADER, FormerUnpickler, encode
from firesteel.durable.folder import checked_feedback, checked_offset, decode_commits, decode_job, encode_job
from firesteel.durable.header_codec import decode_header, encode_header
from firesteel.durable.headers import OperatorHeader, StateHeader, StateSchema, StoreHeader, TablesHeader
from firesteel.durable.types import type_from_json, type_to_json
from firesteel.durable.versions import CHECKPOINT, SAVEPOINT, STORE, Format
from firesteel.engine.commit_log import CommitLog
from firesteel.engine.manifest import CheckpointFolder, Manifest, OperatorEntry
from firesteel.engine.memory import VersionedStore
from firesteel.engine.savepoints.manifest import SavepointManifest
from firesteel.errors import CheckpointError, FailureKind, SavepointError

PRESENT = goldenkit.PRESENT
FOLDER = Manifest("job", "hashmap", 1, (OperatorEntry(1, "uid", "name", "source", 0, 1, 128),))


# Nothing changes unawares


def test_what_is_written_is_what_this_version_has_always_written(tmp_path: Path) -> None:
    golden = json.loads((goldenkit.GOLDEN / PRESENT / "records.json").read_text())
    now = json.loads(json.dumps(records(tmp_path)))
    changed = [name for name in golden if now.get(name) != golden[name]]
    assert changed == [], "the durable format has changed, and its version has not"
    assert list(now) == list(golden)


def test_the_folder_and_savepoints_go_with_the_store() -> None:
    """A store is in one or the other: an older Firesteel must refuse the whole of it before it opens a part."""
    assert CHECKPOINT.version >= STORE.version
    assert SAVEPOINT.version >= STORE.version


@pytest.mark.parametrize("name", names.HOMES)
def test_objects_come_back(name: str) -> None:
    there = OBJECTS[name]
    back = pickle.loads(encode(there))
    assert type(back) is type(there)
    if name in ("global_window", "purged", "row_kind"):
        assert back is there
    assert back == there


def test_a_name_finds_its_module_by_itself() -> None:
    """In a process that has imported nothing of Firesteel: a task that gets a record, a user who reads a column."""
    objects = encode(list(OBJECTS.values())).hex()
    script = f"import pickle; print(pickle.loads(bytes.fromhex({objects!r})))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == repr(list(OBJECTS.values()))


def test_a_name_that_is_not_in_the_list_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the names of the durable format"):
        names.stored_as("something")(lambda: None)
    with pytest.raises(AttributeError, match="no attribute 'something'"):
        names.something  # noqa: B018 - that it fails is the point


@pytest.mark.parametrize("declared", TYPES, ids=str)
def test_types_come_back(declared: TypeInformation) -> None:
    assert type_from_json(json.loads(json.dumps(type_to_json(declared)))) == declared


class Celsius(TypeInformation):
    """A type of a user's."""

    def explain(self, value: Any) -> str | None:
        return None

    def _check_source(self, first: str, name: str, scope: Any) -> str | None:
        return None

    def _key(self) -> Any:
        return ()

    def __repr__(self) -> str:
        return "CELSIUS"


def test_a_users_type_comes_back() -> None:
    schema = StateSchema("value", Celsius())
    header = StoreHeader(None, {"uid": OperatorHeader(tables=TablesHeader({"t": StateHeader("hashmap", schema)}))})
    assert decode_header(encode_header(header)).operators["uid"].tables.states["t"].schema == schema


# No class of the package stands in it by its module path


class _Globals(FormerUnpickler):
    """Notes what a pickle names."""

    def __init__(self, content: io.BytesIO) -> None:
        super().__init__(content)
        self.found: set[tuple[str, str]] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.found.add((module, name))
        return super().find_class(module, name)


def named(content: bytes) -> set[tuple[str, str]]:
    """All that pickles name which lie one after the other."""
    file, found = io.BytesIO(content), set[tuple[str, str]]()
    while file.tell() < len(content):
        reader = _Globals(file)
        reader.load()
        found |= reader.found
    return found


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "firesteel" and module != names.__name__


@pytest.mark.parametrize("name", names.HOMES)
def test_no_class_stands_in_an_object(name: str) -> None:
    assert {found for found in named(encode(OBJECTS[name])) if is_ours(found[0])} == set()


@pytest.mark.parametrize(
    ("name", "module", "kind"),
    [
        ("kafka_record", "firesteel.connectors.kafka.deserializing", "KafkaRecord"),
        ("undecodable_record", "firesteel.connectors.undecodable", "UndecodableRecord"),
        ("list_view", "firesteel.table.data_view", "ListView"),
        ("map_view", "firesteel.table.data_view", "MapView"),
        ("vertex", "firesteel.gelly.elements", "Vertex"),
        ("edge", "firesteel.gelly.elements", "Edge"),
    ],
)
def test_objects_that_had_no_name_come_back(name: str, module: str, kind: str) -> None:
    """Data from before they had one has their module paths in it. A class that moves stays importable there."""
    former = io.BytesIO()
    pickler = pickle.Pickler(former, protocol=5)
    pickler.dispatch_table = {}
    pickler.dump(OBJECTS[name])
    assert named(former.getvalue()) == {(module, kind)}
    assert pickle.loads(former.getvalue()) == OBJECTS[name]


def pickles(folder: Path) -> Iterator[bytes]:
    """All that is pickled in a savepoint."""
    for file in folder.rglob("*.parquet"):
        table = pq.read_table(file)
        for column in table.schema:
            if column.name.endswith("_pickle"):
                assert column.type == pa.binary()
                yield from (cell for cell in table.column(column.name).to_pylist() if cell is not None)


def test_the_test_sees_module_paths() -> None:
    _, stores = golden_stores("v1", "hashmap")
    found = {module for store in stores.values() for cell in store.content.values() for module, _ in _named(cell)}
    assert {"firesteel.common.types", "firesteel.runtime.state.schema", "firesteel.runtime.state.log"} <= found


def _named(cell: bytes) -> set[tuple[str, str]]:
    # Raw state is the user's bytes.
    return named(cell) if cell[:1] == b"\x80" else set()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_class_stands_in_a_store(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a job with state of every kind ever writes."""
    found, headers = set[tuple[str, str]](), set[tuple[str, str]]()
    write = VersionedStore.write

    def seen(self: VersionedStore, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        known = list(changes)
        for key, cell in known:
            (headers if key == HEADER else found).update(_named(cell or b""))
        write(self, known)

    monkeypatch.setattr(VersionedStore, "write", seen)
    run(BACKENDS[backend])
    assert headers == set()
    assert {name for module, name in found if is_ours(module)} == set()
    # And what should be there is.
    assert {"row", "time_window", "big_list", "big_map", "instant"} <= {name for _, name in found}


def test_no_class_stands_in_a_savepoint(tmp_path: Path) -> None:
    found = set[tuple[str, str]]()
    for cell in pickles(goldenkit.unpacked(PRESENT, "savepoint", tmp_path)):
        found |= named(cell)
    assert {name for module, name in found if is_ours(module)} == set()
    assert "row" in {name for _, name in found}


def test_no_class_stands_among_commits(tmp_path: Path) -> None:
    folder = goldenkit.unpacked(PRESENT, "spark", tmp_path) / "checkpoint" / "firesteel-commits"
    (entry,) = [file for file in folder.iterdir() if file.name.isdigit()]
    found = named(entry.read_bytes())
    assert found
    assert {module for module, _ in found} == {names.__name__}


# What cannot be read says what to do


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (99, "of a newer Firesteel; this one reads 1 to 2. Use the Firesteel that wrote it, or a newer one"),
        (0, "no longer reads; it reads 1 to 2. Start the job with the Firesteel that wrote it, take a savepoint there"),
        ("2", "does not say which format it has"),
        (None, "does not say which format it has"),
        (True, "does not say which format it has"),
    ],
)
class TestRefusals:
    def test_a_store(self, version: Any, advice: str) -> None:
        with pytest.raises(CheckpointError, match="The state of a subtask") as raised:
            decode_header(encode({"format": version, "token": None, "operators": {}}))
        assert advice in str(raised.value)
        assert raised.value.kind is FailureKind.PERMANENT

    def test_a_checkpoint_folder(self, version: Any, advice: str, tmp_path: Path) -> None:
        content = {**json.loads(FOLDER.to_json()), "format": version, "firesteel": "9.9", "new": 1}
        (tmp_path / "firesteel-checkpoint.json").write_text(json.dumps(content))
        before = (tmp_path / "firesteel-checkpoint.json").read_bytes()
        with pytest.raises(CheckpointError, match="Nothing was changed there") as raised:
            CheckpointFolder(str(tmp_path), FOLDER).claim()
        assert advice in str(raised.value).replace(" (version 9.9)", "")
        assert (tmp_path / "firesteel-checkpoint.json").read_bytes() == before

    def test_a_savepoint(self, version: Any, advice: str) -> None:
        with pytest.raises(SavepointError, match="The manifest of the savepoint here cannot be read") as raised:
            SavepointManifest.from_json(json.dumps({"format": version, "firesteel": "9.9"}), "here")
        assert advice in str(raised.value).replace(" (version 9.9)", "")

    def test_commits(self, version: Any, advice: str, tmp_path: Path) -> None:
        (tmp_path / "3").write_bytes(pickle.dumps((version, {})))
        with pytest.raises(CheckpointError) as raised:
            CommitLog(str(tmp_path)).read()
        assert advice in str(raised.value)


@pytest.mark.parametrize("version", [0, 99, None])
def test_offsets_feedback_and_ledgers_are_refused(version: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"The offset of a batch .* \(here\)"):
        checked_offset({"format": version}, "here")
    with pytest.raises(CheckpointError, match="The feedback to the coordinator"):
        checked_feedback({"format": version})
    (tmp_path / ".fs.ledger").write_text(json.dumps({"format": version}))
    with pytest.raises(CheckpointError, match="The ledger of a file sink"):
        Ledger(str(tmp_path), "fs").read()


@pytest.mark.parametrize("version", [b"2", b"?"])
def test_the_log_of_a_socket_is_refused_and_stays_as_it_was(version: bytes, tmp_path: Path) -> None:
    log, cuts = tmp_path / "socket.log", tmp_path / "socket.cuts"
    log.write_bytes(b"one\n")
    cuts.write_bytes(b"format " + version + b"\n3\nhalf")
    with pytest.raises(CheckpointError, match=r"The log of a socket (has format 2|does not say)"):
        RecordLog(str(tmp_path), b"\n")
    assert (log.read_bytes(), cuts.read_bytes()) == (b"one\n", b"format " + version + b"\n3\nhalf")


def test_a_header_that_lacks_something_is_damaged() -> None:
    with pytest.raises(CheckpointError, match="'header' cannot be read"):
        decode_header(encode({"format": STORE.version}))
    with pytest.raises(CheckpointError, match="'header' cannot be read"):
        decode_header(b"nonsense")


def test_a_job_is_for_the_versions_that_wrote_it() -> None:
    assert decode_job(encode_job(b"job"), "here") == b"job"
    other = pickle.dumps({**pickle.loads(encode_job(b"job")), "written by": "Firesteel 0.0 on Python 2.7"})
    for content, writer in ((other, "Firesteel 0.0 on Python 2.7"), (b"\x80\x05cgone\nGone\n.", "an earlier version")):
        with pytest.raises(CheckpointError, match=f"written by {writer}.* Name the program"):
            decode_job(content, "here")


def test_what_says_no_version_is_of_the_first() -> None:
    assert decode_commits(pickle.dumps({"uid": [1]})) == {"uid": [1]}
    assert checked_offset({"batch": 3}) == {"batch": 3}
    assert checked_feedback({"time": 3}) == {"time": 3}


def test_one_version_only() -> None:
    assert "reads 3 only" in str(Format("it", version=3, oldest=3).refusal(4))


# Upgrading


def test_a_folder_of_a_former_version_is_not_for_that_version_any_more(tmp_path: Path) -> None:
    folder = goldenkit.unpacked("v1", "spark", tmp_path) / "checkpoint"
    former = Manifest.from_json((folder / "firesteel-checkpoint.json").read_text())
    assert former.format == 1
    assert CheckpointFolder(str(folder), former).claim()
    after = json.loads((folder / "firesteel-checkpoint.json").read_text())
    assert after["format"] == CHECKPOINT.version
    assert [entry["uid"] for entry in after["operators"]] == [entry.uid for entry in former.operators]


def test_a_folder_that_does_not_fit_stays_as_it_was(tmp_path: Path) -> None:
    folder = goldenkit.unpacked("v1", "spark", tmp_path) / "checkpoint"
    with pytest.raises(CheckpointError, match="another program"):
        CheckpointFolder(str(folder), FOLDER).claim()
    assert json.loads((folder / "firesteel-checkpoint.json").read_text())["format"] == 1
