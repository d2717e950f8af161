"""Avro schemas: parsed, and as types of rows."""

from __future__ import annotations

import json
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.errors import ProgramError, SetupError

__all__ = [
    "Definitions",
    "actual",
    "fastavro",
    "is_nullable_union",
    "loaded",
    "logical_type",
    "parsed",
    "type_of",
    "without_logical",
]

_SIMPLE = {
    "string": Types.STRING,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "boolean": Types.BOOLEAN,
}

Definitions = dict[str, Any]
"""Records, enums and fixed types by their full names."""


def fastavro() -> Any:
    """The library, which is loaded where Avro is used only."""
    try:
        import fastavro as library
        import fastavro.schema
    except ImportError as error:
        raise SetupError(
            f"Avro needs fastavro, which is not installed ({error}). Install it where the driver and the workers run: "
            "pip install 'firesteel[avro]'."
        ) from error
    return library


def parsed(text: str) -> tuple[Any, Definitions]:
    """A schema, with full names, and what it defines."""
    library = fastavro()
    definitions: Definitions = {}
    try:
        schema = library.parse_schema(loaded(text), named_schemas=definitions)
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ProgramError(f"This is not an Avro schema: {reason}.") from None
    return schema, definitions


_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def loaded(text: str) -> Any:
    """What the text of a schema says: JSON, or the name of a type alone.

    >>> loaded(" int "), loaded('{"type": "int"}')
    ('int', {'type': 'int'})
    """
    name = text.strip()
    return name if name in _PRIMITIVE else json.loads(text)


def without_logical(schema: Any) -> Any:
    """A schema whose values are the stored ones: days, milliseconds, digits."""
    if isinstance(schema, list):
        return [without_logical(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: part if key == "default" else without_logical(part)
        for key, part in schema.items()
        if key != "logicalType" and not key.startswith("__")
    }


def actual(schema: Any, definitions: Definitions) -> Any:
    """What a name stands for."""
    if isinstance(schema, str):
        return definitions.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return actual(schema["type"], definitions)
    return schema


def logical_type(schema: Any) -> str | None:
    """Such as ``date``; None if it has none."""
    return schema.get("logicalType") if isinstance(schema, dict) else None


def is_nullable_union(union: list[Any]) -> Any:
    """The one type that a union has beside null; None if it has several."""
    kinds = [kind for kind in union if kind != "null"]
    return kinds[0] if len(kinds) == 1 and len(union) <= 2 else None


def type_of(schema: Any, definitions: Definitions, inside: tuple[str, ...] = ()) -> TypeInformation:
    """The type that Flink's rows have for a schema."""
    schema = actual(schema, definitions)
    if isinstance(schema, list):
        kind = is_nullable_union(schema)
        # Several types: values are given as they are.
        return Types.PICKLED_BYTE_ARRAY() if kind is None else type_of(kind, definitions, inside)
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = logical_type(schema)
    if kind in ("record", "error"):
        if schema["name"] in inside:
            raise ProgramError(f"The Avro record {schema['name']!r} holds itself, which a row type cannot.")
        within = (*inside, schema["name"])
        fields = schema["fields"]
        types = [type_of(field["type"], definitions, within) for field in fields]
        return Types.ROW_NAMED([field["name"] for field in fields], types)
    if kind == "array":
        element = type_of(schema["items"], definitions, inside)
        return Types.BASIC_ARRAY(element) if element == Types.STRING() else Types.OBJECT_ARRAY(element)
    if kind == "map":
        return Types.MAP(Types.STRING(), type_of(schema["values"], definitions, inside))
    return _simple_type(kind, logical)


def _simple_type(kind: Any, logical: str | None) -> TypeInformation:
    if kind in ("bytes", "fixed"):
        return Types.BIG_DEC() if logical == "decimal" else Types.PRIMITIVE_ARRAY(Types.BYTE())
    if kind == "int":
        return {"date": Types.SQL_DATE, "time-millis": Types.SQL_TIME}.get(logical or "", Types.INT)()
    if kind == "long":
        if logical in ("timestamp-millis", "timestamp-micros"):
            return Types.SQL_TIMESTAMP()
        return Types.SQL_TIME() if logical == "time-micros" else Types.LONG()
    if kind == "enum":
        return Types.STRING()
    if kind == "null":
        return Types.PICKLED_BYTE_ARRAY()
    return _SIMPLE[kind]()
