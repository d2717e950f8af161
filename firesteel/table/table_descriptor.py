"""A table of a connector, described by a program instead of CREATE TABLE."""

from __future__ import annotations

from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.declarations import shown_options
from firesteel.table.schema import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


def _key(option: Any) -> str:
    """An option's name; a ConfigOption has it."""
    if isinstance(option, str):
        return option
    name = getattr(option, "key", None)
    found = name() if callable(name) else name
    if isinstance(found, str):
        return found
    raise ProgramError(f"An option is named by a text, got {short_repr(option, 60)}.")


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FormatDescriptor:
    """A format and its options.

    >>> str(FormatDescriptor.for_format("json").option("ignore-parse-errors", True).build())
    'json[{ignore-parse-errors=true}]'
    """

    def __init__(self, name: str, options: dict[str, str]) -> None:
        self._name, self._options = name, options

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """A builder."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Its name."""
        return self._name

    def get_options(self) -> dict[str, str]:
        """Its options, without its name in front."""
        return dict(self._options)

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value}" for key, value in shown_options(self._options).items())
        return f"{self._name}[{{{shown}}}]"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FormatDescriptor):
            return NotImplemented
        return (self._name, self._options) == (other._name, other._options)

    def __hash__(self) -> int:
        return hash((self._name, tuple(sorted(self._options.items()))))

    class Builder:
        """Collects options."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._options: dict[str, str] = {}

        def option(self, key: Any, value: Any) -> FormatDescriptor.Builder:
            """An option, without the format's name in front."""
            self._options[_key(key)] = _value(value)
            return self

        def build(self) -> FormatDescriptor:
            """The descriptor."""
            return FormatDescriptor(self._name, dict(self._options))


class TableDescriptor:
    """Made by :meth:`for_connector`.

    >>> descriptor = (
    ...     TableDescriptor.for_connector("filesystem")
    ...     .schema(Schema.new_builder().column("id", "BIGINT").build())
    ...     .option("path", "/data/orders")
    ...     .format(FormatDescriptor.for_format("csv").option("field-delimiter", ";").build())
    ...     .build()
    ... )
    >>> descriptor.get_options()
    {'connector': 'filesystem', 'path': '/data/orders', 'format': 'csv', 'csv.field-delimiter': ';'}
    """

    def __init__(
        self, schema: Schema | None, options: dict[str, str], partitions: tuple[str, ...], comment: str | None
    ) -> None:
        self._schema, self._options, self._partitions, self._comment = schema, options, partitions, comment

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """A builder."""
        return TableDescriptor.Builder().option("connector", connector)

    def get_schema(self) -> Schema | None:
        """Columns, watermark and key; None: those of what is written into it."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """All options."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """The columns that it is partitioned by."""
        return list(self._partitions)

    def get_comment(self) -> str | None:
        """What is said about it."""
        return self._comment

    def __str__(self) -> str:
        lines = [str(self._schema) if self._schema is not None else "()"]
        if self._comment is not None:
            lines.append(f"COMMENT '{self._comment}'")
        if self._partitions:
            lines.append(f"PARTITIONED BY ({', '.join(f'`{name}`' for name in self._partitions)})")
        safe = sorted(shown_options(self._options).items())
        options = ",\n".join(f"  '{key}' = '{value}'" for key, value in safe)
        return "\n".join([*lines, f"WITH (\n{options}\n)"])

    __repr__ = __str__

    def _parts(self) -> tuple[Any, ...]:
        return self._schema, tuple(sorted(self._options.items())), self._partitions, self._comment

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, TableDescriptor) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    class Builder:
        """Collects what a table is made of."""

        def __init__(self) -> None:
            self._schema: Schema | None = None
            self._options: dict[str, str] = {}
            self._partitions: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Columns, watermark and key."""
            if not isinstance(schema, Schema):
                raise ProgramError(f"schema() takes a Schema, got {short_repr(schema, 60)}.")
            self._schema = schema
            return self

        def option(self, key: Any, value: Any) -> TableDescriptor.Builder:
            """An option of the connector."""
            self._options[_key(key)] = _value(value)
            return self

        def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptor.Builder:
            """The format; ``format_option`` is the option that names it, such as ``key.format``."""
            key = "format" if format_option is None else _key(format_option)
            if isinstance(format, str):
                self._options[key] = format
                return self
            self._options[key] = format.get_format()
            prefix = f"{key.removesuffix('format')}{format.get_format()}."
            self._options.update({f"{prefix}{name}": value for name, value in format.get_options().items()})
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """The columns that it is partitioned by."""
            self._partitions = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Something about it."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """The descriptor."""
            return TableDescriptor(self._schema, dict(self._options), self._partitions, self._comment)
