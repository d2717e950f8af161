"""The columns of stored rows, one behind the other, with names and types of SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from firesteel.durable.state_tables import ROLES, ShownCall, ShownColumn, StateTable
from firesteel.errors import FiresteelError
from firesteel.runtime.operators.table.accumulators import Accumulator, Count, Extreme, RetractingExtreme, Sum
from firesteel.runtime.operators.table.aggregate_functions import accumulator_of
from firesteel.runtime.operators.table.sequence_accumulators import EndValue
from firesteel.runtime.operators.table.specs import AggregateCall
from firesteel.runtime.operators.table.user_accumulators import user_accumulator
from firesteel.table.logical.plan import Filter, Plan, Project, unique_names
from firesteel.table.physical.calcs import merged_calc
from firesteel.table.physical.explain import expression_text
from firesteel.table.sql.type_parser import parse_type
from firesteel.table.types.arrow import arrow_type, logical_type
from firesteel.table.types.data_types import DataType

__all__ = [
    "COUNT",
    "LOCAL",
    "MOMENT",
    "NamedColumns",
    "StoredRow",
    "accumulator_for",
    "bare",
    "call_name",
    "counts_rows",
    "key_columns",
    "type_of",
]

COUNT = "BIGINT"
MOMENT = "TIMESTAMP_LTZ(3)"
LOCAL = "TIMESTAMP(3)"

_PLAIN_RESULTS = (Count, Sum, Extreme, RetractingExtreme, EndValue)
"""Their result says all that their state does."""


class NamedColumns:
    """What the columns of a relation are called: by their names, or where an operator has made one for an expression
    in its query, by that."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.texts: dict[str, str] = {}
        self._types: dict[str, DataType] = {}
        if plan is None:
            return
        self._types = dict(zip(plan.names, plan.types, strict=True))
        if isinstance(plan, Project | Filter):
            calc = merged_calc(plan)
            for name, expression in zip(calc.names, calc.expressions, strict=True):
                if name.startswith("$"):
                    self.texts[name] = expression_text(expression, calc.input.names)

    def name(self, field: pa.Field) -> str:
        name: str = field.name
        return self.texts.get(name, name)

    def type(self, field: pa.Field) -> tuple[str, str]:
        """In SQL, and the form of values: ``text`` where no type of SQL has them."""
        known = self._types.get(field.name)
        if known is not None and _comes_back(known, field.type):
            return known.sql, "value"
        return type_of(field.type)


def type_of(kind: pa.DataType) -> tuple[str, str]:
    """
    >>> type_of(pa.list_(pa.int64())), type_of(pa.decimal256(76, 2))
    (('ARRAY<BIGINT>', 'value'), ('STRING', 'text'))
    """
    try:
        found = logical_type(kind)
    except FiresteelError:
        return "STRING", "text"
    return (found.sql, "value") if _comes_back(found, kind) else ("STRING", "text")


def _comes_back(known: DataType, kind: pa.DataType) -> bool:
    """Whether those who read the text of a type get the columns that it stands for."""
    try:
        return bool(arrow_type(parse_type(known.sql)) == kind)
    except (FiresteelError, KeyError):
        return False


def counts_rows(call: AggregateCall) -> bool:
    """COUNT(*): the number of rows of the group, which is kept anyway."""
    return call.user is None and call.function.upper() == "COUNT" and call.argument is None and call.filter is None


def accumulator_for(call: AggregateCall, input: pa.Schema, retracts: bool) -> Accumulator:
    """What works out a call."""
    if call.user is not None:
        return user_accumulator(call.user)
    return accumulator_of(call, None if call.argument is None else input.field(call.argument).type, retracts)


def call_name(call: AggregateCall, input: pa.Schema, columns: NamedColumns) -> str:
    """The call as a query has it: ``SUM(DISTINCT price) FILTER (WHERE paid)``."""
    places = call.arguments or (() if call.argument is None else (call.argument,))
    arguments = ", ".join(bare(columns.name(input.field(at))) for at in places) or "*"
    text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
    return text if call.filter is None else f"{text} FILTER (WHERE {bare(columns.name(input.field(call.filter)))})"


def bare(text: str) -> str:
    """Without parentheses around the whole of it.

    >>> bare("(a * b)"), bare("(a) * (b)")
    ('a * b', '(a) * (b)')
    """
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and at < len(text) - 1:
            return text
    return text[1:-1]


class StoredRow:
    """Counts the places of a flat row, and notes the columns that are shown."""

    def __init__(self) -> None:
        self.columns: list[ShownColumn] = []
        self._next = 0

    def take(self, count: int = 1) -> tuple[int, ...]:
        """The next places."""
        first, self._next = self._next, self._next + count
        return tuple(range(first, self._next))

    def show(self, name: str, kind: str, role: str, form: str = "value", shift: int = 0) -> None:
        """The next value."""
        self.columns.append(ShownColumn(name, kind, role, self.take(), form, shift=shift))

    def fields(self, fields: Iterable[pa.Field], columns: NamedColumns, role: str) -> None:
        """Values as they are."""
        for field in fields:
            kind, form = columns.type(field)
            self.show(columns.name(field), kind, role, form)

    def elements(self, schema: pa.Schema, left_out: Collection[int], columns: NamedColumns) -> None:
        """The fields of a row within a row, less some columns."""
        for at, field in enumerate(schema):
            if at in left_out:
                self.take()
            else:
                self.fields([field], columns, "row")

    def kept(self, fields: Iterable[pa.Field], columns: NamedColumns, form: str) -> None:
        """Values with whether they are not NULL."""
        for field in fields:
            kind, plain = columns.type(field)
            shown = ShownColumn(columns.name(field), kind, "row", self.take(2), form if plain == "value" else plain)
            self.columns.append(shown)

    def call(self, call: AggregateCall, input: pa.Schema, columns: NamedColumns, retracts: bool) -> None:
        """The state of an aggregate: its result, and what that is made of."""
        name = call_name(call, input, columns)
        accumulator = accumulator_for(call, input, retracts)
        stored = [one for one in accumulator.columns if one.type is not None]
        places = self.take(len(stored))
        shown = None if call.user is not None else _shown_call(call, input, retracts)
        if shown is not None:
            self.columns.append(ShownColumn(name, shown.type, "aggregate", places, "result", shown))
            if type(accumulator) in _PLAIN_RESULTS:
                return
        for place, column in zip(places, stored, strict=True):
            kind, form = type_of(column.type)
            self.columns.append(ShownColumn(f"{name}: {column.name}", kind, "accumulator", (place,), form))

    def last_changed(self, state_ttl: int | None) -> None:
        """Behind all others, where state is forgotten."""
        if state_ttl is not None:
            self.show("last_changed", MOMENT, "count", "moment")

    def table(self, state: str, meaning: str, shape: str = "columns", unnested: int | None = None) -> StateTable:
        columns = sorted(self.columns, key=lambda column: ROLES.index(column.role))
        names = unique_names([column.name for column in columns])
        named = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
        return StateTable(state, meaning, named, shape, unnested)


def _shown_call(call: AggregateCall, input: pa.Schema, retracts: bool) -> ShownCall | None:
    """None where the result cannot be told from what a description may hold."""
    result, form = type_of(call.type)
    argument = ("", "value") if call.argument is None else type_of(input.field(call.argument).type)
    if "text" in (form, argument[1]) or not all(isinstance(one, str | int | float | None) for one in call.options):
        return None
    return ShownCall(call.function, result, argument[0] or None, tuple(call.options), retracts)


def key_columns(fields: Sequence[pa.Field], columns: NamedColumns) -> StoredRow:
    """A row that begins with its key."""
    row = StoredRow()
    row.fields(fields, columns, "key")
    return row
