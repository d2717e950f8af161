"""The live line on a terminal: batch, input rate, watermark, lag."""

from __future__ import annotations

import datetime
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

if TYPE_CHECKING:
    from firesteel.engine.inbox import Progress

__all__ = ["ProgressLine", "describe_watermark"]


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


class ProgressLine:
    """Redraws one line on stderr twice a second; silent where stderr is no terminal."""

    def __init__(self, name: str, progress: Progress, wanted: bool | None) -> None:
        self._name = name
        self._progress = progress
        self._shown = sys.stderr.isatty() if wanted is None else wanted
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="firesteel-progress", daemon=True)

    def start(self) -> None:
        if self._shown:
            self._thread.start()

    def stop(self) -> None:
        if self._shown:
            self._done.set()
            self._thread.join()

    def text(self) -> str:
        progress = self._progress
        rate = progress.batch_records / progress.batch_seconds if progress.batch_seconds else 0.0
        lag = ""
        if progress.watermark is not None and MIN_TIMESTAMP < progress.watermark < MAX_WATERMARK:
            lag = f" · lag {max(0.0, time.time() - progress.watermark / 1000):.1f} s"
        return (
            f"{self._name} · batch {progress.batches} · {rate:,.0f} records/s · {progress.records:,} records "
            f"· watermark {describe_watermark(progress.watermark)}{lag}"
        )

    def _draw(self) -> None:
        while not self._done.wait(0.5):
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r\x1b[2K" + self.text()[:width])
            sys.stderr.flush()
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
