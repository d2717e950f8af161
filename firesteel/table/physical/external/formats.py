"""Formats by their options, with Flink's names and defaults."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from firesteel.connectors.formats.csv_lines import Dialect
from firesteel.connectors.formats.registry import SchemaRegistry
from firesteel.connectors.table.formats.avro_format import AvroFormat, ConfluentAvroFormat
from firesteel.connectors.table.formats.csv_format import CsvFormat, CsvOptions
from firesteel.connectors.table.formats.debezium_json import DEBEZIUM_METADATA, DebeziumJsonFormat, DebeziumOptions
from firesteel.connectors.table.formats.json_format import JsonFormat, JsonOptions
from firesteel.connectors.table.formats.message_format import MessageFormat
from firesteel.connectors.table.formats.raw_format import RawFormat
from firesteel.errors import ConfigurationError
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import SqlValidationError, near_names

__all__ = ["FORMAT_METADATA", "FORMAT_OPTIONS", "avro_format", "format_options", "message_format"]

_JSON = (
    "fail-on-missing-field",
    "ignore-parse-errors",
    "timestamp-format.standard",
    "map-null-key.mode",
    "map-null-key.literal",
    "encode.decimal-as-plain-number",
    "encode.ignore-null-fields",
)
FORMAT_OPTIONS: dict[str, tuple[str, ...]] = {
    "json": _JSON,
    "csv": (
        "field-delimiter",
        "disable-quote-character",
        "quote-character",
        "allow-comments",
        "ignore-parse-errors",
        "array-element-delimiter",
        "escape-character",
        "null-literal",
        "write-bigdecimal-in-scientific-notation",
    ),
    "raw": ("charset", "endianness"),
    "debezium-json": ("schema-include", *(each for each in _JSON if each != "fail-on-missing-field")),
    "avro": ("encoding", "timestamp_mapping.legacy", "codec"),
    "avro-confluent": ("url", "subject", "schema", "basic-auth.*", "bearer-auth.*", "properties.*"),
    "orc": ("compress", "compress.size", "stripe.size", "row.index.stride", "*"),
    "parquet": ("compression", "utc-timezone", "timestamp.time.unit", "write.int64.timestamp"),
}
"""The options of each format, without its name in front."""


def format_options(formats: tuple[str, ...], prefix: str = "") -> tuple[str, ...]:
    """The options of some formats as a connector has them."""
    return tuple(f"{prefix}{name}.{option}" for name in formats for option in FORMAT_OPTIONS[name])


def format_name(options: TableOptions, known: tuple[str, ...], *keys: str) -> str:
    """The format that one of some options names."""
    for key in keys:
        name = options.text(key)
        if name is not None:
            if name not in known:
                raise SqlValidationError(
                    f"Table {options.path}: there is no format {name!r} here.{near_names(name, known)} "
                    f"There are {', '.join(known)}."
                )
            return name
    raise SqlValidationError(
        f"Table {options.path}: the option {' or '.join(map(repr, keys))} is missing. "
        f"There are the formats {', '.join(known)}."
    )


def message_format(
    name: str, schema: pa.Schema, options: TableOptions, prefix: str = "", metadata: dict[str, str] | None = None
) -> MessageFormat:
    """A format with the options that begin with its name. ``metadata``: columns of what the format knows of a message
    beside its rows."""
    try:
        if metadata:
            return _debezium(schema, options, f"{prefix}{name}.", metadata)
        return _FORMATS[name](schema, options, f"{prefix}{name}.")
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {options.path}: {error}") from None


def _json_options(options: TableOptions, prefix: str) -> JsonOptions:
    required = options.boolean(f"{prefix}fail-on-missing-field", False)
    ignoring = options.boolean(f"{prefix}ignore-parse-errors", False)
    if required and ignoring:
        raise SqlValidationError(
            f"Table {options.path}: {prefix}fail-on-missing-field and {prefix}ignore-parse-errors cannot both be true."
        )
    return JsonOptions(
        required,
        ignoring,
        options.choice(f"{prefix}timestamp-format.standard", ("SQL", "ISO-8601"), "SQL") == "ISO-8601",
        options.choice(f"{prefix}map-null-key.mode", ("FAIL", "DROP", "LITERAL"), "FAIL"),
        options.text(f"{prefix}map-null-key.literal", "null") or "",
        options.boolean(f"{prefix}encode.decimal-as-plain-number", False),
        options.boolean(f"{prefix}encode.ignore-null-fields", False),
    )


def _json(schema: pa.Schema, options: TableOptions, prefix: str) -> MessageFormat:
    return JsonFormat(schema, _json_options(options, prefix))


def _debezium(
    schema: pa.Schema, options: TableOptions, prefix: str, metadata: dict[str, str] | None = None
) -> MessageFormat:
    included = options.boolean(f"{prefix}schema-include", False)
    return DebeziumJsonFormat(schema, DebeziumOptions(included, _json_options(options, prefix)), metadata)


FORMAT_METADATA = {"debezium-json": {key: kind for key, (kind, _) in DEBEZIUM_METADATA.items()}}
"""What formats know of a message beside its rows."""


def _csv(schema: pa.Schema, options: TableOptions, prefix: str) -> MessageFormat:
    quoteless = options.boolean(f"{prefix}disable-quote-character", False)
    if quoteless and f"{prefix}quote-character" in options:
        raise SqlValidationError(
            f"Table {options.path}: {prefix}quote-character is set, and {prefix}disable-quote-character says "
            "that there is none."
        )
    dialect = Dialect(
        _character(options, f"{prefix}field-delimiter", ",") or ",",
        None if quoteless else _character(options, f"{prefix}quote-character", '"'),
        _character(options, f"{prefix}escape-character", None),
        options.text(f"{prefix}null-literal"),
        options.text(f"{prefix}array-element-delimiter", ";") or "",
        comments=options.boolean(f"{prefix}allow-comments", False),
    )
    return CsvFormat(
        schema,
        CsvOptions(
            dialect,
            options.boolean(f"{prefix}ignore-parse-errors", False),
            options.boolean(f"{prefix}write-bigdecimal-in-scientific-notation", True),
        ),
    )


def _character(options: TableOptions, key: str, default: str | None) -> str | None:
    """A single character, which may be written as Java escapes it."""
    value = options.text(key, default)
    if value is None:
        return None
    unescaped = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\", "\\0": "\0"}.get(value, value)
    if len(unescaped) == 6 and unescaped.startswith("\\u"):
        unescaped = chr(int(unescaped[2:], 16))
    if len(unescaped) != 1:
        raise options.refused(key, "a single character")
    return unescaped


def _raw(schema: pa.Schema, options: TableOptions, prefix: str) -> MessageFormat:
    return RawFormat(
        schema,
        options.text(f"{prefix}charset", "UTF-8") or "UTF-8",
        options.choice(f"{prefix}endianness", ("big-endian", "little-endian"), "big-endian"),
    )


def _avro(schema: pa.Schema, options: TableOptions, prefix: str) -> MessageFormat:
    return avro_format(schema, options, prefix, options.choice(f"{prefix}encoding", ("binary", "json"), "binary"))


def avro_format(schema: pa.Schema, options: TableOptions, prefix: str, encoding: str = "binary") -> AvroFormat:
    """Records of Avro, for messages and for files."""
    return AvroFormat(schema, encoding, options.boolean(f"{prefix}timestamp_mapping.legacy", True))


def _confluent(schema: pa.Schema, options: TableOptions, prefix: str) -> MessageFormat:
    given = options.below(f"{prefix}properties.")
    for key, known in (("basic-auth.user-info", "basic.auth.user.info"), ("bearer-auth.token", "bearer.auth.token")):
        value = options.text(f"{prefix}{key}")
        if value is not None:
            given[known] = value
    source = options.text(f"{prefix}basic-auth.credentials-source")
    if source is not None:
        given["basic.auth.credentials.source"] = source
    registry = SchemaRegistry(options.required(f"{prefix}url"), given)
    subject = options.text(f"{prefix}subject") or _default_subject(options, prefix)
    return ConfluentAvroFormat(schema, registry, subject, options.text(f"{prefix}schema"))


def _default_subject(options: TableOptions, prefix: str) -> str | None:
    """The topic's name and which part of the record it is."""
    topic = options.text("topic")
    return None if topic is None or ";" in topic else f"{topic}-{'key' if prefix.startswith('key.') else 'value'}"


_FORMATS: dict[str, Callable[[pa.Schema, TableOptions, str], MessageFormat]] = {
    "json": _json,
    "csv": _csv,
    "raw": _raw,
    "debezium-json": _debezium,
    "avro": _avro,
    "avro-confluent": _confluent,
}
