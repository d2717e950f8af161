"""Methods of expressions about numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.expression_methods.calls import HoldsNode, TimeIntervalUnit, given, method_of, property_of

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = ["NumberMethods"]


class NumberMethods(HoldsNode):
    """Of expressions that are numbers. Times can be rounded, too.

    >>> from firesteel.table.expressions import col
    >>> col("a").round(2)
    <Expression ROUND(a, 2)>
    """

    exp = property_of("EXP")
    log10 = property_of("LOG10")
    log2 = property_of("LOG2")
    ln = property_of("LN")
    cosh = property_of("COSH")
    sinh = property_of("SINH")
    tanh = property_of("TANH")
    sin = property_of("SIN")
    cos = property_of("COS")
    tan = property_of("TAN")
    cot = property_of("COT")
    asin = property_of("ASIN")
    acos = property_of("ACOS")
    atan = property_of("ATAN")
    degrees = property_of("DEGREES")
    radians = property_of("RADIANS")
    sqrt = property_of("SQRT")
    abs = property_of("ABS")
    sign = property_of("SIGN")
    bin = property_of("BIN")
    hex = property_of("HEX")
    unhex = property_of("UNHEX")
    round = method_of("ROUND", "places=")
    truncate = method_of("TRUNCATE", "n=")
    power = method_of("POWER", "exponent")
    mod = method_of("%", "divisor")

    def log(self, base: Any = None) -> Expression:
        """The logarithm: natural, or to a base."""
        return self._called("LN", self) if base is None else self._called("LOG", base, self)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The largest whole number, or the begin of the unit of time, that is not greater."""
        return self._called("FLOOR", self, *given(time_interval_unit))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The least whole number, or begin of a unit of time, that is not less."""
        return self._called("CEIL", self, *given(time_interval_unit))
