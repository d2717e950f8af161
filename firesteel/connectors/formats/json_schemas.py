"""From a JSON schema to a row type, for the part of JSON Schema that Flink knows."""

from __future__ import annotations

import json
from typing import Any

from firesteel.common.type_system.base import TypeInformation
from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.typeinfo import Types
from firesteel.errors import ProgramError, short_repr

__all__ = ["row_type_of_json_schema"]

_UNSUPPORTED = ("allOf", "anyOf", "not", "extends", "disallow")
_STRING_FORMATS = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}
_SIMPLE = {"boolean": Types.BOOLEAN, "number": Types.BIG_DEC, "integer": Types.BIG_DEC}


def row_type_of_json_schema(text: str) -> TypeInformation:
    """The type of a JSON schema.

    >>> row_type_of_json_schema('{"type": "object", "properties": {"id": {"type": "integer"}, "at": '
    ...                         '{"type": ["null", "string"], "format": "date-time"}}}')
    ROW<id BIG_DEC, at SQL_TIMESTAMP>
    """
    if not isinstance(text, str):
        raise TypeError(f"json_schema is the text of a JSON schema, got {short_repr(text, 80)}.")
    try:
        root = json.loads(text)
    except ValueError as error:
        raise ProgramError(f"This is not a JSON schema: {error}.") from None
    found = _Schema(root).type_of("<root>", root)
    if found is None:
        raise ProgramError("The JSON schema describes nothing but null.")
    return found


class _Schema:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._resolving: list[str] = []

    def type_of(self, place: str, node: Any) -> TypeInformation | None:
        """The type of a node, None for null."""
        if not isinstance(node, dict):
            raise ProgramError(f"The JSON schema has {short_repr(node, 60)} at {place}, where a schema should be.")
        found: list[TypeInformation | None] = []
        reference = node.get("$ref")
        target = self._target(reference, place) if isinstance(reference, str) else None
        if "type" in node:
            given = node["type"]
            for kind in given if isinstance(given, list) else [given]:
                self._add(found, self._of_kind(kind, place, node))
        elif target is not None and "type" in target:
            self._add(found, self._referred(str(reference), target))
        choices = node.get("oneOf", target.get("oneOf") if target is not None else None)
        for number, choice in enumerate(choices if isinstance(choices, list) else []):
            self._add(found, self.type_of(f"{place}/oneOf[{number}]", choice))
        unsupported = [word for word in _UNSUPPORTED if word in node]
        if unsupported:
            raise ProgramError(
                f"The JSON schema has {unsupported[0]!r} at {place}; types of that kind have no row type."
            )
        if not found:
            raise ProgramError(f"The JSON schema names no type at {place}.")
        kinds = [kind for kind in found if kind is not None]
        if len(kinds) > 1:
            raise ProgramError(f"The JSON schema has several types at {place}: only one, or one and null, can be read.")
        return kinds[0] if kinds else None

    @staticmethod
    def _add(found: list[TypeInformation | None], kind: TypeInformation | None) -> None:
        if kind not in found:
            found.append(kind)

    def _target(self, reference: str, place: str) -> dict[str, Any]:
        if not reference.startswith("#"):
            raise ProgramError(f"{reference!r} at {place} is in another document, which is not read.")
        node = self._root
        for step in [step for step in reference[1:].split("/") if step]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or name not in node:
                raise ProgramError(f"There is no {reference!r} in the JSON schema, which {place} refers to.")
            node = node[name]
        return node if isinstance(node, dict) else {}

    def _referred(self, reference: str, target: dict[str, Any]) -> TypeInformation | None:
        if reference in self._resolving:
            raise ProgramError(f"{reference!r} in the JSON schema refers to itself, which a row type cannot.")
        self._resolving.append(reference)
        try:
            return self.type_of(reference, target)
        finally:
            self._resolving.pop()

    def _of_kind(self, kind: Any, place: str, node: dict[str, Any]) -> TypeInformation | None:
        if kind == "null":
            return None
        if kind == "string":
            return _string_type(place, node)
        if kind == "object":
            return self._object(place, node)
        if kind == "array":
            return self._array(place, node)
        if kind in _SIMPLE:
            return _SIMPLE[kind]()
        raise ProgramError(f"The JSON schema has the type {kind!r} at {place}, which is none.")

    def _object(self, place: str, node: dict[str, Any]) -> TypeInformation:
        if node.get("additionalProperties") is True:
            raise ProgramError(
                f"The JSON schema allows additional properties at {place}, for which rows have no place."
            )
        properties = node.get("properties", {})
        types = [self._some(f"{place}/{name}", child) for name, child in properties.items()]
        return Types.ROW_NAMED(list(properties), types)

    def _some(self, place: str, node: Any) -> TypeInformation:
        # Nothing but null: any type does, and text is the most general one.
        return self.type_of(place, node) or Types.STRING()

    def _array(self, place: str, node: dict[str, Any]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, list):
            if node.get("additionalItems") is True:
                raise ProgramError(f"The JSON schema allows additional items at {place}, for which rows have no place.")
            return Types.ROW([self._some(f"{place}/items[{number}]", item) for number, item in enumerate(items)])
        if not isinstance(items, dict):
            raise ProgramError(f"The JSON schema has an array without 'items' at {place}.")
        element = self._some(f"{place}/items", items)
        plain = isinstance(element, BasicTypeInfo) and element.kind is BasicType.STRING
        return Types.BASIC_ARRAY(element) if plain else Types.OBJECT_ARRAY(element)


def _string_type(place: str, node: dict[str, Any]) -> TypeInformation:
    if "format" in node:
        return _STRING_FORMATS.get(node["format"], Types.STRING)()
    encoding = node.get("contentEncoding")
    if encoding is None:
        return Types.STRING()
    if encoding != "base64":
        raise ProgramError(f"The JSON schema has the encoding {encoding!r} at {place}; only 'base64' can be read.")
    return Types.PRIMITIVE_ARRAY(Types.BYTE())
