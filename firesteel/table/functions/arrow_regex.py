"""Regular expressions that Arrow's engine (RE2) finds as Python's does, several times as fast.

Both try from the left and prefer the first alternative. What they do not share is left to Python's: classes of letters
by name (``\\d`` knows other scripts there), ``$`` before the end of a line, counts, look-around, and groups that
may not take part in a match, whose text is empty in one and missing in the other. So there is no ``|`` here, and no
repetition of a group.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ArrowRegex", "arrow_regex", "extracted"]

_LITERAL, _ESCAPED = r"[A-Za-z0-9 _/=&:;,@#%\"'<>!~-]", r"\\[./?+*()\[\]|^$\\-]"
_CLASS = r"\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _/=&:;,@#%.+*?!])+\]"
_ATOM = rf"{_LITERAL}|{_ESCAPED}|\.|{_CLASS}"
_TOKEN = re.compile(rf"(?P<atom>{_ATOM})(?P<repeated>[*+?]\??)?|(?P<open>\((?!\?))|(?P<close>\)(?![*+?{{]))")


class ArrowRegex(NamedTuple):
    """A pattern whose groups have names: ``g0`` is the whole match."""

    text: str
    groups: int


@functools.lru_cache(maxsize=256)
def arrow_regex(pattern: str) -> ArrowRegex | None:
    """The pattern for Arrow; None where it would not find the same.

    >>> arrow_regex("(/item/)([0-9a-f]+)")
    ArrowRegex(text='(?P<g0>(?P<g1>/item/)(?P<g2>[0-9a-f]+))', groups=2)
    >>> arrow_regex("(a|b)"), arrow_regex("(a)?"), arrow_regex(r"\\d+"), arrow_regex("a$"), arrow_regex("(a")
    (None, None, None, None, None)
    """
    parts, groups, depth, place = [], 0, 0, 0
    if pattern.startswith("^"):
        parts.append("^")
        place = 1
    if place == len(pattern):
        return None
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            return None
        place = token.end()
        if token["open"]:
            groups, depth = groups + 1, depth + 1
            parts.append(f"(?P<g{groups}>")
            continue
        depth -= bool(token["close"])
        if depth < 0:
            return None
        parts.append(token[0])
    return ArrowRegex(f"(?P<g0>{''.join(parts)})", groups) if depth == 0 else None


def extracted(column: pa.Array, regex: ArrowRegex, group: int) -> pa.Array:
    """A group of the first match in each text; NULL where there is none.

    >>> extracted(pa.array(["a/item/7f", "b", None]), arrow_regex("/item/([0-9a-f]+)"), 1).to_pylist()
    ['7f', None, None]
    """
    return pc.struct_field(pc.extract_regex(column, pattern=regex.text), f"g{group}")
