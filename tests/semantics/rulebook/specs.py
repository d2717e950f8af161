"""What the library's operators are to do."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.datastream import OutputTag


@dataclass(frozen=True)
class Scale:
    """Each number times a factor."""

    factor: int


@dataclass(frozen=True)
class Apart(Scale):
    """The same; odd numbers go to a side output."""

    odd: OutputTag


@dataclass(frozen=True)
class Deduplicate:
    """The first record of a key, again once event time has gone on so many milliseconds; then it says so."""

    milliseconds: int


@dataclass(frozen=True)
class Join:
    """Each record of one input with all of the other one that came before it."""


@dataclass(frozen=True)
class Rules:
    """Numbers below the limit that the second input has set for all keys, and how many its key had so far."""


@dataclass(frozen=True)
class Tally:
    """How many records each key has had, once a micro-batch."""

    prepared: bool
    """Whether the states of a batch's keys are read at once."""


@dataclass(frozen=True)
class Largest:
    """The largest number so far, whenever event time goes on. Without keys, and forgotten after a failure."""


@dataclass(frozen=True)
class Progress:
    """The watermarks that came by, and how many records there were until then."""
