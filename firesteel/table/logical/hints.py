"""Hints of a query: ``/*+ STATE_TTL('o' = '1d') */``, ``/*+ LOOKUP('table' = 'c') */``, and OPTIONS of a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from firesteel.common.parsing import parse_duration_ms
from firesteel.errors import ConfigurationError
from firesteel.table.logical.plan import Aggregate, Join, Plan, Project, Scan
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError, near_names

__all__ = ["OPTIONS_ENABLED", "Hints", "has_options", "with_options", "with_state_ttl"]

OPTIONS_ENABLED = "table.dynamic-table-options.enabled"

_JOIN_HINTS = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "MULTI_JOIN")
"""What they ask for a stream has no choice in, so they change nothing, as in Flink."""
_KNOWN = ("STATE_TTL", "LOOKUP", "OPTIONS", *_JOIN_HINTS)


class Hints:
    """The hints of the SELECT at hand; those of the queries around it mean nothing to it."""

    def __init__(self, text: str | None) -> None:
        self._text = text
        self._frames: list[tuple[syntax.Hint, ...]] = []

    def begin(self, hints: tuple[syntax.Hint, ...]) -> None:
        """A SELECT begins."""
        for hint in hints:
            if hint.name not in _KNOWN:
                near = near_names(hint.name, _KNOWN)
                warnings.warn(f"There is no hint {hint.name}.{near} It is ignored.", UserWarning, stacklevel=2)
            elif hint.name == "OPTIONS":
                raise SqlValidationError("OPTIONS is a hint of a table, behind its name.", self._text, hint.span)
            elif hint.name == "STATE_TTL" and not hint.options:
                message = "STATE_TTL takes tables and times: STATE_TTL('orders' = '1d')."
                raise SqlValidationError(message, self._text, hint.span)
        self._frames.append(hints)

    def end(self) -> None:
        """The SELECT ends."""
        self._frames.pop()

    def _of(self, name: str) -> list[syntax.Hint]:
        return [hint for hint in self._frames[-1] if hint.name == name] if self._frames else []

    def state_ttl(self, relation: syntax.Node | None) -> int | None:
        """How long the state of a relation is kept, in milliseconds; None if no hint says so."""
        for hint in self._of("STATE_TTL"):
            for key, value in hint.options:
                if _is_called(relation, key):
                    try:
                        return parse_duration_ms(value)
                    except ConfigurationError as error:
                        raise SqlValidationError(f"STATE_TTL: {error}", self._text, hint.span) from None
        return None

    def check_state_ttl(self, source: syntax.Node | None) -> None:
        """Refuses times for what the SELECT, which joins or groups, does not read."""
        relations = list(_relations(source))
        for hint in self._of("STATE_TTL"):
            for key, _ in hint.options:
                if not any(_is_called(relation, key) for relation in relations):
                    names = [name for relation in relations if (name := _name(relation)) is not None]
                    message = (
                        f"STATE_TTL: the query reads no table {key}.{near_names(key, names)} A table with another name "
                        "(AS) is called by that one."
                    )
                    raise SqlValidationError(message, self._text, hint.span)

    def lookup(self, table: syntax.TableName) -> tuple[tuple[str, str], ...]:
        """The options of LOOKUP for a table."""
        for hint in self._of("LOOKUP"):
            options = dict(hint.options)
            if "table" not in options:
                raise SqlValidationError("LOOKUP needs 'table' = '...'.", self._text, hint.span)
            if options.pop("table") in (_name(table), table.name.parts[-1]):
                return tuple(options.items())
        return ()


def _name(relation: syntax.Node | None) -> str | None:
    if not isinstance(relation, syntax.Relation):
        return None
    if relation.alias is not None:
        return relation.alias
    return relation.name.parts[-1] if isinstance(relation, syntax.TableName) else None


def _is_called(relation: syntax.Node | None, key: str) -> bool:
    """By its name or, if it has no other one, by its path."""
    if isinstance(relation, syntax.TableName) and relation.alias is None:
        parts = relation.name.parts
        return tuple(key.split(".")[-len(parts) :]) == parts or key == parts[-1]
    return key == _name(relation)


def _relations(source: syntax.Node | None) -> Iterator[syntax.Node]:
    if isinstance(source, syntax.Join):
        yield from _relations(source.left)
        yield from _relations(source.right)
    elif source is not None:
        yield source


def with_state_ttl(plan: Plan, ttl: Sequence[int | None]) -> Plan:
    """The join or the groups at the top of a plan with times to live of their own."""
    if not any(each is not None for each in ttl):
        return plan
    if isinstance(plan, Project):
        return replace(plan, input=with_state_ttl(plan.input, ttl))
    if isinstance(plan, Join):
        left, right = ttl
        return replace(plan, state_ttl=(left, right))
    return replace(plan, state_ttl=ttl[0]) if isinstance(plan, Aggregate) else plan


def with_options(plan: Plan, hints: tuple[syntax.Hint, ...], text: str | None) -> Plan:
    """A table with some options of its connector changed."""
    changed: dict[str, str] = {}
    for hint in hints:
        if hint.name != "OPTIONS":
            message = f"{hint.name} has no place behind a table; OPTIONS has."
            raise SqlValidationError(message, text, hint.span)
        changed |= dict(hint.options)
    if not changed:
        return plan
    if isinstance(plan, Project):
        return replace(plan, input=with_options(plan.input, hints, text))
    table: Any = plan.table if isinstance(plan, Scan) else None
    if not isinstance(plan, Scan) or not hasattr(table, "options"):
        raise SqlValidationError("OPTIONS changes the options of a connector: this is a view.", text, hints[0].span)
    new = replace(table, options={**table.options, **changed})
    return replace(plan, table=new, options=tuple(sorted(changed.items())))


def has_options(plan: Plan) -> bool:
    """Whether a query changes options of tables."""
    return (isinstance(plan, Scan) and bool(plan.options)) or any(map(has_options, plan.inputs))
