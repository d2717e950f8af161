"""Headers of stores that were written before version 2 of the format: nested dicts, with objects of ours in them.

The pickles of that time name classes by their module paths, and so do the cells beside the header. These paths must
therefore lead somewhere as long as version 1 is read: :mod:`firesteel.durable.cells` knows where modules have moved.
The golden data of version 1 is among the tests.
"""

from __future__ import annotations

from typing import Any

from firesteel.durable.headers import (
    KeysHeader,
    ListHeader,
    OperatorHeader,
    StateHeader,
    StoreHeader,
    TablesHeader,
    ValveHeader,
)

__all__ = ["header_of_version_1"]

_BACKENDS = {"HashMapTables": "hashmap", "RocksDBTables": "rocksdb"}
_KNOWN = {"keys", "restored layout", "valve", "tables", "windows", "event", "processing", "operator"}


def header_of_version_1(token: bytes | None, headers: dict[str, dict[str, Any]]) -> StoreHeader:
    return StoreHeader(token, {uid: _operator(header) for uid, header in headers.items()})


def _operator(former: dict[str, Any]) -> OperatorHeader:
    return OperatorHeader(
        keys=KeysHeader(*former["keys"]) if "keys" in former else None,
        restored_layout=former.get("restored layout"),
        valve=ValveHeader(**former.get("valve", {})),
        tables=_tables(former.get("tables", {})),
        windows=_tables(former.get("windows", {})),
        event_timers=former.get("event", set()),
        processing_timers=former.get("processing", set()),
        lists={name: _list(kept) for name, kept in former.get("operator", {}).items()},
        # An operator that assigns watermarks kept what it knew beside the rest.
        event_time={name: kept for name, kept in former.items() if name not in _KNOWN},
    )


def _tables(former: dict[str, Any]) -> TablesHeader:
    # Under the empty name was the number of the last big collection.
    states = {name: _state(kept) for name, kept in former.items() if name}
    return TablesHeader(states, former.get("", -1))


def _state(kept: dict[str, Any]) -> StateHeader:
    backend = kept.get("tables")
    shapes: dict[str, Any] = {kind: kept[kind] for kind in ("entries", "blocks") if kind in kept}
    return StateHeader(None if backend is None else _BACKENDS.get(backend, backend), kept.get("schema"), shapes)


def _list(kept: dict[str, Any]) -> ListHeader:
    return ListHeader(kept["mode"], kept.get("schema"), kept.get("cells", 0), kept.get("pieces"), kept.get("table"))
