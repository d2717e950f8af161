"""JSON, CSV and Avro schemas read and write what PyFlink's do: ``format_facts.json`` has what those were seen to do.

The facts are recorded by ``tools/format_facts.py`` for the cases of ``format_cases.py``. What differs on purpose is in
``DIFFERENT``, with its reason; such a case must still differ, or the entry is out of date.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import format_cases
import pytest

from firesteel.common import Row, Types
from firesteel.common.time import Instant
from firesteel.common.type_system.javatext import java_double, java_float, java_instant, java_timestamp, to_float32
from firesteel.datastream.formats import avro as avro_formats
from firesteel.datastream.formats import csv as csv_formats
from firesteel.datastream.formats import json as json_formats
from firesteel.errors import FiresteelError

FACTS = {fact["case"]: fact for fact in json.loads((Path(__file__).parent / "format_facts.json").read_text())}
CASES = {case[0]: case for case in format_cases.all_cases()}

DIFFERENT: dict[tuple[str, str], str] = {
    ("json SQL_DATE()", '{"v": "+10000-01-01"}'): "Python's dates end with the year 9999",
    ("avro union of three", "\x04\x02x"): "text in a union of several types is a str, in PyFlink an object of Java's",
    ("avro date", "\xf3\xe4W"): "java.sql.Date counts days before 1582 by the Julian calendar",
    ("avro fixed decimal", "\x00\x00\x01\xf4"): "Flink cannot write a decimal that is shorter than its type",
    ("avro fixed decimal", "\xff\xff\xff\xff"): "Flink cannot write a decimal that is shorter than its type",
}


class Firesteel:
    """Firesteel's schemas, as the cases use them."""

    def __init__(self) -> None:
        modules = (json_formats, csv_formats, avro_formats)
        self.names: dict[str, Any] = {name: getattr(module, name) for module in modules for name in module.__all__}
        self.names["Types"] = Types

    def reader(self, schema: str) -> Any:
        return eval(schema, self.names)

    def writer(self, schema: str) -> Any:
        return eval(schema, self.names)

    def read(self, reader: Any, message: bytes) -> Any:
        return reader.deserialize(message)

    def write(self, writer: Any, row: Any) -> bytes:
        return bytes(writer.serialize(row))

    def text(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int):
            return str(value)
        if isinstance(value, float):
            # The gateway gives a Float with the digits that it has.
            return java_float(value) if to_float32(value) == value else java_double(value)
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, decimal.Decimal):
            return f"decimal {value:f}"
        if isinstance(value, bytes):
            return f"bytes {value.hex()}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, dict):
            items = sorted((self.text(key), self.text(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
        return self._text_of_object(value)

    def _text_of_object(self, value: Any) -> str:
        if isinstance(value, Row):
            return f"({', '.join(map(self.text, value))})"
        if isinstance(value, datetime.datetime):
            return f"timestamp {java_timestamp(value)}"
        if isinstance(value, datetime.date):
            return f"date {value.isoformat()}"
        if isinstance(value, datetime.time):
            return f"time {value:%H:%M:%S}"
        assert isinstance(value, Instant)
        return f"instant {java_instant(value)}"

    def failure(self, error: Exception) -> str | None:
        return str(error) if isinstance(error, FiresteelError) else None


def outcome(found: dict[str, Any]) -> Any:
    """What is compared: the wording of failures is not."""
    if "fails" in found:
        return "fails"
    written = ["fails" if text.startswith("fails: ") else text for text in found.get("written", [])]
    return found["read"], written


def test_each_case_is_recorded() -> None:
    assert list(FACTS) == list(CASES)


@pytest.fixture(params=["orjson", "json"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is read with orjson where it is installed, and without it elsewhere."""
    if request.param == "json":
        monkeypatch.setitem(sys.modules, "orjson", None)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("json")])
def test_json_as_pyflink_does(name: str) -> None:
    compare(name)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("json")])
def test_as_pyflink_does(name: str) -> None:
    compare(name)


def compare(name: str) -> None:
    fact, found = FACTS[name], format_cases.result(Firesteel(), *CASES[name])
    assert ("refused" in found) == ("refused" in fact), (found, fact)
    for expected, given in zip(fact.get("messages", []), found.get("messages", []), strict=True):
        assert given["message"] == expected["message"]
        differs = outcome(given) != outcome(expected)
        assert differs == ((name, given["message"]) in DIFFERENT), (given, expected)
