"""Generic records of Avro: dicts with the fields of a schema, as fastavro reads and writes them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Hashable
from typing import Any

from firesteel.common.type_system.base import TypeInformation, expected
from firesteel.common.type_system.codegen import Scope
from firesteel.common.types import Row
from firesteel.connectors.formats.avro_schemas import (
    Definitions,
    actual,
    is_nullable_union,
    loaded,
    parsed,
)
from firesteel.connectors.formats.compiling import FieldError

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo", "record_preparer"]


class AvroSchema:
    """A schema of Avro.

    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
    >>> print(schema)
    {"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}
    """

    def __init__(self, schema: str) -> None:
        self.parsed, self.definitions = parsed(schema)
        self._text = json.dumps(loaded(schema), separators=(",", ":"))

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that a text of JSON describes."""
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema that a file describes, such as ``user.avsc``."""
        with open(file_path, encoding="utf-8") as file:
            return AvroSchema(file.read())

    @staticmethod
    def of(schema: AvroSchema | str) -> AvroSchema:
        """A schema, or its text."""
        return schema if isinstance(schema, AvroSchema) else AvroSchema(schema)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"AvroSchema({self._text})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, AvroSchema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self._text,)


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of generic records: dicts that a schema describes."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = AvroSchema.of(schema)

    def explain(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, dict) else expected(self, value)

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        return f"(type({first}) is dict or {name} is None or isinstance({name}, dict))"

    def _key(self) -> Hashable:
        return str(self._schema)

    def __repr__(self) -> str:
        name = self._schema.parsed.get("name") if isinstance(self._schema.parsed, dict) else self._schema
        return f"AVRO<{name}>"


Check = Callable[[Any], None]


def integer_check(schema: Any, definitions: Definitions, place: str = "", inside: tuple[str, ...] = ()) -> Check | None:
    """A function that fails where a number does not fit into 32 bits; None if the schema has no such number.

    fastavro does not look at that."""
    schema = actual(schema, definitions)
    if isinstance(schema, list):
        kind = is_nullable_union(schema)
        return None if kind is None else integer_check(kind, definitions, place, inside)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in ("record", "error") and schema["name"] not in inside:
        return _record_check(schema, definitions, place, (*inside, schema["name"]))
    if kind in ("array", "map"):
        element = integer_check(schema["items" if kind == "array" else "values"], definitions, f"{place}[]", inside)
        return None if element is None else _elements_check(element, kind == "map")
    return _number_check(place) if kind == "int" else None


def _record_check(schema: Any, definitions: Definitions, place: str, inside: tuple[str, ...]) -> Check | None:
    found = [
        (field["name"], integer_check(field["type"], definitions, f"{place}.{field['name']}".lstrip("."), inside))
        for field in schema["fields"]
    ]
    checks = [(name, check) for name, check in found if check is not None]

    def check_fields(record: Any) -> None:
        for name, check in checks:
            value = record.get(name)
            if value is not None:
                check(value)

    return check_fields if checks else None


def _elements_check(check: Check, of_map: bool) -> Check:
    def check_elements(values: Any) -> None:
        for value in values.values() if of_map else values:
            if value is not None:
                check(value)

    return check_elements


def _number_check(place: str) -> Check:
    def check_number(value: Any) -> None:
        if type(value) is int and not -(2**31) <= value < 2**31:
            raise FieldError(place, "an int of 32 bits", value)

    return check_number


def plain_record(element: Any) -> Any:
    """A record as a dict; rows with names and dataclasses do as well."""
    if isinstance(element, Row):
        return element.as_dict(recursive=True)
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        return dataclasses.asdict(element)
    return element


def record_preparer(schema: AvroSchema) -> Callable[[Any], Any]:
    """A function from an element to the record that fastavro writes."""
    check = integer_check(schema.parsed, schema.definitions)

    def prepared(element: Any) -> Any:
        record = plain_record(element)
        if check is not None:
            check(record)
        return record

    return prepared
