"""The header of a subtask's store as typed records. :mod:`firesteel.durable.header_codec` makes plain data of them.

A header is read when a batch begins and written when it ends. The records of an operator are its memory in between:
tables and timers change the dicts and sets in them in place. ``shapes`` belong to the tables, each of which knows what
is in its own (:class:`LogShape`, :class:`PagesShape`, :class:`SlotsShape`, :class:`SlotPagesShape`);
all of it is plain data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from firesteel.common.typeinfo import TypeInformation, Types

__all__ = [
    "COLUMN_BACKENDS",
    "UNDECLARED",
    "KeysHeader",
    "ListHeader",
    "LogShape",
    "OperatorHeader",
    "PagesShape",
    "SlotPagesShape",
    "SlotsShape",
    "StateHeader",
    "StateSchema",
    "StoreHeader",
    "TablesHeader",
    "ValveHeader",
]

LogShape = TypedDict(
    "LogShape",
    {"segments": dict[int, int], "segment bytes": dict[int, int], "bytes": int, "last": int},
    total=False,
)
"""What a log of changes says of itself: entries and bytes of each segment, from old to new; bytes of all; the number of
the newest one."""


class PagesShape(TypedDict, total=False):
    entries: int
    pages: int
    bytes: int
    largest: int
    swept: int


"""What a table in pages says of itself: how many entries, pages and bytes there are; how many entries a page may have,
where that is limited; the page that is looked through next for expired entries."""


SlotsShape = TypedDict(
    "SlotsShape",
    {
        "segments": dict[int, int],
        "segment bytes": dict[int, int],
        "bytes": int,
        "last": int,
        "keys": int,
        "places": bool,
    },
    total=False,
)
"""What a table of columns says of itself: as a log; how many columns the key of the stream has; whether a row's place
is a tuple that begins with that key."""


class SlotPagesShape(TypedDict, total=False):
    pages: int
    entries: int
    bytes: int
    swept: int
    schema: bytes
    keys: int
    places: bool


"""What a table of columns in pages says of itself: as one in pages; the columns of a page, as an Arrow schema."""


COLUMN_BACKENDS: Final[tuple[str, ...]] = ("columnar", "columnar pages")
"""What :attr:`StateHeader.backend` is of tables of columns: of those with a log, and of those in pages. A version that
does not know one of them refuses such state."""


@dataclass(frozen=True)
class StateSchema:
    """How a state's entries are built.

    >>> schema = StateSchema("map", Types.MAP(Types.STRING(), Types.DOUBLE()))
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
            return declared.get_key_type_info(), declared.get_value_type_info()
        return (declared,)


UNDECLARED: Final = StateSchema("value", Types.PICKLED_BYTE_ARRAY())
"""Of what operators keep for themselves."""


@dataclass(frozen=True, slots=True)
class KeysHeader:
    """How a keyed operator builds its state."""

    type: TypeInformation | None
    """The declared type of the keys."""
    layout: str
    timers_of: str
    """Whose timers are: key, window or place."""


@dataclass(slots=True)
class StateHeader:
    """One keyed state: which backend keeps it, how its entries are built, what its tables say of themselves."""

    backend: str | None = None
    schema: StateSchema | None = None
    """None of what operators keep for themselves."""
    shapes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the table: entries, blocks."""


@dataclass(slots=True)
class TablesHeader:
    """The keyed states of one backend."""

    states: dict[str, StateHeader] = field(default_factory=dict)
    last_collection: int = -1
    """The number of the last big collection."""


@dataclass(slots=True)
class ListHeader:
    """One state of an operator that belongs to no key."""

    mode: str
    """split, union, raw or broadcast."""
    schema: StateSchema | None = None
    cells: int = 0
    pieces: list[int] | None = None
    """Of raw state that came from several former subtasks: how many bytes each had."""
    shape: dict[str, Any] | None = None
    """Of a broadcast state: what its log says of itself."""


@dataclass(slots=True)
class ValveHeader:
    """Watermarks of an operator's inputs, by (exchange, upstream subtask, origin)."""

    watermark: int | None = None
    levels: dict[tuple[int, int, int], int] = field(default_factory=dict)
    idle: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    """Inputs without records lately: since when, and after how long they count as idle."""


@dataclass(slots=True)
class OperatorHeader:
    """What one operator keeps besides its cells."""

    keys: KeysHeader | None = None
    restored_layout: str | None = None
    """How the state was built that a savepoint has brought, until the operator has seen it."""
    valve: ValveHeader = field(default_factory=ValveHeader)
    tables: TablesHeader = field(default_factory=TablesHeader)
    windows: TablesHeader = field(default_factory=TablesHeader)
    event_timers: set[int] = field(default_factory=set)
    """The stretches of about 17 minutes that have timers."""
    processing_timers: set[int] = field(default_factory=set)
    lists: dict[str, ListHeader] = field(default_factory=dict)
    event_time: dict[str, Any] = field(default_factory=dict)
    """Of an operator that assigns watermarks: how far it is."""


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What one subtask of a stage keeps."""

    token: bytes | None = None
    """Of the attempt that wrote it."""
    operators: dict[str, OperatorHeader] = field(default_factory=dict)
    """By uid."""

    def operator(self, uid: str) -> OperatorHeader:
        """The header of an operator, a new one where there is none yet."""
        found = self.operators.get(uid)
        if found is None:
            found = self.operators[uid] = OperatorHeader()
        return found
