"""Avro's encoding as JSON, of records with stored values: a value of a union says which of its types it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from firesteel.common.type_system.javatext import java_double, java_float, to_float32
from firesteel.connectors.formats.json_writing import quoted

__all__ = ["avro_json_reader", "avro_json_writer"]

Read = Callable[[Any], Any]
Write = Callable[[Any], str]


def avro_json_writer(schema: Any, namespace: str = "") -> Write:
    """A function from a value to its JSON, as short as Java's Avro writes it.

    >>> write = avro_json_writer({"type": "array", "items": ["null", "int", "bytes"]})
    >>> write([1, None, b"\\xff"])
    '[{"int":1},null,{"bytes":"ÿ"}]'
    """
    if isinstance(schema, list):
        return _union_writer(schema, namespace)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        inner = schema.get("namespace", namespace)
        fields = [
            (each["name"], f"{quoted(each['name'])}:", avro_json_writer(each["type"], inner))
            for each in schema["fields"]
        ]
        return lambda record: "{" + ",".join(label + write(record.get(name)) for name, label, write in fields) + "}"
    if kind == "array":
        item = avro_json_writer(schema["items"], namespace)
        return lambda values: f"[{','.join(map(item, values))}]"
    if kind == "map":
        value = avro_json_writer(schema["values"], namespace)
        return lambda pairs: "{" + ",".join(f"{quoted(key)}:{value(one)}" for key, one in pairs.items()) + "}"
    return avro_json_writer(kind, namespace) if isinstance(kind, dict | list) else _WRITERS[kind]


def _union_writer(schema: list[Any], namespace: str) -> Write:
    branches = {_label(each, namespace): avro_json_writer(each, namespace) for each in schema if each != "null"}
    if len(branches) == 1:
        ((label, write),) = branches.items()
        begin = f"{{{quoted(label)}:"
        return lambda value: "null" if value is None else f"{begin}{write(value)}}}"
    return lambda value: "null" if value is None else _of_its_type(branches, value)


def _of_its_type(branches: dict[str, Write], value: Any) -> str:
    for label, write in branches.items():
        if isinstance(value, _TYPES.get(label, dict)):
            return f"{{{quoted(label)}:{write(value)}}}"
    raise ValueError(f"none of {', '.join(branches)} is the type of {value!r}")


def _label(schema: Any, namespace: str) -> str:
    """What a union calls one of its types."""
    if not isinstance(schema, dict):
        return str(schema)
    if "name" not in schema:
        return _label(schema["type"], namespace)
    name, space = schema["name"], schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _number(text: str, value: float) -> str:
    return text if math.isfinite(value) else f'"{text}"'


_WRITERS: dict[str, Write] = {
    "null": lambda value: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": lambda value: str(int(value)),
    "long": lambda value: str(int(value)),
    "float": lambda value: _number(java_float(value), value),
    "double": lambda value: _number(java_double(value), value),
    "string": quoted,
    "bytes": lambda value: quoted(value.decode("latin-1")),
}
_TYPES: dict[str, Any] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
}


def avro_json_reader(schema: Any, namespace: str = "") -> Read:
    """A function from a tree of JSON to a value.

    >>> avro_json_reader({"type": "array", "items": ["null", "int"]})([{"int": 1}, None])
    [1, None]
    """
    if isinstance(schema, list):
        return _union_reader(schema, namespace)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        inner = schema.get("namespace", namespace)
        fields = [(each["name"], avro_json_reader(each["type"], inner)) for each in schema["fields"]]
        return lambda tree: {name: read(_field(tree, name)) for name, read in fields}
    if kind == "array":
        item = avro_json_reader(schema["items"], namespace)
        return lambda tree: [item(one) for one in _expected(tree, list, "an array")]
    if kind == "map":
        value = avro_json_reader(schema["values"], namespace)
        return lambda tree: {key: value(one) for key, one in _expected(tree, dict, "an object").items()}
    return avro_json_reader(kind, namespace) if isinstance(kind, dict | list) else _READERS[kind]


def _union_reader(schema: list[Any], namespace: str) -> Read:
    branches = {_label(each, namespace): avro_json_reader(each, namespace) for each in schema if each != "null"}
    nullable = "null" in schema

    def read(tree: Any) -> Any:
        if tree is None and nullable:
            return None
        # As in Java, what stands behind the value is left alone.
        if not isinstance(tree, dict) or (label := next(iter(tree), "")) not in branches:
            wanted = ", ".join([*["null"] * nullable, *(f'{{"{each}": ...}}' for each in branches)])
            raise ValueError(f"expected {wanted}, got {_shown(tree)}")
        return branches[label](tree[label])

    return read


def _field(tree: Any, name: str) -> Any:
    if name not in _expected(tree, dict, "an object"):
        raise ValueError(f"the field {name!r} is missing")
    return tree[name]


def _shown(tree: Any) -> str:
    return repr(tree)[:80]


def _expected(tree: Any, kind: Any, wanted: str) -> Any:
    if not isinstance(tree, kind) or (isinstance(tree, bool) and kind is not bool):
        raise ValueError(f"expected {wanted}, got {_shown(tree)}")
    return tree


def _whole(bits: int) -> Read:
    def read(tree: Any) -> int:
        # As in Java, a fraction is cut off.
        number = int(_expected(tree, int | float, "a whole number"))
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise ValueError(f"{number} has more than {bits} bits")
        return number

    return read


_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _fraction(tree: Any) -> float:
    if isinstance(tree, str) and tree in _SPECIAL:
        return _SPECIAL[tree]
    return float(_expected(tree, int | float, "a number"))


def _nothing(tree: Any) -> None:
    _expected(tree, type(None), "null")


_READERS: dict[str, Read] = {
    "null": _nothing,
    "boolean": lambda tree: _expected(tree, bool, "true or false"),
    "int": _whole(32),
    "long": _whole(64),
    "float": lambda tree: to_float32(_fraction(tree)),
    "double": _fraction,
    "string": lambda tree: _expected(tree, str, "a text"),
    "bytes": lambda tree: _expected(tree, str, "a text").encode("latin-1"),
}
