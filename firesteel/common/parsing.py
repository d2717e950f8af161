"""Durations and memory sizes as people write them in configuration files."""

from __future__ import annotations

import re

from firesteel.errors import ConfigurationError

__all__ = ["parse_duration_ms", "parse_memory_bytes"]

_NANOS = {
    ("ns", "nano", "nanos", "nanosecond", "nanoseconds"): 1,
    ("µs", "us", "micro", "micros", "microsecond", "microseconds"): 1_000,
    ("ms", "milli", "millis", "millisecond", "milliseconds"): 1_000_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000_000,
    ("m", "min", "mins", "minute", "minutes"): 60 * 1_000_000_000,
    ("h", "hour", "hours"): 3600 * 1_000_000_000,
    ("d", "day", "days"): 86400 * 1_000_000_000,
}
_DURATION_UNITS = {name: nanos for names, nanos in _NANOS.items() for name in names}

_BYTES = {
    ("b", "byte", "bytes"): 1,
    ("k", "kb", "kibibyte", "kibibytes"): 1 << 10,
    ("m", "mb", "mebibyte", "mebibytes"): 1 << 20,
    ("g", "gb", "gibibyte", "gibibytes"): 1 << 30,
    ("t", "tb", "tebibyte", "tebibytes"): 1 << 40,
}
_MEMORY_UNITS = {name: size for names, size in _BYTES.items() for name in names}

_NUMBER_AND_UNIT = re.compile(r"(\d+)\s*(\D*)")
_ISO = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)


def parse_duration_ms(text: str | int) -> int:
    """A duration in milliseconds. A number without a unit is milliseconds already; ISO 8601 works as well.

    >>> [parse_duration_ms(text) for text in ("10 s", "500ms", "1 min", "PT1M30S", 250)]
    [10000, 500, 60000, 90000, 250]
    """
    if isinstance(text, int):
        return text
    stripped = text.strip()
    match = _NUMBER_AND_UNIT.fullmatch(stripped)
    if match:
        unit = match[2].strip().lower() or "ms"
        if unit in _DURATION_UNITS:
            return int(match[1]) * _DURATION_UNITS[unit] // 1_000_000
    iso = _ISO.fullmatch(stripped)
    if iso and any(iso.groups()):
        minutes = (int(iso["d"] or 0) * 24 + int(iso["h"] or 0)) * 60 + int(iso["m"] or 0)
        whole, _, fraction = (iso["s"] or "0").partition(".")
        return (minutes * 60 + int(whole)) * 1000 + int(fraction.ljust(3, "0")[:3])
    raise ConfigurationError(
        f"{text!r} is not a duration. Write a number and a unit, such as '10 s', '500 ms', '1 min' or '2 h'."
    )


def parse_memory_bytes(text: str | int) -> int:
    """A memory size in bytes. A number without a unit is bytes already; units are powers of 1024.

    >>> [parse_memory_bytes(text) for text in ("64mb", "1 gb", "10k", "17")]
    [67108864, 1073741824, 10240, 17]
    """
    if isinstance(text, int):
        return text
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match:
        unit = match[2].strip().lower() or "b"
        if unit in _MEMORY_UNITS:
            return int(match[1]) * _MEMORY_UNITS[unit]
    raise ConfigurationError(
        f"{text!r} is not a memory size. Write a number and a unit, such as '64 mb', '1 gb' or '512 kb'."
    )
