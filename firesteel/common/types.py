"""Rows: records with positions, and names if they have been given some."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from firesteel.durable.names import stored_as

__all__ = ["Row", "RowKind", "make_row", "make_rows"]


class RowKind(Enum):
    """What a row says about a changing table.

    >>> print(*RowKind)
    +I -U +U -D
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _KIND_TEXTS[self.value]


_KIND_TEXTS = ("+I", "-U", "+U", "-D")
_KINDS = tuple(RowKind)
_INSERT = RowKind.INSERT


@stored_as("row_kind")
def _row_kind(number: int) -> RowKind:
    return _KINDS[number]


def _reduce_kind(kind: RowKind) -> tuple[Any, ...]:
    return _row_kind, (kind.value,)


copyreg.pickle(RowKind, _reduce_kind)


class Row:
    """A record whose fields have positions and, optionally, names.

    >>> Row("Ada", 36)
    <Row('Ada', 36)>
    >>> ada = Row(name="Ada", age=36)
    >>> ada.name, ada["age"], ada[0]
    ('Ada', 36, 'Ada')

    A row of names is a template; calling it makes rows with those names:

    >>> Person = Row("name", "age")
    >>> Person("Ada", 36) == ada
    True

    Rows that compare equal hash equal, so a row can be a key, provided that nobody changes it meanwhile.
    """

    # Slots make rows small, and setting any other attribute an error: fields are set as row["name"] = value.
    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("A Row takes either positional or named values, not both.")
            self._fields = tuple(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of the given kind.

        >>> print(Row.of_kind(RowKind.DELETE, 1).get_row_kind())
        -D
        """
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The row's fields by name; rows inside it too, if ``recursive``.

        >>> Row(a=1, b=Row(c=2)).as_dict(recursive=True)
        {'a': 1, 'b': {'c': 2}}
        """
        if self._fields is None:
            raise TypeError(f"{self!r} has no field names; give it some with set_field_names() first.")
        values = [_plain(value) for value in self._values] if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """What the row says about a changing table."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Sets what the row says about a changing table."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: Iterable[str]) -> None:
        """Names the fields, in the order of their positions."""
        self._fields = tuple(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values in the order of ``names``; in the order of positions if the row has no names.

        >>> Row(a=1, b=2).get_fields_by_names(["b", "a"])
        [2, 1]
        """
        if self._fields is None or self._fields == tuple(names):
            return self._values
        missing = [name for name in names if name not in self._fields]
        if missing:
            raise ValueError(f"No fields {missing} in a row with the fields {list(self._fields)}.")
        return [self._values[self._fields.index(name)] for name in names]

    def _is_retract_msg(self) -> bool:
        return self._row_kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE)

    def _is_accumulate_msg(self) -> bool:
        return not self._is_retract_msg()

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} fields, got {len(args)} values: {args!r}.")
        return make_row(tuple(self._values), list(args), self._row_kind)

    def __contains__(self, item: Any) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def _index(self, name: str) -> int:
        try:
            return (self._fields or ()).index(name)
        except ValueError:
            known = "no field names" if self._fields is None else f"the fields {list(self._fields)}"
            raise ValueError(f"No field {name!r} in a row with {known}.") from None

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | slice):
            return self._values[item]
        return self._values[self._index(item)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, int | slice):
            key = self._index(key)
        self._values[key] = value

    def __getattr__(self, item: str) -> Any:
        # Slots that are not set yet (while copying, say) end up here too: no recursion through _fields.
        if item.startswith("_") or self._fields is None or item not in self._fields:
            raise AttributeError(item)
        return self._values[self._fields.index(item)]

    def __reduce__(self) -> tuple[Any, ...]:
        # The kind travels as a small number, and not at all for inserts: nearly every row is one.
        if self._row_kind is _INSERT:
            return _stored_row, (self._fields, self._values)
        return _stored_row, (self._fields, self._values, self._row_kind.value)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in named)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return False
        if self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return self._values == other._values
        # Named rows are equal whatever the order of their fields; a named and an unnamed row never are.
        if self._fields is None or other._fields is None or sorted(self._fields) != sorted(other._fields):
            return False
        return self._values == other.get_fields_by_names(self._fields)

    def __hash__(self) -> int:
        # By name where there are names, because equal rows may hold them in different orders.
        if self._fields is None:
            return hash(tuple(self._values))
        return hash(frozenset(zip(self._fields, self._values, strict=False)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


_new = object.__new__


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def make_row(fields: tuple[str, ...] | None, values: list[Any], kind: RowKind = _INSERT) -> Row:
    """A row that takes ``fields`` and ``values`` as they are, without copying: for code that makes many.

    >>> make_row(("name", "age"), ["Ada", 36])
    Row(name='Ada', age=36)
    """
    row: Row = _new(Row)
    row._fields = fields
    row._values = values
    row._row_kind = kind
    return row


def make_rows(fields: tuple[str, ...] | None, values: Iterable[list[Any]]) -> list[Row]:
    """Many rows with the same names, at once: a call for each of them would take as long as the rest.

    >>> make_rows(("a",), [[1], [2]])
    [Row(a=1), Row(a=2)]
    """
    rows = []
    for own in values:
        row: Row = _new(Row)
        row._fields = fields
        row._values = own
        row._row_kind = _INSERT
        rows.append(row)
    return rows


@stored_as("row")
def _stored_row(fields: tuple[str, ...] | None, values: list[Any], kind: int = 0) -> Row:
    """What pickle calls."""
    return make_row(fields, values, _KINDS[kind])


_restore = _stored_row
"""Its name in data of version 1."""
