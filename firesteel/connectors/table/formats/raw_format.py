"""The format ``raw``: a message is one value, in binary as Java writes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from firesteel.connectors.table.formats.message_format import BadMessage, Decoded, MessageFormat, kept_rows
from firesteel.errors import ConfigurationError

__all__ = ["RawFormat"]


class RawFormat(MessageFormat):
    """Takes tables with one column of text, bytes, numbers or truth values.

    >>> form = RawFormat(pa.schema([("n", pa.int16())]))
    >>> form.encode(pa.record_batch({"n": pa.array([258], pa.int16())}))
    [b'\\x01\\x02']
    """

    def __init__(self, schema: pa.Schema, charset: str = "UTF-8", endianness: str = "big-endian") -> None:
        if len(schema) != 1:
            raise ConfigurationError(
                f"The format raw is for one column, there are {len(schema)}: {', '.join(schema.names)}."
            )
        self.schema, self._charset = schema, charset
        self._order = ">" if endianness == "big-endian" else "<"
        kind = schema.field(0).type
        fixed = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        if not (fixed or pa.types.is_string(kind) or pa.types.is_binary(kind)):
            raise ConfigurationError(f"The format raw has nothing for {schema.field(0).name!r} of the type {kind}.")
        self._fixed = np.dtype(kind.to_pandas_dtype()).newbyteorder(self._order) if fixed else None

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        values, places = kept_rows(messages)
        kind = self.schema.field(0).type
        if self._fixed is not None:
            size = self._fixed.itemsize
            for index, value in enumerate(values):
                if len(value) != size:
                    raise BadMessage(index, f"{kind} has {size} bytes, the message {len(value)}", value)
            native = np.frombuffer(b"".join(values), self._fixed).astype(self._fixed.newbyteorder("="))
            column = pa.array(native, kind)
        elif pa.types.is_string(kind):
            try:
                column = pa.array([value.decode(self._charset, "replace") for value in values], kind)
            except LookupError:
                raise ConfigurationError(f"raw.charset: there is no character set {self._charset!r}.") from None
        else:
            column = pa.array(values, kind)
        if places is not None:
            # A message without content is a value, too: NULL.
            found: list[int | None] = [None] * len(messages)
            for number, place in enumerate(places.tolist()):
                found[place] = number
            column = column.take(pa.array(found, pa.int64()))
        return Decoded(pa.RecordBatch.from_arrays([column], schema=self.schema))

    def encode(self, batch: pa.RecordBatch) -> list[bytes | None]:
        column = batch.column(0)
        if self._fixed is not None:
            if column.null_count:
                return [None if one is None else np.array(one, self._fixed).tobytes() for one in column.to_pylist()]
            whole = column.to_numpy(zero_copy_only=False).astype(self._fixed).tobytes()
            size = self._fixed.itemsize
            return [whole[at : at + size] for at in range(0, len(whole), size)]
        if pa.types.is_string(column.type):
            return [None if one is None else one.encode(self._charset) for one in column.to_pylist()]
        found: list[bytes | None] = column.to_pylist()
        return found
