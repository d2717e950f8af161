"""All state of an operator under test, to be put aside and restored from."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import decode_header
from firesteel.durable.headers import OperatorHeader
from firesteel.errors import ProgramError

__all__ = ["Snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """What an operator had kept when a batch ended: keyed state, operator state, timers, watermarks, the clock.

    Plain data that can be pickled, to be saved as a file for instance: then a test can tell whether a later version of
    the function still reads what an earlier one wrote.
    """

    operator: str
    uid: str
    backend: str
    parallelism: int
    subtask: int
    processing_time: int
    cells: dict[bytes, bytes] = field(repr=False)
    """All that the state store holds."""

    def header(self) -> OperatorHeader:
        """What the operator keeps besides keyed state."""
        return decode_header(self.cells[HEADER]).operator(self.uid)

    def check(self, operator: str, uid: str, backend: str, parallelism: int, subtask: int) -> None:
        """Refuses an operator that would not find its state here."""
        if uid != self.uid:
            raise ProgramError(
                f"The snapshot was taken of operator {self.operator!r}, but the harness runs {operator!r}. "
                "Restore it into a harness of the same kind of function."
            )
        if backend != self.backend:
            raise ProgramError(
                f"The snapshot was taken with the backend {self.backend!r}, but the harness has {backend!r}. "
                f"Pass backend={self.backend!r}."
            )
        if (parallelism, subtask) != (self.parallelism, self.subtask):
            raise ProgramError(
                f"The snapshot is of subtask {self.subtask} of {self.parallelism}, but the harness is subtask "
                f"{subtask} of {parallelism}. A harness does not rescale."
            )
