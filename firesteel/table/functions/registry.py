"""All functions by name: the type of the result, and the kernel that computes it for a batch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import DataType

if TYPE_CHECKING:
    from firesteel.table.functions.evaluation import EvaluationContext

__all__ = ["Datum", "Function", "Kernel", "Signature", "TypeRule", "find", "names", "near", "register"]

Datum: TypeAlias = pa.Array | pa.Scalar
"""A column, or one value for all rows."""
Kernel: TypeAlias = "Callable[[Call, list[Datum], EvaluationContext], Datum]"
"""Computes a call from its arguments."""
TypeRule: TypeAlias = "Callable[[Sequence[Expression]], DataType]"
"""The type of a call with these arguments."""


@dataclass(frozen=True)
class Signature:
    """The arguments that a function takes: a family of types each; the last ``optional`` ones may be missing, or the
    last one may come any number of times."""

    parameters: tuple[str, ...]
    optional: int = 0
    repeated: bool = False

    def accepts(self, number: int) -> bool:
        """Whether there may be that many arguments."""
        least = len(self.parameters) - self.optional
        return number >= least and (self.repeated or number <= len(self.parameters))

    def family(self, index: int) -> str:
        """The family of an argument."""
        return self.parameters[min(index, len(self.parameters) - 1)]

    def show(self, name: str) -> str:
        """As errors and the documentation have it."""
        least = len(self.parameters) - self.optional
        parts = [f"<{kind.upper()}>" for kind in self.parameters[:least]]
        parts += [f"[<{kind.upper()}>]" for kind in self.parameters[least:]]
        return f"{name}({', '.join(parts)}{', ...' if self.repeated else ''})"


@dataclass(frozen=True)
class Function:
    """What is known about a scalar function."""

    name: str
    signature: Signature
    result: TypeRule
    kernel: Kernel
    can_fail: bool = False
    """Whether a row can end the job. Then it is computed only for the rows that CASE, AND and the like ask for."""
    safe: Callable[[Call], bool] | None = None
    """Which calls cannot, though others can."""
    costly: bool = False
    """Whether it takes so long that it, too, is computed only for the rows that ask for it."""
    deterministic: bool = True
    syntax: str | None = field(default=None, compare=False)
    """How it is called, where that is not ``NAME(arguments)``."""

    def fails(self, call: Call) -> bool:
        """Whether a row can end the job in this call."""
        return self.can_fail and (self.safe is None or not self.safe(call))


_FUNCTIONS: dict[str, Function] = {}


def register(function: Function, *aliases: str) -> None:
    """Makes a function known, under other names too."""
    for name in (function.name, *aliases):
        assert name not in _FUNCTIONS, f"{name} is registered twice."
        _FUNCTIONS[name] = function


def find(name: str) -> Function | None:
    """The function of that name, in capitals."""
    return _FUNCTIONS.get(name)


def names() -> list[str]:
    """All names in order."""
    return sorted(_FUNCTIONS)


def near(name: str, others: Iterable[str] = ()) -> list[str]:
    """Names that are written much like this one, of functions and others."""
    known = [*(each for each in _FUNCTIONS if each[0].isalpha()), *others]
    return difflib.get_close_matches(name.upper(), known, 3, 0.7)
