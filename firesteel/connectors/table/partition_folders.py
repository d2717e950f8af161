"""Partitions of a table as folders: ``city=Rome/day=2024-01-01``, as Hive has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.connectors.table.formats.text_columns import UnreadableText, column_of_texts, texts_of_column
from firesteel.errors import InputError
from firesteel.runtime.columns.kinds import KIND, has_kinds

__all__ = ["DEFAULT_NAME", "FolderBatch", "FolderSplitter", "folder_values", "partition_values"]

DEFAULT_NAME = "__DEFAULT_PARTITION__"
"""The folder of NULL and of the empty text."""

_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")


class FolderBatch(NamedTuple):
    """Rows for one folder."""

    folder: str
    batch: pa.RecordBatch


def escaped(text: str) -> str:
    """A value as the name of a folder.

    >>> escaped("a/b=c d")
    'a%2Fb%3Dc d'
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


class FolderSplitter:
    """Shares the rows of a batch out to folders, which have the values of the partition's columns in their names."""

    def __init__(self, schema: pa.Schema, partitions: Sequence[str], default: str = DEFAULT_NAME) -> None:
        self._partitions, self._default = tuple(partitions), default
        self._rest = [name for name in schema.names if name not in partitions]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[FolderBatch]:
        if not self._partitions:
            yield FolderBatch("", batch)
            return
        folders = pc.binary_join_element_wise(*[self._names(batch, name) for name in self._partitions], "/")
        found = folders.dictionary_encode()
        rest = batch.select([*self._rest, KIND] if has_kinds(batch.schema) else self._rest)
        if len(found.dictionary) == 1:
            yield FolderBatch(found.dictionary[0].as_py(), rest)
            return
        for code, folder in enumerate(found.dictionary.to_pylist()):
            yield FolderBatch(folder, rest.filter(pc.equal(found.indices, code)))

    def _names(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = batch.column(name)
        # Decimals keep the digits of their type.
        shown_as = column.cast(pa.string()) if pa.types.is_decimal(column.type) else texts_of_column(column)
        texts = shown_as.dictionary_encode()
        values = [escaped(text) if text else self._default for text in texts.dictionary.to_pylist()]
        shown = pa.DictionaryArray.from_arrays(texts.indices, pa.array(values, pa.string())).cast(pa.string())
        return pc.binary_join_element_wise(f"{escaped(name)}=", pc.fill_null(shown, self._default), "")


def folder_values(folder: str) -> list[str]:
    """The texts that a folder of :class:`FolderSplitter` has for its columns.

    >>> folder_values("city=Rome/at=10%3A00")
    ['Rome', '10:00']
    """
    return [unquote(part.partition("=")[2]) for part in folder.split("/")]


def partition_values(
    path: str, partitions: Sequence[str], schema: pa.Schema, default: str = DEFAULT_NAME
) -> dict[str, pa.Scalar]:
    """The values of a partition's columns that the path of a file says.

    >>> schema = pa.schema([("day", pa.date32()), ("n", pa.int32())])
    >>> partition_values("/t/day=2024-01-01/n=3/part-0", ["day", "n"], schema)["n"]
    <pyarrow.Int32Scalar: 3>
    """
    there = {}
    for part in path.split("/")[:-1]:
        name, sign, value = part.partition("=")
        if sign:
            there[unquote(name)] = unquote(value)
    found = {}
    for name in partitions:
        if name not in there:
            raise InputError(f"{path} is in no folder {name}=…, and the table is partitioned by {name}.")
        kind = schema.field(name).type
        if there[name] == default:
            found[name] = pa.scalar(None, kind)
            continue
        try:
            found[name] = column_of_texts(pa.array([there[name]]), kind)[0]
        except UnreadableText:
            raise InputError(f"{path}: {name}={there[name]} is not a value of the type {kind}.") from None
    return found
