"""Text."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.table.batch.native import native
from firesteel.table.logical.expressions import Call, Literal
from firesteel.table.types.derivation import is_text

__all__: list[str] = []


def _texts(call: Call) -> bool:
    return all(is_text(each.type) for each in call.args)


def _plain(name: str, compute: Callable[..., Column], number: int = 1) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        return compute(*args) if len(args) == number and _texts(call) else None


_plain("CHAR_LENGTH", F.char_length)
_plain("REVERSE", F.reverse)
_plain("LOWER", F.lower)


@native("CONCAT", "||")
def _concat(call: Call, args: list[Column]) -> Column | None:
    return F.concat(*args) if _texts(call) else None


@native("SUBSTRING")
def _substring(call: Call, args: list[Column]) -> Column | None:
    """With constants: places before the first one, and lengths below zero, are ours to know."""
    numbers = [each.value for each in call.args[1:] if isinstance(each, Literal)]
    if len(numbers) != len(args) - 1 or not is_text(call.args[0].type):
        return None
    if any(not isinstance(number, int) or number < 1 for number in numbers):
        return None
    return F.substring(args[0], numbers[0], numbers[1] if len(numbers) > 1 else 2**31 - 1)


@native("LIKE")
def _like(call: Call, args: list[Column]) -> Column | None:
    """Flink has no escape character unless one is given."""
    pattern = call.args[1]
    if len(args) != 2 or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return None if "\\" in pattern.value else args[0].like(pattern.value)


def _affix(name: str, compute: Callable[[Column, Column], Column]) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        return compute(args[0], args[1]) if _texts(call) else None


_affix("STARTSWITH", F.startswith)
_affix("ENDSWITH", F.endswith)
