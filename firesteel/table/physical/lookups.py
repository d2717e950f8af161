"""Tables of CREATE TABLE that a lookup join can ask, and how it asks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firesteel.common.parsing import parse_duration_ms
from firesteel.connectors.table.lookup import LookupCache, LookupTable
from firesteel.errors import ConfigurationError
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["LOOKUP_OPTIONS", "LookupFactory", "LookupPlan", "lookup_plan", "register_lookup"]

LookupFactory = Callable[[DeclaredTable, str], LookupTable]
"""Makes the table of a connector from its declaration and its path."""

LOOKUP_OPTIONS = (
    "lookup.cache",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.cache-missing-key",
    "lookup.max-retries",
)
"""Options that every connector with lookups has."""
_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
_HINTS = ("async", "output-mode", "capacity", "timeout", "shuffle", *_RETRY)
_LOOKUPS: dict[str, LookupFactory] = {}


def register_lookup(connector: str, factory: LookupFactory) -> None:
    """Makes the tables of a connector tables that a lookup join can ask."""
    _LOOKUPS[connector] = factory


@dataclass(frozen=True)
class LookupPlan:
    """What the operator is told."""

    table: LookupTable
    cache: LookupCache | None
    attempts: int
    delay: int


def lookup_plan(table: DeclaredTable, path: str, hint: tuple[tuple[str, str], ...]) -> LookupPlan:
    """The table, its cache, and how often a missing row is asked for."""
    connector = table.options.get("connector", "")
    factory = _LOOKUPS.get(connector)
    if factory is None:
        near = near_names(connector, _LOOKUPS)
        raise NotSupportedError(
            f"Connector {connector!r} (table {path}) cannot be asked for keys, so it cannot be joined at PROCTIME()."
            f"{near} Join it as a table, or at an event time if it has versions."
        )
    attempts, delay = _retries(dict(hint), path)
    return LookupPlan(factory(table, path), _cache(table, path), attempts, delay)


def _cache(table: DeclaredTable, path: str) -> LookupCache | None:
    options = table.options
    kind = options.get("lookup.cache", "NONE").upper()
    if kind == "NONE":
        return None
    if kind != "PARTIAL":
        raise NotSupportedError(f"Table {path}: 'lookup.cache' is NONE or PARTIAL here, got {kind!r}.")
    prefix = "lookup.partial-cache."
    most = options.get(f"{prefix}max-rows")
    if most is not None and not most.isdigit():
        raise SqlValidationError(f"Table {path}: '{prefix}max-rows' should be a whole number, got {most!r}.")
    return LookupCache(
        int(most) if most is not None else None,
        _span(options.get(f"{prefix}expire-after-write"), f"{prefix}expire-after-write", path),
        _span(options.get(f"{prefix}expire-after-access"), f"{prefix}expire-after-access", path),
        options.get(f"{prefix}cache-missing-key", "true").lower() == "true",
    )


def _span(text: str | None, key: str, path: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration_ms(text)
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {path}: {key!r}: {error}") from None


def _retries(hint: dict[str, str], path: str) -> tuple[int, int]:
    for key in hint:
        if key not in _HINTS:
            raise SqlValidationError(f"LOOKUP has no option {key!r}.{near_names(key, _HINTS)}")
    if "retry-predicate" not in hint:
        return 1, 0
    if hint["retry-predicate"] != "lookup_miss" or hint.get("retry-strategy") != "fixed_delay":
        raise SqlValidationError(
            "LOOKUP: 'retry-predicate' is 'lookup_miss' and 'retry-strategy' is 'fixed_delay'; there are no others."
        )
    attempts, delay = hint.get("max-attempts", ""), _span(hint.get("fixed-delay"), "fixed-delay", path)
    if not attempts.isdigit() or delay is None:
        raise SqlValidationError("LOOKUP: a retry needs 'fixed-delay' (a duration) and 'max-attempts' (a number).")
    # The first time is no attempt to try again.
    return int(attempts) + 1, delay
