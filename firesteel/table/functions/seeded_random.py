"""Random numbers of a seed, as Java's ``Random`` gives them."""

from __future__ import annotations

__all__ = ["SeededRandom"]

_FACTOR, _STEP, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class SeededRandom:
    """
    >>> numbers = SeededRandom(42)
    >>> numbers.random(), SeededRandom(42).randrange(100)
    (0.7275636800328681, 30)
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _FACTOR) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * _FACTOR + _STEP) & _MASK
        return self._state >> (48 - bits)

    def random(self) -> float:
        """At least 0, less than 1."""
        high = self._next(26)
        return ((high << 27) + self._next(27)) * 2.0**-53

    def randrange(self, bound: int) -> int:
        """At least 0, less than the bound."""
        if bound <= 0:
            raise ValueError(f"A bound is at least 1, got {bound}.")
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        while True:
            drawn = self._next(31)
            # What is left over at the end of the range would make small numbers likelier.
            if drawn - drawn % bound + bound <= 1 << 31:
                return drawn % bound
