"""What commands that show a job have in common: which job, as text or as JSON, times and tables."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.cli.targets import add_manager

__all__ = ["add_job", "as_json", "duration", "moment", "size", "table"]


def add_job(parser: argparse.ArgumentParser) -> None:
    """The options of a command that shows something of a job."""
    parser.add_argument("job", help="the job's id, the beginning of it, or its name; it may have ended")
    parser.add_argument("--json", action="store_true", help="print the whole answer as JSON")
    add_manager(parser)


def as_json(answer: Any) -> str:
    # Loads the engine, which --help need not wait for.
    from firesteel.engine.facade.encoding import encoded

    return json.dumps(encoded(answer), indent=2)


def moment(milliseconds: int | None) -> str:
    """A time of the clock, here and now.

    >>> moment(None)
    '-'
    """
    if milliseconds is None:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))


def duration(milliseconds: int) -> str:
    """
    >>> duration(250), duration(61_500), duration(7_261_000), duration(200_000_000)
    ('0.25 s', '1 min 1 s', '2 h 1 min', '2 d 7 h')
    """
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds % 60)} s"


def size(count: int | None) -> str:
    """
    >>> size(None), size(512), size(1536), size(5 << 20)
    ('-', '512 B', '1.5 KiB', '5.0 MiB')
    """
    if count is None:
        return "-"
    if count < 1024:
        return f"{count} B"
    value, units = float(count), iter(("KiB", "MiB", "GiB", "TiB", "PiB"))
    while value >= 1024:
        value, unit = value / 1024, next(units)
    return f"{value:.1f} {unit}"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """Lines with columns below each other; those in ``right`` end at the same place.

    >>> print("\\n".join(table(["name", "records"], [["map", "7"], ["filter", "1,000"]], right=[1])))
    name    records
    map           7
    filter    1,000
    """
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    for row in (titles, *rows):
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
