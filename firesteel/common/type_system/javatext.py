"""Values as Java prints them."""

from __future__ import annotations

import datetime
import math
import struct
from typing import Any

from firesteel.common.time import Instant

__all__ = [
    "java_boolean",
    "java_double",
    "java_float",
    "java_instant",
    "java_int",
    "java_string",
    "java_time",
    "java_timestamp",
    "to_float32",
]

_pack, _unpack = struct.Struct(">f").pack, struct.Struct(">f").unpack


def to_float32(value: Any) -> float:
    """The nearest single-precision number, infinite if there is none that large.

    >>> to_float32(0.1), to_float32(1e39)
    (0.10000000149011612, inf)
    """
    try:
        result: float = _unpack(_pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, float(value))
    return result


def java_double(value: Any) -> str:
    """``Double.toString``: the shortest digits that read back as the same number.

    Java 18 and older print more digits than needed for a few numbers (1e23 as 9.999999999999999E22); newer
    ones and we do not.

    >>> [java_double(x) for x in (1.0, 1e7, 1234567.5, 0.001, 9.9e-4, 5e-324, 1e23, -0.0)]
    ['1.0', '1.0E7', '1234567.5', '0.001', '9.9E-4', '4.9E-324', '1.0E23', '-0.0']
    """
    if value is None:
        return "null"
    number = float(value)
    special = _special(number)
    if special is not None:
        return special
    # Java shows two digits at least, and then the two that are nearest: 4.9E-324 where Python says 5e-324.
    two = f"{number:.1e}"
    return _layout(two if float(two) == number else f"{_shortest(number)}")


def java_float(value: Any) -> str:
    """``Float.toString``: the shortest digits that read back as the same single-precision number.

    >>> [java_float(x) for x in (0.1, 3.3, 16777217.0, 1e-5, float("inf"))]
    ['0.1', '3.3', '1.6777216E7', '1.0E-5', 'Infinity']
    """
    if value is None:
        return "null"
    number = to_float32(value)
    special = _special(number)
    if special is not None:
        return special
    for digits in range(1, 9):
        text = f"{number:.{digits}e}"
        if to_float32(float(text)) == number:
            break
    return _layout(text)


def _special(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    return None


def _shortest(number: float) -> str:
    """Python's shortest digits of a number, always in the form 1.2e+03."""
    digits = len(repr(number).lower().split("e")[0].replace("-", "").replace(".", "").strip("0")) - 1
    for precision in range(max(digits, 1), 17):
        text = f"{number:.{precision}e}"
        if float(text) == number:
            return text
    return f"{number:.16e}"


def _layout(scientific: str) -> str:
    """A number in the form 1.2e+03 as Java writes it: plain from 10^-3 to 10^7, scientific outside."""
    mantissa, _, power = scientific.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).rstrip("0") or "0"
    exponent = int(power)
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"


def java_boolean(value: Any) -> str:
    """``true``, ``false`` or ``null``."""
    if value is None:
        return "null"
    return "true" if value else "false"


def java_int(value: Any) -> str:
    """The digits, also for enums and other subclasses that print as something else."""
    return "null" if value is None else int.__repr__(int(value))


def java_string(value: Any) -> str:
    """The characters, also for enums and other subclasses that print as something else."""
    return "null" if value is None else str.__str__(value)


def java_time(value: datetime.time | None) -> str:
    """``java.sql.Time.toString``: no fraction of a second."""
    return "null" if value is None else value.strftime("%H:%M:%S")


def java_timestamp(value: datetime.datetime | None) -> str:
    """``java.sql.Timestamp.toString``: a fraction of one digit at least.

    >>> java_timestamp(datetime.datetime(2020, 1, 2, 3, 4, 5))
    '2020-01-02 03:04:05.0'
    """
    if value is None:
        return "null"
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value.replace(microsecond=0, tzinfo=None).isoformat(' ')}.{fraction}"


def java_instant(value: Instant | None) -> str:
    """``Instant.toString``: a fraction of 0, 3, 6 or 9 digits.

    >>> java_instant(Instant(1, 500_000_000))
    '1970-01-01T00:00:01.500Z'
    """
    if value is None:
        return "null"
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    fraction = f"{value.nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{moment.isoformat()}{'.' + fraction if fraction else ''}Z"
