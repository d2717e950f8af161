"""The identity of a job."""

from __future__ import annotations

import re
import uuid

from firesteel.errors import ProgramError

__all__ = ["JobID"]

_HEX = re.compile("[0-9a-f]{32}")


class JobID:
    """Sixteen bytes, shown as 32 hexadecimal digits; random unless given.

    >>> print(JobID("000102030405060708090a0b0c0d0e0f"))
    000102030405060708090a0b0c0d0e0f
    """

    __slots__ = ("_hex",)

    def __init__(self, hex_string: str | None = None) -> None:
        self._hex = uuid.uuid4().hex if hex_string is None else hex_string.lower()
        if not _HEX.fullmatch(self._hex):
            raise ProgramError(f"A job ID has 32 hexadecimal digits, got {hex_string!r}.")

    @staticmethod
    def from_hex_string(hex_string: str) -> JobID:
        """The ID with these digits."""
        return JobID(hex_string)

    def to_hex_string(self) -> str:
        """The 32 digits."""
        return self._hex

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID({self._hex!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)
