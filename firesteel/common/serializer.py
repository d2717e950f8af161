"""The contract of serializers that users write, for windows of their own for instance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

__all__ = ["TypeSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values of one kind to a stream of bytes and reads them back. Stateless."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes a value."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Reads a value."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
