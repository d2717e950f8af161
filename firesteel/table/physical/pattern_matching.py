"""MATCH_RECOGNIZE on the matcher of :mod:`firesteel.cep`: rows become events, matches become rows again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from firesteel.cep.functions import PatternProcessFunction
from firesteel.cep.operator import MatchPattern
from firesteel.cep.pattern import Pattern
from firesteel.cep.skipping import AfterMatchSkipStrategy
from firesteel.common.time import Duration
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.patterns import Definition, MatchRecognize, PatternStep, RowReference
from firesteel.table.logical.plan import SortOrder
from firesteel.table.physical.row_expressions import aggregated, row_function

__all__ = ["event_columns", "key_of", "match_spec", "read_columns"]

Event = tuple[Any, ...]


def event_columns(plan: MatchRecognize) -> tuple[int, ...]:
    """The columns of the input that events have."""
    return tuple(dict.fromkeys((*plan.partition, *(each.column for each in plan.order), *_asked(plan))))


def read_columns(plan: MatchRecognize) -> tuple[int | None, ...]:
    """The same, None for the time if nobody asks for it: an event has its time besides. Its place stays, because events
    are state."""
    needed = {*plan.partition, *(each.column for each in plan.order[1:]), *_asked(plan)}
    return tuple(at if at in needed else None for at in event_columns(plan))


def _asked(plan: MatchRecognize) -> list[int]:
    """The columns that conditions and measures ask for."""
    references = [*plan.references, *(one for each in plan.definitions for one in each.references)]
    columns = (*(each.column for each in plan.definitions), *(each.column for each in references))
    return [column for column in columns if column is not None]


class _Rows:
    """Finds what references mean among the rows of a match."""

    def __init__(self, references: Sequence[RowReference], place: dict[int, int], variables: Sequence[str]) -> None:
        self.references = [(one, place[one.column] if one.column is not None else None) for one in references]
        self._variables = list(variables)

    def values(self, rows_of: Callable[[str], Sequence[Event]]) -> list[Any]:
        """A value for each reference."""
        found: dict[str | None, Sequence[Event]] = {}
        values = []
        for reference, place in self.references:
            variable = reference.variable
            rows = found.get(variable)
            if rows is None:
                if variable is not None:
                    rows = rows_of(variable)
                else:
                    # Variables follow each other without a gap, in the order of the pattern.
                    rows = [row for each in self._variables for row in rows_of(each)]
                found[variable] = rows
            values.append(_value(reference, place, rows))
        return values


def _value(reference: RowReference, place: int | None, rows: Sequence[Event]) -> Any:
    if reference.function in ("FIRST", "LAST"):
        offset = reference.offset
        if offset >= len(rows):
            return None
        row = rows[offset] if reference.function == "FIRST" else rows[-1 - offset]
        return row[place]  # type: ignore[index]
    if place is None:
        return len(rows)
    return aggregated(reference.function, [row[place] for row in rows], reference.type)


class _IsTrue:
    """A condition on the row alone, which was computed with the others of its batch."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __call__(self, event: Event) -> bool:
        return event[self._place] is True


class _Fits:
    """A condition on the row and those that were matched before it."""

    def __init__(
        self,
        variable: str,
        condition: Expression,
        references: tuple[RowReference, ...],
        place: dict[int, int],
        variables: Sequence[str],
        time_zone: str,
    ) -> None:
        # The row at hand is the last one of its variable; later variables have none yet.
        until = list(variables)[: list(variables).index(variable) + 1]
        self._variable, self._condition, self._time_zone = variable, condition, time_zone
        self._kinds = [each.type for each in references]
        self._rows = _Rows(references, place, until)

    @cached_property
    def _function(self) -> Callable[[Sequence[Any], int], Any]:
        return row_function(self._condition, self._kinds, self._time_zone)

    @cached_property
    def _getters(self) -> list[Callable[[Event, Any], Any]] | None:
        """What gives the value of each reference, if all of them are to a row of a variable; else None."""
        pairs = [_getter(one, place, self._variable) for one, place in self._rows.references]
        getters = [each for each in pairs if each is not None]
        return getters if len(getters) == len(pairs) else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_function", "_getters")}

    def __call__(self, event: Event, context: Any) -> bool:
        getters = self._getters
        if getters is not None:
            values = [value_of(event, context) for value_of in getters]
        else:
            values = self._rows.values(lambda variable: self._rows_of(variable, event, context))
        return self._function(values, context.current_processing_time()) is True

    def _rows_of(self, variable: str, event: Event, context: Any) -> list[Event]:
        matched: list[Event] = context.get_events_for_pattern(variable)
        return [*matched, event] if variable == self._variable else matched


def _getter(reference: RowReference, place: int | None, own: str) -> Callable[[Event, Any], Any] | None:
    """The value of a column of one row of a variable, of which the row at hand is the last one if it is ``own``; None
    for other references."""
    variable, offset, last = reference.variable, reference.offset, reference.function == "LAST"
    if variable is None or place is None or not (last or reference.function == "FIRST"):
        return None
    if last and variable == own:
        if offset == 0:
            return lambda event, context: event[place]
        # The row at hand is the first one from the end.
        offset -= 1

    def value(event: Event, context: Any) -> Any:
        rows = context.get_events_for_pattern(variable)
        if offset < len(rows):
            return rows[-1 - offset if last else offset][place]
        # A row of its own variable may be the first one.
        return event[place] if not last and variable == own and offset == len(rows) else None

    return value


class _Measured(PatternProcessFunction):
    """One row a match: the columns of the partition, and what the measures refer to."""

    def __init__(self, partition: Sequence[int], rows: _Rows) -> None:
        self._partition, self._rows = tuple(partition), rows

    def process_match(self, match: dict[str, list[Event]], ctx: Any) -> Iterable[Any]:
        first = next(iter(match.values()))[0]
        values = self._rows.values(lambda variable: match.get(variable, ()))
        return [(*(first[place] for place in self._partition), *values)]


class _InOrder:
    """Compares events of the same time."""

    def __init__(self, order: Sequence[tuple[int, SortOrder]]) -> None:
        self._order = list(order)

    def __call__(self, one: Event, other: Event) -> int:
        for place, order in self._order:
            first, second = one[place], other[place]
            if first is None or second is None:
                if first is second:
                    continue
                nulls = 1 if order.nulls_last else -1
                return nulls if first is None else -nulls
            if first != second:
                return (1 if first > second else -1) * (-1 if order.descending else 1)
        return 0


def match_spec(plan: MatchRecognize, columns: Sequence[int], time_zone: str) -> MatchPattern:
    """The operator's spec, for events with these columns of the input."""
    place = {column: at for at, column in enumerate(columns)}
    variables = [step.variable for step in plan.steps]
    definitions = {each.variable: each for each in plan.definitions}
    pattern: Pattern | None = None
    for step in plan.steps:
        pattern = Pattern.begin(step.variable, _skip(plan)) if pattern is None else pattern.next(step.variable)
        defined = definitions.get(step.variable)
        if defined is not None:
            pattern = pattern.where(_condition(defined, place, variables, time_zone))
        pattern = _quantified(pattern, step)
    assert pattern is not None
    if plan.within is not None:
        pattern = pattern.within(Duration.of_millis(plan.within))
    further = [(place[each.column], each) for each in plan.order[1:]]
    function = _Measured([place[key] for key in plan.partition], _Rows(plan.references, place, variables))
    return MatchPattern(pattern, function, plan.processing_time, _InOrder(further) if further else None)


def _condition(defined: Definition, place: dict[int, int], variables: Sequence[str], time_zone: str) -> Any:
    if defined.column is not None:
        return _IsTrue(place[defined.column])
    assert defined.condition is not None
    return _Fits(defined.variable, defined.condition, defined.references, place, variables, time_zone)


def _quantified(pattern: Pattern, step: PatternStep) -> Pattern:
    least, most = step.least, step.most
    if (least, most) == (1, 1):
        return pattern
    if (least, most) == (0, 1):
        return pattern.optional()
    if most is None:
        pattern = (pattern.times_or_more(least) if least > 1 else pattern.one_or_more()).consecutive()
        pattern = pattern.optional() if least == 0 else pattern
    else:
        pattern = pattern.times(least, most).consecutive()
    return pattern.greedy() if step.greedy and least != most else pattern


def _skip(plan: MatchRecognize) -> AfterMatchSkipStrategy:
    kind, variable = plan.skip
    if kind == "PAST LAST ROW":
        return AfterMatchSkipStrategy.skip_past_last_event()
    if kind == "NEXT ROW":
        return AfterMatchSkipStrategy.skip_to_next()
    assert variable is not None
    to = AfterMatchSkipStrategy.skip_to_first if kind == "FIRST" else AfterMatchSkipStrategy.skip_to_last
    return to(variable).throw_exception_on_miss()


def key_of(places: Sequence[int]) -> Callable[[Event], Any]:
    """The columns of the partition of an event."""
    return itemgetter(*places) if places else _nothing


def _nothing(event: Event) -> int:
    return 0
