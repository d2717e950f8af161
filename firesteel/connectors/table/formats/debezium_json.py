"""The format ``debezium-json``: changes of a database's rows, each with what was before and what is after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.connectors.table.formats.json_format import JsonFormat, JsonOptions
from firesteel.connectors.table.formats.json_values import FieldProblem, exact_tree, text_of_tree
from firesteel.connectors.table.formats.message_format import BadMessage, Decoded, MessageFormat, kept_rows
from firesteel.runtime.columns.kinds import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    data_of,
    kinds_of,
    with_kinds,
)

__all__ = ["DEBEZIUM_METADATA", "DebeziumJsonFormat", "DebeziumOptions"]


def _moment(value: Any) -> int | None:
    return None if value is None else int(value)


def _text(value: Any) -> str | None:
    return None if value is None else text_of_tree(value)


def _properties(source: Any) -> list[tuple[str, str | None]] | None:
    return None if not isinstance(source, dict) else [(name, _text(value)) for name, value in source.items()]


def _of_source(name: str, read: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda schema, payload: read((payload.get("source") or {}).get(name))


DEBEZIUM_METADATA: dict[str, tuple[pa.DataType, Callable[[Any, Any], Any]]] = {
    "schema": (pa.string(), lambda schema, payload: _text(schema)),
    "ingestion-timestamp": (pa.timestamp("ms", "UTC"), lambda schema, payload: _moment(payload.get("ts_ms"))),
    "source.timestamp": (pa.timestamp("ms", "UTC"), _of_source("ts_ms", _moment)),
    "source.database": (pa.string(), _of_source("db", _text)),
    "source.schema": (pa.string(), _of_source("schema", _text)),
    "source.table": (pa.string(), _of_source("table", _text)),
    "source.properties": (
        pa.map_(pa.string(), pa.string()),
        lambda schema, payload: _properties(payload.get("source")),
    ),
}
"""What a change says of itself beside its rows, by its name as a metadata column: the type, and how it is found in the
schema and the payload of a message."""


@dataclass(frozen=True)
class DebeziumOptions:
    """The options of the format."""

    schema_include: bool = False
    """Whether messages bring their schema along: then the change is below ``payload``."""
    json: JsonOptions = field(default_factory=JsonOptions)


class DebeziumJsonFormat(MessageFormat):
    """An update is two rows, -U and +U. As a sink it writes deletions and insertions, as Flink does.

    >>> form = DebeziumJsonFormat(pa.schema([("id", pa.int64())]))
    >>> form.decode([b'{"before": {"id": 1}, "after": {"id": 2}, "op": "u"}']).batch.to_pydict()
    {'id': [1, 2], '$kind': [1, 2]}
    """

    changelog = True

    def __init__(
        self, schema: pa.Schema, options: DebeziumOptions | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        self.schema, self._options = schema, options or DebeziumOptions()
        self._rows = JsonFormat(schema, self._options.json)
        self._metadata = dict(metadata or {})
        """By column: which of :data:`DEBEZIUM_METADATA` it has. They stand behind the others."""

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        # A tombstone follows each deletion, for the broker's own cleaning. It may be a message without a byte.
        kept, places = kept_rows(messages)
        rows: list[list[Any]] = []
        kinds: list[int] = []
        origins: list[int] = []
        said: list[list[Any]] = []
        for index, message in enumerate(kept):
            if not message:
                continue
            try:
                tree = exact_tree(message)
                payload = tree["payload"] if self._options.schema_include else tree
                changes = self._changes(payload)
                extra = self._extra(tree, payload)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if self._options.json.ignore_parse_errors and not isinstance(error, FieldProblem):
                    continue
                raise BadMessage(index, f"debezium-json cannot read it: {error}", message) from None
            for kind, row in changes:
                rows.append(row)
                kinds.append(kind)
                origins.append(index)
                said.append(extra)
        found_rows = self._with_metadata(self._rows.batch_of(rows), said)
        batch = with_kinds(found_rows, np.array(kinds, np.int8) if any(kinds) else None)
        found = np.array(origins, np.int64)
        return Decoded(batch, found if places is None else places[found])

    def _extra(self, tree: Any, payload: Any) -> list[Any]:
        schema = tree.get("schema") if self._options.schema_include else None
        return [DEBEZIUM_METADATA[key][1](schema, payload) for key in self._metadata.values()]

    def _with_metadata(self, batch: pa.RecordBatch, said: list[list[Any]]) -> pa.RecordBatch:
        for place, (name, key) in enumerate(self._metadata.items()):
            kind = DEBEZIUM_METADATA[key][0]
            batch = batch.append_column(name, pa.array([values[place] for values in said], kind))
        return batch

    def _changes(self, tree: Any) -> list[tuple[int, list[Any]]]:
        operation = tree.get("op")
        if operation in ("c", "r"):
            return [(INSERT, self._row(tree, "after"))]
        if operation == "u":
            return [(UPDATE_BEFORE, self._row(tree, "before")), (UPDATE_AFTER, self._row(tree, "after"))]
        if operation == "d":
            return [(DELETE, self._row(tree, "before"))]
        raise ValueError(f"its 'op' is {operation!r}, not c, r, u or d")

    def _row(self, tree: Any, which: str) -> list[Any]:
        content = tree.get(which)
        if content is None:
            raise ValueError(
                f"an {tree['op']!r} without {which!r}. A table of PostgreSQL needs REPLICA IDENTITY FULL for it"
            )
        return self._rows.row(content)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        kinds = kinds_of(batch)
        texts = self._rows.texts(data_of(batch))
        added = [True] * len(texts) if kinds is None else (kinds != DELETE) & (kinds != UPDATE_BEFORE)
        # What is null is left out where the option says so, here, too.
        before, after = ("", "") if self._options.json.ignore_null_fields else ('"before":null,', '"after":null,')
        return [
            (f'{{{before}"after":{text},"op":"c"}}' if adds else f'{{"before":{text},{after}"op":"d"}}').encode()
            for text, adds in zip(texts, added, strict=True)
        ]
