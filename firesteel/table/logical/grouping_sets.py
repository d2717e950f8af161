"""GROUPING SETS, ROLLUP and CUBE: the sets of keys that GROUP BY means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from firesteel.table.sql import syntax

__all__ = ["grouping_sets"]

Keys = tuple[syntax.Node, ...]


def grouping_sets(elements: Sequence[syntax.Node]) -> tuple[list[syntax.Node], list[tuple[int, ...]]]:
    """All keys of GROUP BY, each once, and for each grouping set which of them it has.

    >>> from firesteel.table.sql.source import Span
    >>> a, b = (syntax.Name((name,), span=Span(0, 0)) for name in "ab")
    >>> grouping_sets([syntax.GroupingSets("ROLLUP", ((a,), (b,)), span=Span(0, 0))])[1]
    [(0, 1), (0,), ()]
    """
    sets = [sum(chosen, ()) for chosen in product(*(_sets_of(element) for element in elements))]
    keys = list(dict.fromkeys(key for keys in _all(elements) for key in keys))
    places = [tuple(sorted({keys.index(key) for key in chosen})) for chosen in sets]
    return keys, places


def _all(elements: Sequence[syntax.Node]) -> list[Keys]:
    return [keys for element in elements for keys in _sets_of(element)]


def _sets_of(element: syntax.Node | Keys) -> list[Keys]:
    if isinstance(element, tuple):
        return [element]
    if isinstance(element, syntax.RowConstructor):
        return [element.items]
    if not isinstance(element, syntax.GroupingSets):
        return [(element,)]
    if element.kind == "GROUPING SETS":
        return [keys for inner in element.elements for keys in _sets_of(inner)]
    parts: list[Keys] = [keys for inner in element.elements for keys in _sets_of(inner)]
    if element.kind == "ROLLUP":
        return [sum(parts[:length], ()) for length in range(len(parts), -1, -1)]
    # CUBE: every combination, the large ones first.
    return [sum(chosen, ()) for length in range(len(parts), -1, -1) for chosen in combinations(parts, length)]
