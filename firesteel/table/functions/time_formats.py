"""Java's patterns for dates and times: ``yyyy-MM-dd HH:mm:ss.SSS``."""

from __future__ import annotations

import calendar
import datetime
import functools
import re
from collections.abc import Callable

from firesteel.errors import FailureKind, ProgramError

__all__ = ["TimeFormatError", "format_time", "parse_beginning", "parse_time", "shortest_unit"]


class TimeFormatError(ProgramError):
    """A pattern with letters that have no meaning here."""

    kind = FailureKind.PERMANENT


_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_MONTHS = list(calendar.month_abbr), list(calendar.month_name)
_DAYS = list(calendar.day_abbr), list(calendar.day_name)
Write = Callable[[datetime.datetime], str]


@functools.lru_cache(maxsize=128)
def _writers(pattern: str) -> tuple[Write, ...]:
    return tuple(_writer(match) for match in _TOKEN.finditer(pattern))


def _week(moment: datetime.datetime) -> int:
    """Weeks begin on Sunday; the first one has the first of January."""
    saturday = moment + datetime.timedelta(days=6 - moment.isoweekday() % 7)
    return (saturday.timetuple().tm_yday - 1) // 7 + 1


def _writer(match: re.Match[str]) -> Write:
    text = match[0]
    if match[1] is not None:
        quoted = match[1].replace("''", "'") or "'"
        return lambda moment: quoted
    if match[2] is None:
        return lambda moment: text
    letter, size = match[2], len(text)
    numbers: dict[str, Callable[[datetime.datetime], int]] = {
        "d": lambda moment: moment.day,
        "D": lambda moment: moment.timetuple().tm_yday,
        "H": lambda moment: moment.hour,
        "k": lambda moment: moment.hour or 24,
        "h": lambda moment: moment.hour % 12 or 12,
        "K": lambda moment: moment.hour % 12,
        "m": lambda moment: moment.minute,
        "Q": lambda moment: (moment.month + 2) // 3,
        "e": lambda moment: moment.isoweekday() % 7 + 1,
        "w": _week,
        "s": lambda moment: moment.second,
    }
    if letter in numbers:
        number = numbers[letter]
        return lambda moment: f"{number(moment):0{size}d}"
    if letter in "yu":
        if size == 2:
            return lambda moment: f"{moment.year % 100:02d}"
        return lambda moment: f"{moment.year:0{size}d}"
    if letter in "ML":
        if size <= 2:
            return lambda moment: f"{moment.month:0{size}d}"
        return lambda moment: _MONTHS[size > 3][moment.month]
    if letter == "E":
        return lambda moment: _DAYS[size > 3][moment.weekday()]
    if letter == "S":
        return lambda moment: f"{moment.microsecond:06d}000"[:size]
    if letter == "a":
        return lambda moment: "AM" if moment.hour < 12 else "PM"
    raise TimeFormatError(f"The letter {letter!r} of the pattern has no meaning here; in quotes it is itself.")


def format_time(moment: datetime.datetime, pattern: str) -> str:
    """A date and time as text.

    >>> import datetime
    >>> format_time(datetime.datetime(2024, 1, 2, 15, 4), "yyyy-MM-dd 'at' h:mm a")
    '2024-01-02 at 3:04 PM'
    """
    return "".join(write(moment) for write in _writers(pattern))


_UNITS = {"second": "s", "minute": "m", "hour": "HkhKa"}


def shortest_unit(pattern: str) -> str | None:
    """The shortest unit of time that a pattern writes: what is shorter makes no difference. None: any.

    >>> shortest_unit("yyyy-MM-dd"), shortest_unit("HH:mm"), shortest_unit("ss.SSS"), shortest_unit("d 'S'")
    ('day', 'minute', None, 'day')
    """
    letters = {match[2] for match in _TOKEN.finditer(pattern) if match[2] is not None}
    if "S" in letters:
        return None
    return next((unit for unit, written in _UNITS.items() if letters & set(written)), "day")


_GROUPS = {
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "h": "half",
    "S": "fraction",
    "M": "month",
    "L": "month",
    "y": "year",
    "u": "year",
    "a": "part",
    "E": "weekday",
}


@functools.lru_cache(maxsize=128)
def _reader(pattern: str) -> re.Pattern[str]:
    parts = []
    for match in _TOKEN.finditer(pattern):
        text, letter = match[0], match[2]
        if letter not in _GROUPS:
            parts.append(_literal(match))
        else:
            parts.append(f"(?P<{_GROUPS[letter]}>{_read_as(letter, len(text))})")
    return re.compile("".join(parts))


def _literal(match: re.Match[str]) -> str:
    """What is not a letter with a meaning, as it is."""
    if match[1] is not None:
        return re.escape(match[1].replace("''", "'") or "'")
    if match[2] is not None:
        raise TimeFormatError(f"The letter {match[2]!r} of the pattern has no meaning here; in quotes it is itself.")
    return re.escape(match[0])


def _read_as(letter: str, size: int) -> str:
    if letter in "ML" and size > 2:
        return r"[A-Za-z]+"
    if letter in "aE":
        return r"[A-Za-z]+"
    if letter in "yu":
        return rf"\d{{{size}}}" if size != 1 else r"\d{1,4}"
    return rf"\d{{{size}}}" if size > 1 else r"\d{1,2}"


def parse_time(text: str, pattern: str) -> datetime.datetime | None:
    """A date and time out of text; None if it is not written like that.

    >>> parse_time("02/01/2024 03", "dd/MM/yyyy HH")
    datetime.datetime(2024, 1, 2, 3, 0)
    """
    match = _reader(pattern).fullmatch(text.strip())
    if match is None:
        return None
    found = match.groupdict()
    if len(found.get("year") or "") == 2:
        found["year"] = f"20{found['year']}"
    micros = int((found.get("fraction") or "").ljust(6, "0")[:6])
    return _moment(found, datetime.timedelta(microseconds=micros))


def parse_beginning(text: str, pattern: str) -> datetime.datetime | None:
    """A date and time out of the beginning of a text, as Java's ``SimpleDateFormat`` reads it: numbers have any number
    of digits, spaces before them count for nothing, ``SSS`` is a number of milliseconds, and anything may follow.

    >>> parse_beginning("2024-3-10 03:00:00.000", "yyyy-MM-dd HH:mm")
    datetime.datetime(2024, 3, 10, 3, 0)
    """
    match = _beginning_reader(pattern).match(text)
    if match is None:
        return None
    found = match.groupdict()
    year = found.get("year") or ""
    if len(year) == 2 and "yyy" not in pattern and "uuu" not in pattern:
        found["year"] = str(_year_of_two_digits(int(year)))
    return _moment(found, datetime.timedelta(milliseconds=int(found.get("fraction") or 0)))


def _year_of_two_digits(year: int) -> int:
    """The one that is at most 80 years ago, or else at most 20 ahead."""
    first = datetime.date.today().year - 80
    return first + (year - first) % 100


@functools.lru_cache(maxsize=128)
def _beginning_reader(pattern: str) -> re.Pattern[str]:
    # With the next one: a number that has another one right behind it has the digits that the pattern has for it.
    matches = list(_TOKEN.finditer(pattern))
    parts = []
    for match, after in zip(matches, [*matches[1:], None], strict=True):
        text, letter = match[0], match[2]
        if letter not in _GROUPS:
            parts.append(_literal(match))
            continue
        digits = rf"\d{{{len(text)}}}" if after is not None and _is_number(after) else r"\d+"
        read = digits if _is_number(match) else r"[A-Za-z]+"
        parts.append(rf"[ \t]*(?P<{_GROUPS[letter]}>{read})")
    return re.compile("".join(parts))


def _is_number(match: re.Match[str]) -> bool:
    letter = match[2]
    return letter is not None and letter not in "aE" and not (letter in "ML" and len(match[0]) > 2)


def _moment(found: dict[str, str | None], fraction: datetime.timedelta) -> datetime.datetime | None:
    """Of what was read; None if there is no such day or time."""
    month_text = found.get("month") or "1"
    try:
        month = int(month_text) if month_text.isdigit() else _MONTHS[len(month_text) > 3].index(month_text.title())
        hour = int(found.get("hour") or 0)
        if found.get("half") is not None:
            hour = int(found["half"] or 0) % 12 + (12 if (found.get("part") or "AM").upper() == "PM" else 0)
        year, day, minute, second = (int(found.get(name) or default) for name, default in _DEFAULTS)
        return datetime.datetime(year, month, day, hour, minute, second) + fraction
    except (ValueError, OverflowError):
        return None


_DEFAULTS = (("year", 1970), ("day", 1), ("minute", 0), ("second", 0))
