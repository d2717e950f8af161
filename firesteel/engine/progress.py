"""The live line on a terminal: what is being started, then batch, input rate, watermark, lag."""

from __future__ import annotations

import contextlib
import datetime
import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

if TYPE_CHECKING:
    from firesteel.engine.inbox import Progress

__all__ = ["ProgressLine", "beside_progress", "describe_watermark"]


def describe_watermark(watermark: int | None) -> str:
    """
    >>> describe_watermark(1_700_000_000_123), describe_watermark(None), describe_watermark(MAX_WATERMARK)
    ('2023-11-14T22:13:20.123Z', '-', 'end')
    """
    if watermark is None or watermark == MIN_TIMESTAMP:
        return "-"
    if watermark == MAX_WATERMARK:
        return "end"
    try:
        moment = datetime.datetime.fromtimestamp(watermark / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(watermark)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_ERASE = "\r\x1b[2K"
_SCREEN = threading.RLock()
"""Held while something is written to the terminal: a terminal has one cursor."""
_drawn = False
"""Whether a progress line stands on the terminal."""


@contextlib.contextmanager
def beside_progress() -> Iterator[None]:
    """Around other output to the terminal: it gets a line of its own, and the progress line comes back after it."""
    with _SCREEN:
        _erase()
        yield


def _erase() -> None:
    global _drawn
    if _drawn:
        sys.stderr.write(_ERASE)
        sys.stderr.flush()
        _drawn = False


def _draw(text: str) -> None:
    global _drawn
    with _SCREEN:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(_ERASE + text[:width])
        sys.stderr.flush()
        _drawn = True


def _make_room(record: logging.LogRecord) -> bool:
    """A filter of the log that filters nothing: its lines get a line of their own, too."""
    with beside_progress():
        return True


_users: dict[logging.Handler, int] = {}
"""How many progress lines there are beside a handler: jobs may run side by side."""


def _watch(handlers: list[logging.Handler]) -> None:
    with _SCREEN:
        for handler in handlers:
            _users[handler] = _users.get(handler, 0) + 1
            handler.addFilter(_make_room)


def _leave(handlers: list[logging.Handler]) -> None:
    with _SCREEN:
        for handler in handlers:
            _users[handler] -= 1
            if not _users[handler]:
                del _users[handler]
                handler.removeFilter(_make_room)


def _handlers() -> list[logging.Handler]:
    """Those that may write to the terminal, for most programs."""
    return [*logging.getLogger().handlers, *([logging.lastResort] if logging.lastResort is not None else [])]


class ProgressLine:
    """Redraws one line on stderr twice a second, from the engine's start on; silent where stderr is no terminal."""

    def __init__(self, name: str, progress: Progress, wanted: bool | None) -> None:
        self._name = name
        self._progress = progress
        self._shown = sys.stderr.isatty() if wanted is None else wanted
        self._starting = ""
        self._filtered: list[logging.Handler] = []
        self._began = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="firesteel-progress", daemon=True)

    def start(self, what: str) -> None:
        """Says at once ``what`` is being started, which may take seconds."""
        if self._shown:
            self._starting = what
            self._filtered = _handlers()
            _watch(self._filtered)
            self._began = time.monotonic()
            _draw(self.text())
            self._thread.start()

    def started(self) -> None:
        self._starting = ""

    def stop(self) -> None:
        """Takes the line away."""
        if self._shown and self._thread.is_alive():
            self._done.set()
            self._thread.join()
            _leave(self._filtered)
            with beside_progress():
                """Nothing comes in its place."""

    def summary(self, text: str) -> None:
        """The last line, which stays."""
        if self._shown:
            with beside_progress():
                sys.stderr.write(text + "\n")
                sys.stderr.flush()

    def text(self) -> str:
        progress = self._progress
        if self._starting:
            return f"{self._name} · {self._starting} … {time.monotonic() - self._began:.0f} s"
        if not progress.batches:
            return f"{self._name} · first batch … {time.monotonic() - self._began:.0f} s"
        rate = progress.batch_records / progress.batch_seconds if progress.batch_seconds else 0.0
        lag = ""
        if progress.watermark is not None and MIN_TIMESTAMP < progress.watermark < MAX_WATERMARK:
            lag = f" · lag {max(0.0, time.time() - progress.watermark / 1000):.1f} s"
        return (
            f"{self._name} · batch {progress.batches} · {rate:,.0f} records/s · {progress.records:,} records "
            f"· watermark {describe_watermark(progress.watermark)}{lag}"
        )

    def _redraw(self) -> None:
        while not self._done.wait(0.5):
            _draw(self.text())
