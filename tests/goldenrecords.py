"""One sample of everything durable, as the bytes or the text that is written.

``tools/make_golden.py`` keeps them with the golden data of a version; ``tests/unit/test_durable_format.py`` compares.
"""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from firesteel.common import Configuration, Duration, Instant, Row, RowKind, Time, Types
from firesteel.common.path_names import path_name
from firesteel.connectors.collection import CollectionEnumerator
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.ledger import Ledger
from firesteel.connectors.files.parts import Finished, InProgress
from firesteel.connectors.kafka.deserializing import KafkaRecord
from firesteel.connectors.mqtt.receiving import MqttMessage
from firesteel.connectors.piece_log import PieceLog
from firesteel.connectors.postgresql.two_phase import PreparedTransaction
from firesteel.connectors.record_log import RecordLog
from firesteel.connectors.redis.streams import RedisEntry
from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.table.partition_committer import PartitionCommitter
from firesteel.connectors.table.partition_report import PartitionReport
from firesteel.connectors.text import TextFileEnumerator
from firesteel.connectors.text_positions import FileState
from firesteel.connectors.undecodable import UndecodableRecord
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CommitterContext
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import CountWindow, GlobalWindow, TimestampedValue, TimeWindow
from firesteel.durable.cells import broadcast_prefix, encode, list_prefix, of_windows, table_prefix, timer_prefix
from firesteel.durable.folder import encode_commits
from firesteel.durable.header_codec import encode_header
from firesteel.durable.headers import (
    KeysHeader,
    ListHeader,
    OperatorHeader,
    StateHeader,
    StateSchema,
    StoreHeader,
    TablesHeader,
    ValveHeader,
)
from firesteel.durable.types import type_to_json
from firesteel.engine.coordinator import Coordinator
from firesteel.engine.manifest import Manifest, OperatorEntry
from firesteel.engine.savepoints.manifest import OperatorEntry as SavedOperator
from firesteel.engine.savepoints.manifest import PartFile, SavepointManifest, StateEntry
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.settings import Settings
from firesteel.gelly.elements import Edge, Vertex
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.keys import key_group, stable_hash
from firesteel.runtime.partitions import partition_tokens
from firesteel.runtime.snapshots.saved import StateId
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.lists import BigList
from firesteel.runtime.state.maps import BigMap
from firesteel.runtime.state.operator import OperatorState
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.tables import TableFactory
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.windowing.sessions import PURGED
from firesteel.table.data_view import ListView, MapView


def _views() -> tuple[ListView[str], MapView[str, int]]:
    words: ListView[str] = ListView()
    counts: MapView[str, int] = MapView()
    words.add_all(["to", "be"])
    counts.put("to", 2)
    return words, counts


OBJECTS: dict[str, Any] = {
    "row": Row.of_kind(RowKind.DELETE, a=1, b="x"),
    "row_kind": RowKind.UPDATE_BEFORE,
    "duration": Duration.of_millis(5),
    "instant": Instant(7, 8),
    "time": Time.seconds(3),
    "time_window": TimeWindow(5, 10),
    "count_window": CountWindow(4),
    "global_window": GlobalWindow.get(),
    "timestamped_value": TimestampedValue("a", 5),
    "redis_entry": RedisEntry("clicks", "1-0", {"page": "/"}),
    "mqtt_message": MqttMessage("home", b"21.5", True),
    "kafka_record": KafkaRecord("clicks", 3, 7, 1000, b"k", None, (("trace", b"1"),)),
    "undecodable_record": UndecodableRecord("offset 7 of clicks-3", b"?", "ValueError: no", None),
    "list_view": _views()[0],
    "map_view": _views()[1],
    "vertex": Vertex(1, "a"),
    "edge": Edge(1, 2, 0.5),
    "big_list": BigList(3, 1, 4, ["a"]),
    "big_map": BigMap(3, 500, 9, 2),
    "purged": PURGED,
    "finished_part": Finished("part-1", 0, "w"),
    "part_in_progress": InProgress("part-1", 0, "w", 10),
    "partition_report": PartitionReport(0, 2, 5, False, {"day=2024-01-01": 10}),
    "prepared_transaction": PreparedTransaction("gid", 7),
}
"""An object for each name in pickles."""

KEYS = ["a", "é", b"a", 1, -5, 2**70, 1.5, True, None, Decimal("1.5"), ("a", 1), frozenset({1, 2}), Row(1, "a")]
KEYS += [Row(a=1, b=2), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, tzinfo=UTC), timedelta(days=1), UUID(int=5)]

TYPES = [
    Types.STRING(), Types.LONG(), Types.INT(), Types.DOUBLE(), Types.BOOLEAN(), Types.BIG_DEC(), Types.INSTANT(),
    Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.PICKLED_BYTE_ARRAY(), Types.LIST(Types.LONG()),
    Types.BASIC_ARRAY(Types.LONG()), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.OBJECT_ARRAY(Types.STRING()),
    Types.MAP(Types.STRING(), Types.LONG()), Types.TUPLE([Types.STRING(), Types.LONG()]), Types.ROW([Types.LONG()]),
    Types.ROW_NAMED(["a"], [Types.LONG()]),
]  # fmt: skip


class _Name:
    """What a pickle names, by which it makes an object: shown, not called."""

    def __init__(self, module: str, name: str) -> None:
        self.text = f"{module}.{name}"

    def __call__(self, *arguments: Any) -> _Name:
        return _Name(*f"{self.text}({', '.join(map(repr, arguments))})".split(".", 1))

    def __repr__(self) -> str:
        return self.text


class _Shown(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Name(module, name)


def shown(content: bytes) -> list[str]:
    """The pickles that lie one after the other in a cell, each with its protocol, as text. The text is the same whether
    or not equal strings happen to be one object; the bytes are not."""
    file, found = io.BytesIO(content), []
    while file.tell() < len(content):
        protocol = content[file.tell() + 1]
        found.append(f"{protocol}: {_Shown(file).load()!r}")
    return found


def records(folder: Path) -> dict[str, Any]:
    """By name what is written: text or JSON, pickles as they are shown, keys in hexadecimal."""
    found: dict[str, Any] = {f"object {name}": shown(encode(one)) for name, one in OBJECTS.items()}
    found["header"] = shown(encode_header(_header()))
    for name, tables in (("hashmap", HashMapTables()), ("rocksdb", RocksDBTables()), ("pages", RocksDBTables(0))):
        found[f"cells of keyed state, {name}"] = _keyed(tables)
    found["cells of timers"] = _timers()
    found["cells of operator state"] = _operator()
    found["keys of cells"] = [
        key.hex()
        for key in (
            table_prefix("uid", "state", "entries"),
            of_windows("uid").encode(),
            timer_prefix("uid", event_time=True),
            timer_prefix("uid", event_time=False),
            list_prefix("uid", "list"),
            broadcast_prefix("uid", "rules"),
        )
    ]
    found["types"] = [type_to_json(one) for one in TYPES]
    found["hashes of keys"] = [[stable_hash(key), key_group(stable_hash(key), 128)] for key in KEYS]
    found["partitions"] = [list(partition_tokens(width)) for width in (1, 2, 3, 8)]
    found["path names"] = [path_name(name) for name in ("plain", "with space", "a/b", "é")]
    found["commits"] = shown(encode_commits({"files": [OBJECTS["finished_part"]]}))
    found["ledger"] = _ledger(folder)
    found["partitions of tables"] = _partitions(folder)
    found["logs of sources"] = _logs(folder)
    found["offset"] = _offset()
    found["positions"] = _positions(folder)
    found["uids"] = [[node.id, node.uid] for node in _graph().graph.nodes.values()]
    found["checkpoint manifest"] = _without_version(
        Manifest("job", "hashmap", 2, (OperatorEntry(1, "uid", "name", "state", 1, 2, 128),), begun=True).to_json()
    )
    found["savepoint manifest"] = _without_version(_savepoint().to_json())
    found["savepoint columns"] = {name: str(RowFormat(state).schema) for name, state in _states().items()}
    return found


def _header() -> StoreHeader:
    state = StateHeader("hashmap", StateSchema("map", Types.MAP(Types.STRING(), Types.LONG()), True), {"entries": {}})
    operator = OperatorHeader(
        keys=KeysHeader(Types.STRING(), "plain", "key"),
        restored_layout="windows of elements",
        valve=ValveHeader(5, {(0, 1, 2): 5}, {(0, 1, 2): (3, 4)}),
        tables=TablesHeader({"prices": state}, 2),
        windows=TablesHeader({"window-contents": StateHeader("rocksdb", None, {"entries": {"pages": 1}})}),
        event_timers={1, 2},
        processing_timers={3},
        lists={
            "": ListHeader("raw", None, 1, [3, 4]),
            "rules": ListHeader("broadcast", StateSchema("map", Types.MAP(Types.STRING(), Types.LONG())), shape={}),
        },
        event_time={"own": 5},
    )
    return StoreHeader(b"token", {"uid": operator, "nothing": OperatorHeader()})


def _cells(store: MemoryStore) -> dict[str, Any]:
    return {
        key.hex(): shown(value) if value[:1] == b"\x80" else value.hex() for key, value in sorted(store.content.items())
    }


def _keyed(tables: TableFactory) -> dict[str, Any]:
    """All kinds of state, small and big, changed and removed over three batches."""
    expiring = ValueStateDescriptor("stamped", Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(10)).build())
    backend, store, header = KeyedStateBackend("uid", tables), MemoryStore(), TablesHeader()
    count = backend.state(ValueStateDescriptor("count", Types.LONG()))
    stamped = backend.state(expiring)
    seen = backend.state(ListStateDescriptor("seen", Types.LONG()))
    prices = backend.state(MapStateDescriptor("prices", Types.LONG(), Types.LONG()))
    most = backend.state(ReducingStateDescriptor("most", max, Types.LONG()))
    for batch in range(3):
        backend.clock.processing_time = 1000 * batch
        backend.begin(store, header, unchanged=batch > 0)
        for number, key in enumerate(["a", "b", "c"][: 3 - batch]):
            backend.prepare([key])
            backend.key = key
            count.update(10 * batch + number)
            stamped.update(batch)
            seen.add_all(list(range(300 if key == "a" and not batch else 2)))
            prices.put_all(dict.fromkeys(range(300 if key == "b" and not batch else 2), batch))
            most.add(batch)
            if batch == 1 and key == "b":
                count.clear()
        store.write(backend.changes())
    states = {name: [kept.backend, _shapes(kept.shapes)] for name, kept in header.states.items()}
    return {"header": json.loads(json.dumps(states)), "cells": _cells(store)}


def _shapes(shapes: Any) -> Any:
    """How many bytes there are is not the format's."""
    if not isinstance(shapes, dict):
        return shapes
    return {name: "(bytes)" if "bytes" in str(name) else _shapes(one) for name, one in shapes.items()}


def _timers() -> dict[str, Any]:
    store, coarse = MemoryStore(), set[int]()
    for moment in (1000, 2_000_000):
        queue = TimerQueue(timer_prefix("uid", event_time=True), store, coarse)
        queue.register(moment, "a")
        queue.register(moment + 1, ("b", (0, 10)))
        queue.delete(1000, "a")
        store.write(queue.changes())
    return {"header": sorted(coarse), "cells": _cells(store)}


def _operator() -> dict[str, Any]:
    store, header = MemoryStore(), dict[str, ListHeader]()
    for batch in range(2):
        state = OperatorState("uid")
        state.begin(store, header)
        state.get_list_state(ListStateDescriptor("mine", Types.LONG())).add(batch)
        state.get_union_list_state(ListStateDescriptor("ours", Types.LONG())).add(batch)
        rules = state.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
        rules.put("a" if batch else "b", batch)
        if batch:
            rules.remove("b")
        state.raw = b"raw"
        store.write(state.changes())
    kept = {name: [one.mode, one.cells, one.pieces, _shapes(one.shape)] for name, one in header.items()}
    return {"header": json.loads(json.dumps(kept)), "cells": _cells(store)}


def _ledger(folder: Path) -> str:
    ledger = Ledger(str(folder), "fs")
    ledger.write({"part-1": OBJECTS["part_in_progress"]})
    return (folder / ".fs.ledger").read_text()


def _partitions(folder: Path) -> str:
    context = CommitterContext()
    committer = PartitionCommitter(FileCommitter(str(folder), context), str(folder), "_SUCCESS", context)
    committer.commit([OBJECTS["partition_report"]])
    committer.close()
    return (folder / f".{context.name_prefix()}.partitions").read_text()


def _logs(folder: Path) -> dict[str, str]:
    """Of what cannot be received again: a file by its name, in hexadecimal."""
    pieces, lines = PieceLog(str(folder / "pieces")), RecordLog(str(folder / "lines"), b"\n")
    pieces.append([1, "a"], 7)
    lines.append(b"one\ntw")
    lines.cut()
    pieces.close()
    lines.close()
    files = [file for name in ("pieces", "lines") for file in sorted((folder / name).iterdir())]
    return {file.name: file.read_bytes().hex() for file in files}


def _graph() -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"firesteel.master": "memory", "firesteel.batch.max-records": "2"})
    )
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.LONG())
    named = numbers.map(lambda n: (n, 1)).name("pairs").key_by(lambda pair: pair[0]).sum(1).uid("sums")
    named.union(numbers.map(lambda n: (n, 2))).rebalance().map(str).print()
    return env._submission("golden").graph


def _offset() -> Any:
    coordinator = Coordinator(_graph(), Settings(max_records=2), "")
    offset = coordinator.next(coordinator.initial())
    return {**offset, "time": "(the clock's)"}


def _positions(folder: Path) -> dict[str, Any]:
    """Of each source whose position is its own to decide, before the first record and after some."""
    text, done = folder / "lines.txt", folder / "done.txt"
    text.write_text("".join(f"line {number}\n" for number in range(50)))
    done.write_text("one\n")
    files = [FileState(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in (done, text)]
    lines = TextFileEnumerator(tuple(files))
    found = {}
    for name, source in (
        ("sequence", IndexEnumerator(16)),
        ("collection", CollectionEnumerator.of([1, 2, 3, 4, 5])),
        ("text", lines),
    ):
        position = source.initial()
        found[name] = [position, source.latest(position, 3)]
    plain = json.dumps(found).replace(str(folder), "(folder)")
    for file in files:
        plain = plain.replace(str(file.modified), '"(modified)"')
    return dict(json.loads(plain))


def _states() -> dict[str, StateId]:
    long, pair = Types.LONG(), Types.TUPLE([Types.STRING(), Types.LONG()])
    value = StateSchema("value", long)
    text = Types.STRING()
    return {
        "value": StateId("uid", "s", "value", "key", value, text),
        "value with a time to live": StateId("uid", "s", "value", "key", StateSchema("value", long, True), text),
        "value of anything": StateId("uid", "s", "value", "key", StateSchema("value", Types.PICKLED_BYTE_ARRAY())),
        "list": StateId("uid", "s", "list", "key", StateSchema("list", Types.LIST(pair)), text),
        "map": StateId("uid", "s", "map", "key", StateSchema("map", Types.MAP(text, long)), text),
        "window": StateId("uid", "s", "value", "window", value, text),
        "timers": StateId("uid", "s", "timers", "key", value, text),
        "timers of windows": StateId("uid", "s", "timers", "window", value, text),
        "timers of places": StateId("uid", "s", "timers", "place", value, text),
        "split": StateId("uid", "s", "split", "operator", StateSchema("list", Types.LIST(long))),
        "raw": StateId("uid", "s", "raw", "operator", value),
        "broadcast": StateId("uid", "s", "broadcast", "operator", StateSchema("map", Types.MAP(text, long))),
    }


def _savepoint() -> SavepointManifest:
    state = StateEntry.of(_states()["map"])
    files = (PartFile("operators/uid/s/part-00000.parquet", 0, 5, 100),)
    state = StateEntry(**{**{name: getattr(state, name) for name in state.__dataclass_fields__}, "files": files})
    operator = SavedOperator("uid", "name", "state", 2, 128, "plain", 5, None, (state,))
    source = SavedOperator("source", "name", "source", 1, 128, position={"at": 5})
    return SavepointManifest("job", "id", 3, 4, 5, "0", "hashmap", (operator, source), {"source/0": {"own": 5}})


def _without_version(text: str) -> Any:
    """Firesteel's own version may change without the format."""
    return {**json.loads(text), "firesteel": "(version)"}


__all__ = ["KEYS", "OBJECTS", "TYPES", "records"]
