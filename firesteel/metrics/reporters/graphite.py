"""Graphite: lines of name, number and time."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence

from firesteel.errors import ConfigurationError
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import Sample

__all__ = ["GraphiteReporter"]

_UNFIT = re.compile(r"[^a-zA-Z0-9._:#%+=-]")
"""What is no part of a name, or has a meaning in Graphite's functions."""


class GraphiteReporter(MetricReporter):
    """To ``host`` and ``port``, by ``protocol`` TCP or UDP."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        self._address = (settings.text("host", "127.0.0.1"), settings.number("port", 2003))
        self._protocol = settings.text("protocol", "TCP").upper()
        if self._protocol not in ("TCP", "UDP"):
            raise ConfigurationError(f"metrics.reporter.{settings.name}.protocol must be TCP or UDP.")
        self._seconds = settings.seconds("timeout", 10.0)
        self._delimiter = settings.text("scope.delimiter", ".")

    def report(self, samples: Sequence[Sample]) -> None:
        now = int(time.time())
        lines = [f"{name} {number} {now}\n".encode() for name, number in self._numbers(samples)]
        if self._protocol == "TCP":
            # A connection each time: a server that was started again is found, and nothing is held open for long.
            with socket.create_connection(self._address, self._seconds) as connection:
                connection.sendall(b"".join(lines))
            return
        family = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
            for line in lines:
                datagrams.sendto(line, self._address)

    def _numbers(self, samples: Sequence[Sample]) -> Iterator[tuple[str, int | float]]:
        for sample in samples:
            base = _UNFIT.sub("_", sample.identifier(self._delimiter))
            for part, number in sample.numbers():
                yield (f"{base}{self._delimiter}{part}" if part else base), number
