"""How scenarios for complex event processing are written down by hand."""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "LOOP",
    "NO_SKIP",
    "PAST_LAST",
    "SKIPS",
    "TO_NEXT",
    "A",
    "B",
    "C",
    "D",
    "Json",
    "begin",
    "followed_by",
    "followed_by_any",
    "not_followed_by",
    "not_next",
    "scenario",
    "skip_with",
    "then",
]

Json = dict[str, Any]

_EVENT = re.compile(r"(?:(\w+):)?([a-z])(\d+)(?:@(-?\d+))?")


def _step(how: str, what: str | list[Json], **said: Any) -> Json:
    """A step. Without conditions its events are those of the kind that its name begins with."""
    step: Json = {"how": how}
    if isinstance(what, list):
        step["group"] = what
    else:
        step["name"] = what
        step["where"] = [{"kind": what[0]}]
    step.update(said)
    if step.get("where") is None:
        step.pop("where", None)
    return step


def begin(what: str | list[Json], **said: Any) -> Json:
    return _step("begin", what, **said)


def then(what: str | list[Json], **said: Any) -> Json:
    return _step("next", what, **said)


def followed_by(what: str | list[Json], **said: Any) -> Json:
    return _step("followed_by", what, **said)


def followed_by_any(what: str | list[Json], **said: Any) -> Json:
    return _step("followed_by_any", what, **said)


def not_next(name: str, **said: Any) -> Json:
    return _step("not_next", name, **said)


def not_followed_by(name: str, **said: Any) -> Json:
    return _step("not_followed_by", name, **said)


LOOP = ["one_or_more"]


def _input(text: str) -> list[list[Any]]:
    """``a1`` is an event of kind a with value 1, one millisecond after the one before; ``a1@7`` says when; ``y:a1`` has
    the key y. ``w7`` is a watermark, ``p7`` a time on the machine's clock, ``end`` the end of the input."""
    found: list[list[Any]] = []
    time = 0
    for token in text.split():
        if token == "end":
            found.append(["end"])
        elif re.fullmatch(r"w-?\d+", token):
            found.append(["w", int(token[1:])])
        elif re.fullmatch(r"p\d+", token):
            # The next event has this time.
            time = int(token[1:]) - 1
            found.append(["p", time + 1])
        else:
            match = _EVENT.fullmatch(token)
            assert match is not None, token
            time = int(match[4]) if match[4] else time + 1
            found.append(["e", match[1] or "x", match[2], int(match[3]), time])
    return found


def skip_with(kind: str, step: str | None = None, throw: bool = False) -> Json:
    return {"kind": kind} | ({"step": step} if step else {}) | ({"throw": True} if throw else {})


NO_SKIP, TO_NEXT, PAST_LAST = (skip_with(kind) for kind in ("no_skip", "skip_to_next", "skip_past_last_event"))
SKIPS = (NO_SKIP, TO_NEXT, PAST_LAST)
A, B, C, D = ({"kind": kind} for kind in "abcd")


def scenario(name: str, steps: list[Json], events: str = "", skip: Json | None = None, **more: Any) -> Json:
    pattern: Json = {"steps": steps}
    if skip is not None:
        pattern["skip"] = skip
    return {"name": name, "pattern": pattern, "timeouts": True, **more, "input": _input(events)}
