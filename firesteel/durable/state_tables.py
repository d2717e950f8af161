"""How the state of an operator is shown as tables: names and types of columns, and where each is in a stored row.

The states of queries are stored as tuples without names. A *description* says what they are, so that somebody who reads
a savepoint sees columns. It is plain data, in a file of its own beside the manifest: state is restored without it, and
a savepoint that has none, or a newer one than this version knows, is shown as it is stored.

A stored row is made flat first, which its *shape* says, then each column takes what it is made of by its places:

| shape | a flat row |
|---|---|
| columns | the columns of the key, what the row is known by besides, the stored values |
| events | the columns of the key, a time, the fields of an event: for each event that waits |
| matches | the columns of the key, the match's number and state, a variable, a time, the fields of an event |
| timers | the columns of the key, the time |

Where a value is a list of rows that is *unnested*, there is a flat row for each of them: behind the stored values its
position, from 1, and its fields.

| form of a column | from what to what |
|---|---|
| value | it is what is stored |
| text | as text: no SQL type has such values |
| moment | milliseconds to a time; a second number is added before |
| kept | a value as numbers have it (times as whole numbers, booleans as 0 and 1), and whether it is not NULL |
| unscaled | the same; decimals are whole numbers of their last digit |
| kind | the number of a row's kind to +I, -U, +U or -D |
| result | the state of an aggregate function to its result |
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from firesteel.durable.versions import STATE_TABLES

__all__ = ["ROLES", "OperatorTables", "ShownCall", "ShownColumn", "StateTable", "tables_from_json", "tables_to_json"]

ROLES: Final = ("key", "window", "place", "row", "aggregate", "accumulator", "time", "count")
"""What a column is of, in the order of columns. A *place* is where a row stands: in an order, or in a match. An
*aggregate* is the result of a function, an *accumulator* a part of its state. A *count* is what else is known about a
row: how often it is there, when it came."""


@dataclass(frozen=True)
class ShownCall:
    """An aggregate function, as far as its result depends on it."""

    function: str
    type: str
    """Of the result, in SQL."""
    argument: str | None
    """The type of the argument, in SQL; None: it has none."""
    options: tuple[Any, ...] = ()
    retracts: bool = False
    """Whether rows may be taken back: then it may keep other values."""


@dataclass(frozen=True)
class ShownColumn:
    """One column of a table."""

    name: str
    type: str
    """In SQL."""
    role: str
    """One of :data:`ROLES`."""
    at: tuple[int, ...]
    """Where in the flat row that is which it is made of."""
    form: str = "value"
    call: ShownCall | None = None
    """Of a result."""
    shift: int = 0
    """Of a moment: milliseconds that are added."""


@dataclass(frozen=True)
class StateTable:
    """One state as a table."""

    state: str
    """Its name."""
    meaning: str
    """What a row is."""
    columns: tuple[ShownColumn, ...]
    shape: str = "columns"
    unnested: int | None = None
    """Where the list is that is unnested."""


@dataclass(frozen=True)
class OperatorTables:
    """All states of an operator."""

    meaning: str
    """What the operator does, as an execution plan says it."""
    key: tuple[ShownColumn, ...]
    """The columns of the key that its input is partitioned by."""
    states: tuple[StateTable, ...]

    def state(self, name: str) -> StateTable | None:
        """The table of a state, if it is described."""
        return next((one for one in self.states if one.state == name), None)


def tables_to_json(operators: dict[str, OperatorTables]) -> str:
    """The file's content: tables by the uid of their operator.

    >>> key = ShownColumn("word", "STRING", "key", (0,))
    >>> groups = StateTable("groups", "a group", (key,))
    >>> known = {"counts": OperatorTables("GroupAggregate(groupBy=[word])", (key,), (groups,))}
    >>> tables_from_json(tables_to_json(known)) == known
    True
    """
    content = {"format": STATE_TABLES.version, "operators": {uid: asdict(one) for uid, one in operators.items()}}
    return json.dumps(content, indent=1) + "\n"


def tables_from_json(text: str) -> dict[str, OperatorTables]:
    """What a file says; nothing where it is of a version that is not known here. Raises ValueError where it is none."""
    content = json.loads(text)
    try:
        if STATE_TABLES.refusal(content["format"]) is not None:
            return {}
        return {uid: _operator(entry) for uid, entry in content["operators"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks something or has too much: {error}") from None


def _operator(entry: dict[str, Any]) -> OperatorTables:
    states = tuple(
        StateTable(one["state"], one["meaning"], _columns(one["columns"]), one["shape"], one["unnested"])
        for one in entry["states"]
    )
    return OperatorTables(entry["meaning"], _columns(entry["key"]), states)


def _columns(entries: Iterable[dict[str, Any]]) -> tuple[ShownColumn, ...]:
    return tuple(
        ShownColumn(**{**entry, "at": tuple(entry["at"]), "call": None if entry["call"] is None else _call(entry)})
        for entry in entries
    )


def _call(entry: dict[str, Any]) -> ShownCall:
    return ShownCall(**{**entry["call"], "options": tuple(entry["call"]["options"])})
