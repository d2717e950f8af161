"""A savepoint's manifest may have been written by anybody: what leads elsewhere, or mixes up states, is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firesteel.common import Types
from firesteel.engine.savepoints.manifest import NAME, OperatorEntry, PartFile, SavepointManifest, StateEntry
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.writing import SubtaskPart, complete, state_folder
from firesteel.errors import ProgramError, SavepointError
from firesteel.runtime.snapshots.saved import StateId
from firesteel.runtime.state.schema import UNDECLARED
from firesteel.state_processor import Savepoint
from firesteel.state_processor.editing import SavepointEditor

PART = PartFile("operators/totals/count/part-00000.parquet", 0, 1, 10)


def entry(uid: str, *files: PartFile, name: str = "count") -> OperatorEntry:
    state = StateEntry(name, "value", "key", "value", "LONG", False, "STRING", files)
    return OperatorEntry(uid, uid, "state", 1, 128, "plain", states=(state,))


def manifest(*operators: OperatorEntry) -> SavepointManifest:
    return SavepointManifest("job", "id", 1, 0, 0, "0.1.0", "hashmap", operators, {})


@pytest.mark.parametrize(
    "path",
    [
        "../elsewhere.parquet",
        "operators/../../elsewhere.parquet",
        "/etc/passwd",
        "operators//part.parquet",
        "operators/./part.parquet",
        "operators\\..\\..\\part.parquet",
        "operators/%2e%2e/%2e%2e/part.parquet",
        "C:/part.parquet",
        "",
        None,
    ],
)
def test_a_file_outside_the_folder(tmp_path: Path, path: Any) -> None:
    pq.write_table(pa.table({"key": ["a"], "value": [1]}), tmp_path / "elsewhere.parquet")
    folder = tmp_path / "savepoint"
    folder.mkdir()
    text = manifest(entry("totals", replace(PART, path=path))).to_json()
    (folder / NAME).write_text(text)
    with pytest.raises(SavepointError, match=r"cannot be used: state 'count' of operator 'totals' is said to"):
        Savepoint.load(str(folder))


@pytest.mark.parametrize(
    "operators",
    [
        (entry("user totals", PART), entry("user_totals", PART)),
        (entry("totals", PART, PART),),
    ],
    ids=["two operators", "twice"],
)
def test_two_claims_on_one_file(operators: Any) -> None:
    with pytest.raises(SavepointError, match=r"both claim the file operators/totals/count/part-00000.parquet"):
        SavepointManifest.from_json(manifest(*operators).to_json(), "here")


def test_two_claims_are_refused_when_it_is_written(tmp_path: Path) -> None:
    parts = [SubtaskPart(uid, 0, "plain", None, entry(uid, PART).states) for uid in ("one", "other")]
    with pytest.raises(SavepointError, match="both claim the file"):
        complete(Place.of(str(tmp_path / "savepoint")), manifest(entry("one"), entry("other")), parts, {})
    assert not (tmp_path / "savepoint").exists()


def test_two_operators_of_one_uid() -> None:
    with pytest.raises(SavepointError, match=r"two of its operators have the uid 'totals'"):
        SavepointManifest.from_json(manifest(entry("totals"), entry("totals")).to_json(), "here")


def test_sizes_that_are_none() -> None:
    values = asdict(manifest(entry("totals", PART)))
    values["operators"][0]["states"][0]["files"][0]["rows"] = "many"
    with pytest.raises(SavepointError, match=r"what it says of the file .* is not a size"):
        SavepointManifest.from_json(json.dumps(values), "here")


def test_paths_of_older_savepoints_are_read() -> None:
    older = replace(PART, path="operators/Count_per.User-/event-time_timers__/part-00000.parquet")
    text = manifest(entry("Count per.User-", older)).to_json()
    assert SavepointManifest.from_json(text, "here").operators[0].states[0].files == (older,)


def test_every_state_has_a_folder_of_its_own() -> None:
    names = ["count", "Count", "co unt", "co_unt", "集計一", "集計二", "..", ".", "/", "a/b", "count" * 50]
    kinds = [("value", "key"), ("timers", "key"), ("value", "window"), ("split", "operator"), ("broadcast", "operator")]
    states = [StateId(uid, name, kind, scope, UNDECLARED) for uid in names for name in names for kind, scope in kinds]
    folders = {state_folder(state).lower() for state in states}
    assert len(folders) == len(states)
    for folder in folders:
        manifest(entry("any", replace(PART, path=f"{folder}/part-00000.parquet"))).check("here")


def test_names_that_would_run_into_each_other_in_the_store() -> None:
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.state import ValueStateDescriptor

    with pytest.raises(ProgramError, match="must not contain the character 0"):
        ValueStateDescriptor("a\0entries", Types.LONG())
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1]).map(str)
    for uid in ("a\1w", "a\0b", "", 7):
        with pytest.raises(ProgramError, match="A uid must be a non-empty string"):
            stream.uid(uid)  # type: ignore[arg-type]


def test_an_editor_tells_states_of_one_name_apart(tmp_path: Path) -> None:
    """A key and its windows may each have a state of one name: places are built otherwise, so filters are, too."""
    of_key = entry("totals").states[0]
    whole = replace(entry("totals"), states=(of_key, replace(of_key, scope="window")))
    editor = SavepointEditor(Place.of(str(tmp_path)), manifest(whole, entry("other")))
    editor.filter_keys("totals", lambda key: key == "abc").rename_operator("totals", "sums")
    by_scope = {name[2]: steps for name, steps in editor._rewrites.items()}
    assert {name[0] for name in editor._rewrites} == {"sums"}
    (keyed,), (windowed,) = by_scope["key"], by_scope["window"]
    assert keyed((["abc", "a"], [1, 2])) == (["abc"], [1])
    assert windowed(([("abc", (0, 10)), ("a", (0, 10))], [1, 2])) == ([("abc", (0, 10))], [1])
    with pytest.raises(SavepointError, match="has an operator with uid 'other' already"):
        editor.rename_operator("sums", "other")
