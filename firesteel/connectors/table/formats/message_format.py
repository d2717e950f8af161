"""The port of formats: messages, which are bytes, as batches of rows, and batches as messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.errors import FailureKind, InputError, short_repr

__all__ = ["BadMessage", "Decoded", "MessageFormat", "NarrowFormat", "kept_rows"]

Places = npt.NDArray[np.int64]


class BadMessage(InputError):
    """A message that a format cannot read. Whoever knows where it came from says so."""

    kind = FailureKind.PERMANENT

    def __init__(self, index: int, reason: str, message: Any) -> None:
        self.index, self.reason = index, reason
        super().__init__(f"message {index + 1} of a batch: {reason}. It is {short_repr(message, 120)}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return InputError, (str(self),)


class Decoded(NamedTuple):
    """Rows of messages."""

    batch: pa.RecordBatch
    """With kinds where the format has them."""
    origins: Places | None = None
    """Which message each row came from; None: one row for each, in order."""


class MessageFormat(ABC):
    """One format with its options and columns. It is pickled."""

    schema: pa.Schema
    changelog: bool = False
    """Whether messages say what they do to the table: then rows have kinds."""

    @abstractmethod
    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        """The rows of some messages. None stands for a message without content, which has no row in most formats."""

    def narrowed(self, asked: Collection[str]) -> MessageFormat:
        """The same format where only some columns are asked for: it need not read the others, which may be NULL."""
        return self

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """A message for each row, None for one without content. A batch may have kinds; formats without changelog pass
        over them."""


class NarrowFormat(MessageFormat):
    """A format that reads some of a table's columns. The others are NULL."""

    def __init__(self, inner: MessageFormat, schema: pa.Schema) -> None:
        self._inner, self.schema, self.changelog = inner, schema, inner.changelog
        self._places = [inner.schema.get_field_index(name) for name in schema.names]

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        rows, origins = self._inner.decode(messages)
        arrays = [
            rows.column(place) if place >= 0 else pa.nulls(rows.num_rows, column.type)
            for place, column in zip(self._places, self.schema, strict=True)
        ]
        return Decoded(pa.RecordBatch.from_arrays(arrays, schema=self.schema), origins)

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        raise AssertionError("it is for reading")


def kept_rows(messages: Sequence[bytes | None]) -> tuple[list[bytes], Places | None]:
    """The messages that have content, and where they stand; None if that is all of them."""
    if None not in messages:
        return list(messages), None  # type: ignore[arg-type]
    places = [at for at, message in enumerate(messages) if message is not None]
    return [message for message in messages if message is not None], np.array(places, np.int64)
