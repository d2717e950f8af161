"""Time zones by their names."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["checked_zone", "clock_of", "machine_zone", "zone_of"]

_OFFSET = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC = frozenset(["Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu", "GMT", "Etc/GMT"])


def zone_of(name: str) -> datetime.tzinfo:
    """A zone by its name, as Java knows it: GMT+08:00 is one, too, and what is none is taken for UTC.

    >>> zone_of("GMT+08:00"), zone_of("nowhere")
    (datetime.timezone(datetime.timedelta(seconds=28800)), datetime.timezone.utc)
    """
    shift = _OFFSET.fullmatch(name)
    if shift is not None:
        minutes = int(shift[2]) * 60 + int(shift[3] or 0)
        return datetime.timezone(datetime.timedelta(minutes=minutes if shift[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.UTC


def checked_zone(name: str) -> str:
    """A session's zone as all of Arrow, Spark and :func:`clock_of` know it; ValueError for what is none.

    >>> checked_zone("Asia/Tokyo"), checked_zone("GMT+8"), checked_zone("Etc/UTC")
    ('Asia/Tokyo', '+08:00', 'UTC')
    """
    if name in _UTC:
        return "UTC"
    offset = _OFFSET.fullmatch(name)
    if offset is not None and int(offset[2]) <= 18 and int(offset[3] or 0) < 60:
        return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(name) from None
    return name


def clock_of(zone: str) -> datetime.tzinfo:
    """The clock of a zone of :func:`checked_zone`."""
    return zone_of(f"GMT{zone}" if zone[0] in "+-" else zone)


def machine_zone(root: Path = Path("/")) -> str:
    """The zone of this machine by its name, where Java finds it: TZ, or else what /etc/localtime is a link to, or what
    /etc/timezone says. UTC where none of them tells."""
    given = os.environ.get("TZ")
    link = str((root / "etc/localtime").resolve())
    for name in [given.removeprefix(":")] if given else [link, _line(root / "etc/timezone")]:
        zone = name.rpartition("zoneinfo/")[2]
        try:
            checked_zone(zone)
        except ValueError:
            continue
        return zone
    return "UTC"


def _line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
