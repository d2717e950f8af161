"""``avro.encoding`` = ``json``: the messages that Flink 2.3 wrote and read (``tools/record_avro_json.py``)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from firesteel.connectors.table.formats.avro_format import AvroFormat
from firesteel.connectors.table.formats.json_format import JsonFormat
from firesteel.connectors.table.formats.message_format import BadMessage
from firesteel.table import TableEnvironment
from firesteel.table.types.arrow import arrow_schema, strict_schema

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "avro_json_by_pyflink.json").read_text())
OURS = {'{"a":null,"s":"x","d":{"double":"NaN"}}': {"a": None, "s": "x", "d": "NaN"}}
"""Flink writes NaN so, and does not read it."""


def formats(env: TableEnvironment, columns: str) -> tuple[AvroFormat, JsonFormat]:
    env.execute_sql(f"CREATE TABLE f ({columns}) WITH ('connector' = 'datagen')")
    schema = env.from_path("f").get_resolved_schema()
    names, kinds = schema.get_column_names(), schema.get_column_data_types()
    avro = AvroFormat(strict_schema(names, kinds), "json")
    return pickle.loads(pickle.dumps(avro)), JsonFormat(arrow_schema(names, kinds))


@pytest.mark.parametrize("case", [case for case in CASES if "rows" in case], ids=lambda case: str(case["columns"][:30]))
def test_messages_are_flinks(case: dict[str, Any], env: TableEnvironment) -> None:
    avro, plain = formats(env, case["columns"])
    rows = plain.decode([json.dumps(row).encode() for row in case["rows"]]).batch
    found = [message.decode() for message in avro.encode(rows)]
    # Flink puts a line break before every message but the first.
    expected = [message.strip() for message in case["messages"]]
    if "MAP" in case["columns"]:
        # In another order.
        assert list(map(json.loads, found)) == list(map(json.loads, expected))
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("columns", "message", "expected"),
    [
        (case["columns"], message, row)
        for case in CASES
        for message, row in zip(case["messages"], case["read"], strict=True)
    ],
)
def test_messages_are_read_as_flink_reads_them(
    columns: str, message: str, expected: Any, env: TableEnvironment
) -> None:
    avro, plain = formats(env, columns)
    expected = OURS.get(message, expected)
    if expected is None:
        with pytest.raises(BadMessage, match="Avro cannot read it"):
            avro.decode([message.encode()])
        return
    (text,) = plain.encode(avro.decode([message.encode()]).batch)
    assert json.loads(text) == expected


def test_a_message_that_does_not_fit_is_explained(env: TableEnvironment) -> None:
    avro, _ = formats(env, "a INT, s STRING NOT NULL")
    for message, reason in (
        (b'{"a": 1, "s": "x"}', 'expected null, {"int": ...}, got 1'),
        (b'{"a": null}', "the field 's' is missing"),
        (b'{"a": {"int": 2147483648}, "s": "x"}', "2147483648 has more than 32 bits"),
        (b'{"a": {"int": true}, "s": "x"}', "expected a whole number, got True"),
    ):
        with pytest.raises(BadMessage) as caught:
            avro.decode([message])
        assert reason in str(caught.value)
