"""The Avro schema that Flink derives of a table's columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.errors import ConfigurationError

__all__ = ["avro_schema"]

_NAMESPACE = "org.apache.flink.avro.generated"


def avro_schema(schema: pa.Schema, legacy: bool = True) -> dict[str, Any]:
    """Fields that are not nullable are no unions. ``legacy``: a TIMESTAMP has the type that Avro has for moments.

    >>> avro_schema(pa.schema([pa.field("at", pa.timestamp("ms"))]))["fields"]
    [{'name': 'at', 'type': ['null', {'type': 'long', 'logicalType': 'timestamp-millis'}], 'default': None}]
    """
    return _Deriving(legacy).record(list(schema), "record", _NAMESPACE)


class _Deriving:
    def __init__(self, legacy: bool) -> None:
        self._legacy = legacy

    def record(self, fields: list[pa.Field], name: str, namespace: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "record", "name": name}
        if namespace is not None:
            found["namespace"] = namespace
        found["fields"] = []
        for each in fields:
            kind = self._kind(each.type, f"{name}_{each.name}")
            if each.nullable:
                found["fields"].append({"name": each.name, "type": ["null", kind], "default": None})
            else:
                found["fields"].append({"name": each.name, "type": kind})
        return found

    def _kind(self, kind: pa.DataType, name: str) -> Any:
        kinds = pa.types
        if kinds.is_struct(kind):
            return self.record([kind.field(index) for index in range(kind.num_fields)], name)
        if kinds.is_list(kind):
            return {"type": "array", "items": self._nullable(kind.value_field, name)}
        if kinds.is_map(kind):
            if not kinds.is_string(kind.key_type):
                raise ConfigurationError(f"Avro has maps with keys of text only, got keys of the type {kind.key_type}.")
            return {"type": "map", "values": self._nullable(kind.item_field, name)}
        if kinds.is_timestamp(kind):
            return {"type": "long", "logicalType": self._timestamp(kind)}
        return _simple(kind)

    @staticmethod
    def _nullable(field: pa.Field, name: str) -> Any:
        # In arrays and maps Flink has the former types in any case.
        kind = _Deriving(legacy=True)._kind(field.type, name)
        return ["null", kind] if field.nullable else kind

    def _timestamp(self, kind: pa.DataType) -> str:
        if kind.unit == "ns":
            raise ConfigurationError("Avro has TIMESTAMP and TIMESTAMP_LTZ with up to 6 digits.")
        local = "local-" if kind.tz is None and not self._legacy else ""
        return f"{local}timestamp-{'millis' if kind.unit == 'ms' else 'micros'}"


def _simple(kind: pa.DataType) -> Any:
    kinds = pa.types
    if kinds.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kinds.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if kinds.is_time(kind):
        return {"type": "int", "logicalType": "time-millis"}
    if kinds.is_integer(kind):
        return "long" if kind.bit_width == 64 else "int"
    if kinds.is_floating(kind):
        return "float" if kind == pa.float32() else "double"
    for matches, word in ((kinds.is_boolean, "boolean"), (kinds.is_string, "string"), (kinds.is_binary, "bytes")):
        if matches(kind):
            return word
    raise ConfigurationError(f"Avro has nothing for values of the type {kind}.")
