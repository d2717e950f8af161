"""Paths into JSON: ``lax $.orders[0].price``."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.table.functions.json_text import JsonError

__all__ = ["JsonPath", "json_path"]

Step = Callable[[Any], Iterator[Any]]
"""The values that one step finds inside a value."""


@dataclass(frozen=True)
class JsonPath:
    """A path: strict, unless it begins with ``lax``. Then what is not there is no error."""

    lax: bool
    steps: tuple[Step, ...]
    definite: bool
    """Whether it leads to one value. What leads to several gives a list."""

    def find(self, value: Any) -> Any:
        """The value, or the list of values, at the end of the path.

        >>> json_path("$.a[*]").find({"a": [1, 2]}), json_path("lax $.b").find({})
        ([1, 2], None)
        """
        found = [value]
        for step in self.steps:
            found = [inner for each in found for inner in step(each)]
        if not self.definite:
            return found
        if not found and not self.lax:
            raise JsonError("The path leads nowhere.")
        return found[0] if found else None


_MODE = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[^.\[\]()\s'\"*?@$]+")
_QUOTED = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*")
_NUMBERS = re.compile(r"\s*-?\d+\s*(?:,\s*-?\d+\s*)*")
_SLICE = re.compile(r"\s*(-?\d*)\s*:\s*(-?\d*)\s*")
_FILTER = re.compile(r"\?\((.*?)\)(?=\])", re.DOTALL)
_CONDITION = re.compile(r"\s*@((?:\.[^\s.=<>!]+)*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*", re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@functools.lru_cache(maxsize=256)
def json_path(text: str) -> JsonPath:
    """Reads a path.

    >>> json_path("lax $.a").lax
    True
    """
    mode = _MODE.fullmatch(text)
    written = (mode[2] if mode else text).strip()
    if not written.startswith("$"):
        raise JsonError(f"A path into JSON begins with $, got {text!r}.")
    steps, definite, at = [], True, 1
    while at < len(written):
        step, one, at = _step(written, at)
        steps.append(step)
        definite = definite and one
    return JsonPath(mode is not None and mode[1].lower() == "lax", tuple(steps), definite)


def _step(text: str, at: int) -> tuple[Step, bool, int]:
    """A step, whether it leads to one value, and where the next one begins."""
    if text.startswith("..", at):
        return _deep_step(text, at + 2)
    if text.startswith(".length()", at):
        return _length, True, at + len(".length()")
    if text.startswith(".*", at):
        return _all, False, at + 2
    if text[at] == ".":
        name = _NAME.match(text, at + 1)
        if name is not None and not text.startswith("(", name.end()):
            return functools.partial(_member, name[0]), True, name.end()
    if text.startswith((".[", "["), at):
        return _bracket(text, text.index("[", at) + 1)
    raise JsonError(f"This path into JSON cannot be read: {text!r}, at {text[at:]!r}.")


def _deep_step(text: str, at: int) -> tuple[Step, bool, int]:
    name = _NAME.match(text, at)
    if name is not None:
        return functools.partial(_deep, name[0]), False, name.end()
    if text.startswith("*", at):
        return functools.partial(_deep, None), False, at + 1
    raise JsonError(f"A name stands behind .. in a path into JSON: {text!r}.")


def _bracket(text: str, at: int) -> tuple[Step, bool, int]:
    step: Step | None = None
    one, end = True, at
    if (match := _QUOTED.match(text, at)) is not None:
        name = match[1] if match[1] is not None else match[2]
        step, end = functools.partial(_member, re.sub(r"\\(.)", r"\1", name)), match.end()
    elif (match := _FILTER.match(text, at)) is not None:
        step, one, end = functools.partial(_filtered, _condition(match[1])), False, match.end()
    elif (match := _SLICE.match(text, at)) is not None:
        bounds = [int(bound) if bound else None for bound in match.groups()]
        step, one, end = functools.partial(_sliced, slice(*bounds)), False, match.end()
    elif (match := _NUMBERS.match(text, at)) is not None:
        indexes = [int(index) for index in match[0].split(",")]
        step, one, end = functools.partial(_elements, indexes), len(indexes) == 1, match.end()
    elif text.startswith("*", at):
        step, one, end = _all, False, at + 1
    if step is None or not text.startswith("]", end):
        raise JsonError(f"These brackets of a path into JSON cannot be read: {text!r}.")
    return step, one, end + 1


def _member(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _elements(indexes: list[int], value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for index in indexes:
            if -len(value) <= index < len(value):
                yield value[index]


def _sliced(bounds: slice, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value[bounds]


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _deep(name: str | None, value: Any) -> Iterator[Any]:
    yield from _all(value) if name is None else _member(name, value)
    for inner in _all(value):
        yield from _deep(name, inner)


def _length(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield len(value)


def _filtered(holds: Callable[[Any], bool], value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else [value]:
        if holds(item):
            yield item


def _condition(text: str) -> Callable[[Any], bool]:
    """``@.price < 10 && @.name == 'x'``; && binds more tightly than ||."""
    choices = [[_comparison(part) for part in choice.split("&&")] for choice in text.split("||")]
    return lambda item: any(all(holds(item) for holds in parts) for parts in choices)


def _comparison(text: str) -> Callable[[Any], bool]:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise JsonError(f"This condition of a path into JSON cannot be read: {text!r}.")
    names = match[1].split(".")[1:]
    if match[2] is None:
        return lambda item: next(_walk(names, item), None) is not None
    compare, constant = _COMPARISONS[match[2]], _constant(match[3])

    def holds(item: Any) -> bool:
        found = next(_walk(names, item), None)
        if _kind(found) == _kind(constant):
            return compare(found, constant)
        return match[2] == "!="

    return holds


def _walk(names: list[str], value: Any) -> Iterator[Any]:
    found = [value]
    for name in names:
        found = [inner for each in found for inner in _member(name, each)]
    return iter(found)


def _kind(value: Any) -> type:
    """Numbers of all kinds are compared, and text with text."""
    return Decimal if isinstance(value, int | Decimal) and not isinstance(value, bool) else type(value)


def _constant(text: str) -> Any:
    known = {"true": True, "false": False, "null": None}
    if text in known:
        return known[text]
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return quoted[1] if quoted[1] is not None else quoted[2]
    try:
        return Decimal(text)
    except ArithmeticError:
        raise JsonError(f"A condition of a path into JSON compares with a constant, got {text!r}.") from None
