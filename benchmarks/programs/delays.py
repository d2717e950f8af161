"""How long records of the group ``latency`` take, measured where their results arrive. Only the standard library."""

import os
import statistics
import time

import measure

PORT = int(os.environ.get("BENCH_SOCKET", "0"))
SETTLING_SECONDS = float(os.environ.get("BENCH_SETTLING", "10"))
LIVE_SECONDS = float(os.environ.get("BENCH_LIVE", "20"))


class Delays:
    """Reports once, some time after the first result."""

    def __init__(self, settling: float = SETTLING_SECONDS, live: float = LIVE_SECONDS) -> None:
        self._settling, self._live = settling, live
        self._first = 0.0
        self._found: list[float] = []
        self.reported = False

    def note(self, line: str) -> None:
        """A result, which begins with the line that it was made of."""
        now = time.time()
        if not self._first:
            self._first = now
            measure.progress("working")
        passed = now - self._first - self._settling
        if passed > self._live and self._found and not self.reported:
            self.reported = True
            self._report()
        elif passed > 0:
            self._found.append((now - float(line.split(",")[1])) * 1000)

    def _report(self) -> None:
        found = sorted(self._found)
        figures = {
            "median": statistics.median(found),
            "p99": found[len(found) * 99 // 100],
            "results a second": len(found) / self._live,
        }
        measure.report({"latency_ms": figures})
