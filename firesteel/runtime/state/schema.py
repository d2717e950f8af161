"""What is known of a state besides its entries: kept in the header, so that who reads a checkpoint can decode it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state import StateDescriptor

__all__ = ["UNDECLARED", "StateSchema", "schema_of"]


@dataclass(frozen=True)
class StateSchema:
    """How a state's entries are built.

    >>> from firesteel.datastream.state import MapStateDescriptor
    >>> schema = schema_of(MapStateDescriptor("prices", Types.STRING(), Types.DOUBLE()))
    >>> schema.text, schema.shape, schema.columns
    ('map state of MAP<STRING, DOUBLE>', 'map', (STRING, DOUBLE))
    """

    kind: str
    """What the user declared: value, list, map, reducing, aggregating."""
    type: TypeInformation
    expires: bool = False

    @property
    def text(self) -> str:
        expiring = " with a time to live" if self.expires else ""
        return f"{self.kind} state of {self.type}{expiring}"

    @property
    def shape(self) -> str:
        """How an entry is built: one value, a list, or a map."""
        return self.kind if self.kind in ("list", "map") else "value"

    @property
    def columns(self) -> tuple[TypeInformation, ...]:
        """The types of the parts of a row: of the value or element, or of a map's key and value."""
        declared: Any = self.type
        if self.kind == "list":
            return (declared.elem_type,)
        if self.kind == "map":
            return declared._key_type_info, declared._value_type_info
        return (declared,)


UNDECLARED = StateSchema("value", Types.PICKLED_BYTE_ARRAY())
"""Of what operators keep for themselves."""


def schema_of(descriptor: StateDescriptor) -> StateSchema:
    kind = type(descriptor).__name__.removesuffix("StateDescriptor").lower()
    config = descriptor.ttl_config
    return StateSchema(kind, descriptor.type_info, config is not None and config.is_enabled())
