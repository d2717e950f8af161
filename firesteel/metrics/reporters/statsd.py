"""StatsD: each number as a gauge, in datagrams."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence

from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import Sample

__all__ = ["StatsDReporter"]

LARGEST = 1400
"""Bytes of a datagram that pass any network in one piece."""
_UNFIT = re.compile(r"[:|@\s]")


class StatsDReporter(MetricReporter):
    """To ``host`` and ``port``."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        self._address = (settings.text("host", "127.0.0.1"), settings.number("port", 8125))
        family = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0][0]
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._delimiter = settings.text("scope.delimiter", ".")

    def report(self, samples: Sequence[Sample]) -> None:
        datagram: list[str] = []
        size = 0
        for line in self._lines(samples):
            if size + len(line) > LARGEST and datagram:
                self._send(datagram)
                datagram, size = [], 0
            datagram.append(line)
            size += len(line) + 1
        if datagram:
            self._send(datagram)

    def _send(self, lines: list[str]) -> None:
        self._socket.sendto("\n".join(lines).encode(), self._address)

    def _lines(self, samples: Sequence[Sample]) -> Iterator[str]:
        for sample in samples:
            base = _UNFIT.sub("-", sample.identifier(self._delimiter))
            for part, number in sample.numbers():
                name = f"{base}{self._delimiter}{part}" if part else base
                if number < 0:
                    # A sign would change the gauge by so much: it has to be 0 before.
                    yield f"{name}:0|g\n{name}:{number}|g"
                else:
                    yield f"{name}:{number}|g"

    def close(self) -> None:
        self._socket.close()
