"""Which folder a record goes to."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ProgramError, short_repr

__all__ = ["BucketAssigner", "ByBatch", "check_bucket"]


class BucketAssigner(ABC):
    """Names the bucket of each record: a folder below the sink's path. Subclass it for buckets of your own.

    >>> class ByCountry(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"country={element['country']}"
    >>> ByCountry().get_bucket_id({"country": "fr"}, None)
    'country=fr'
    """

    @abstractmethod
    def get_bucket_id(self, element: Any, context: SinkFunction.Context) -> str:
        """A relative path; empty for the sink's own folder."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files in the sink's own folder."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """A bucket per stretch of processing time. The format has Java's letters ``y M d H m s S``; text between
        single quotes stands for itself. Without a time zone it is the machine's."""
        return _DateTime(format_str, timezone_id)


class ByBatch(BucketAssigner):
    """Where all records of a batch have the same bucket: they have the same processing time."""

    def get_bucket_id(self, element: Any, context: SinkFunction.Context) -> str:
        return self.bucket_at(context.current_processing_time())

    @abstractmethod
    def bucket_at(self, now: int) -> str:
        """The bucket of all records at a processing time."""


class _BasePath(ByBatch):
    def bucket_at(self, now: int) -> str:
        return ""


class _DateTime(ByBatch):
    """
    >>> moment = type("Context", (), {"current_processing_time": lambda self: 1_700_000_000_123})()
    >>> _DateTime("yyyy-MM-dd--HH", "UTC").get_bucket_id(None, moment)
    '2023-11-14--22'
    >>> _DateTime("'day='dd/HH'h'", "Asia/Tokyo").get_bucket_id(None, moment)
    'day=15/07h'
    """

    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._pieces = _parsed(format_str)
        self._zone = timezone_id
        self._last = (-1, "")
        _zone_of(timezone_id)

    def bucket_at(self, now: int) -> str:
        # All records of a batch have the same time.
        if self._last[0] != now:
            moment = datetime.datetime.fromtimestamp(now / 1000, _zone_of(self._zone))
            self._last = (now, "".join(_shown(letter, width, moment) for letter, width in self._pieces))
        return self._last[1]


def _zone_of(name: str | None) -> datetime.tzinfo | None:
    if name is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::(\d\d))?", name)
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        return datetime.timezone(sign * datetime.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ProgramError(f"No such time zone: {name!r}. Write 'Europe/Paris', 'UTC' or 'GMT+02:00'.") from None


_PIECE = re.compile(r"'(?P<quoted>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>[^A-Za-z])")


def _parsed(pattern: str) -> list[tuple[str, int]]:
    """Letters with how often they stand there; literal text with 0."""
    pieces = []
    for found in _PIECE.finditer(pattern):
        letters = found["letters"]
        if letters is None:
            # Two quotes are one.
            pieces.append((found["other"] or found["quoted"] or "'", 0))
            continue
        if letters[0] not in "yuMdHmsS":
            raise ProgramError(
                f"The format {pattern!r} has the letter {letters[0]!r}, which buckets by time do not know. They "
                "know y, M, d, H, m, s and S; other text stands between single quotes."
            )
        pieces.append((letters[0], len(letters)))
    return pieces


def _shown(letter: str, width: int, moment: datetime.datetime) -> str:
    if width == 0:
        return letter
    if letter in "yu":
        return f"{moment.year % 100:02d}" if width == 2 else f"{moment.year:0{width}d}"
    if letter == "M" and width >= 3:
        return moment.strftime("%b" if width == 3 else "%B")
    if letter == "S":
        return f"{moment.microsecond:06d}"[:width]
    number = {"M": moment.month, "d": moment.day, "H": moment.hour, "m": moment.minute, "s": moment.second}[letter]
    return f"{number:0{width}d}"


def check_bucket(bucket: Any) -> str:
    """A bucket's name, if it is one that stays below the sink's folder."""
    if not isinstance(bucket, str):
        raise ProgramError(f"get_bucket_id() returns a string, got {short_repr(bucket, 80)}.")
    parts = bucket.split("/") if bucket else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ProgramError(f"A bucket is a relative path below the sink's folder, got {bucket!r}.")
    return bucket
