"""Text from a socket. A socket cannot be read twice, so what it sends is written to a log before it counts."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from firesteel.connectors.blocks import blocks, scattered, spread
from firesteel.connectors.record_log import RecordLog
from firesteel.connectors.source import CHUNK_RECORDS, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream.connectors.base import Source
from firesteel.errors import CheckpointError, ConnectorError, ProgramError

__all__ = ["SocketEnumerator", "SocketReader", "SocketSource"]

logger = logging.getLogger("firesteel.connectors.socket")

BYTES_PER_RECORD = 64
"""A guess at a record's length, for sizing batches; the sizes adapt to how long a batch takes."""
RETRY_SECONDS = 0.5
WARN_SECONDS = 30.0


class SocketSource(Source[list[bytes], str]):
    """Delimited text from a server."""

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = -1) -> None:
        self._enumerator = SocketEnumerator(hostname, port, delimiter, max_retry)
        self._reader = SocketReader(delimiter)

    def create_enumerator(self) -> SocketEnumerator:
        return self._enumerator

    def create_reader(self) -> SocketReader:
        return self._reader


class SocketEnumerator(SplitEnumerator[list[bytes]]):
    """Delimited text from a server. Bytes go to a log in the job's directory as they come; positions are the log's, and
    only what was synced to disk is offered. It connects when it is asked for more than it has: what it receives
    must not take the place of something that the log has lost, and whoever only repeats a batch receives nothing.

    Tasks get their text with their share, so they need no access to the log.
    """

    keeps_files = True
    bounded = False

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = -1) -> None:
        if not isinstance(port, int) or not 0 < port < 65536:
            raise ProgramError(f"A port is a number from 1 to 65535, got {port!r}.")
        if not delimiter:
            raise ProgramError("The delimiter of a socket stream must not be empty.")
        self._address = (hostname, port)
        self._delimiter = delimiter.encode()
        self._max_retry = max_retry

    def __getstate__(self) -> dict[str, Any]:
        # What start() made belongs to the process that runs the source.
        wanted = ("_address", "_delimiter", "_max_retry")
        return {name: value for name, value in self.__dict__.items() if name in wanted}

    def start(self, directory: str) -> None:
        self._log = RecordLog(directory, self._delimiter)
        # What an earlier run left half received is a record of its own: a new connection begins a new one.
        self._log.cut()
        self._offered = self._log.complete
        """No position of this log lies behind this."""
        self._ends = _Ends(0)
        self._counted: tuple[int, int, int] = (0, 0, 0)
        """The last answer of ``count``: from where, to where, and how many."""
        self._gone = False
        self._never_reached = ""
        self._stopping = threading.Event()
        self._connection: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def _check(self, position: int) -> None:
        """Raises if the log does not have what a position says was received."""
        if position > self._offered:
            raise CheckpointError(
                f"socket {self._address[0]}:{self._address[1]}: the job's position is {position}, but the log of what "
                f"was received, {self._log.path}, has {self._offered} bytes. It was cut off, or is not that of this "
                "checkpoint or savepoint. A socket cannot be read twice: put the file back to go on, or start the job "
                "without its checkpoint or savepoint."
            )

    def _connect(self) -> None:
        if self._thread is None and not self._stopping.is_set():
            self._thread = threading.Thread(target=self._receive, name="firesteel-socket", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        if not hasattr(self, "_stopping"):
            return
        self._stopping.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(2)
        self._log.close()

    def _receive(self) -> None:
        tries = 0
        reached = False
        while not self._stopping.is_set():
            reason: object = "the connection was closed"
            try:
                with socket.create_connection(self._address, timeout=5) as connection:
                    self._connection = connection
                    connection.settimeout(None)
                    logger.info("connected to %s:%s", *self._address)
                    tries, reached = 0, True
                    self._copy(connection)
            except OSError as error:
                reason = error
                logger.debug("socket %s:%s: %s", *self._address, error)
            # A broken connection ends the record it was in.
            self._keep(self._log.cut)
            tries += 1
            if 0 <= self._max_retry < tries:
                if not reached:
                    self._never_reached = f"Nothing answers at {self._address[0]}:{self._address[1]}: {reason}."
                self._gone = True
                return
            self._stopping.wait(RETRY_SECONDS)

    def _copy(self, connection: socket.socket) -> None:
        while not self._stopping.is_set():
            data = connection.recv(1 << 16)
            if not data:
                return
            if not self._keep(partial(self._log.append, data)):
                logger.error(
                    "socket %s:%s: %d bytes were received that could not be written to the job's folder before it "
                    "ended. They are lost.",
                    *self._address,
                    len(data),
                )
                return

    def _keep(self, write: Callable[[], None]) -> bool:
        """Writes to the log. That the disk is full is no fault of the connection, which stays: nothing more is read
        from it until there is room, and the sender waits. Returns False if the source was stopped before."""
        warned_at = -math.inf
        while True:
            try:
                write()
                break
            except OSError as error:
                now = time.monotonic()
                if now - warned_at >= WARN_SECONDS:
                    warned_at = now
                    logger.warning(
                        "socket %s:%s: what is received cannot be written to the job's folder (%s). Nothing is lost: "
                        "the source waits until it can.",
                        *self._address,
                        error,
                    )
                if self._stopping.wait(RETRY_SECONDS):
                    return False
        if warned_at > 0:
            logger.info("socket %s:%s: what is received can be written again", *self._address)
        return True

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        if self._gone and self._never_reached:
            raise ConnectorError(self._never_reached)
        self._check(position)
        self._connect()
        end = self._log.complete
        if end - position > max_records * BYTES_PER_RECORD:
            if self._ends.start != position:
                self._ends = _Ends(position)
            end = self._ends.within(self._log, max_records)
        self._offered = max(self._offered, end)
        return end

    def ended(self, position: int) -> bool:
        self._check(position)
        return self._gone and position >= self._log.complete

    def count(self, start: int, end: int) -> int:
        """How many there are, or as many as were asked for where there was no room for more: such a batch is full."""
        if end == start:
            return 0
        if self._counted[:2] != (start, end):
            self._counted = (start, end, len(self._log.records(start, end)))
        wanted = self._ends.wanted.get(end, 0) if self._ends.start == start else 0
        return max(self._counted[2], wanted)

    def size(self, start: int, end: int) -> int:
        return end - start

    def pending(self, position: int) -> int:
        return -(-(self._log.complete - position) // BYTES_PER_RECORD)

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[list[bytes]]]]:
        self._check(end)
        records = self._log.records(start, end)
        shares: list[list[bytes] | None]
        if len(records) < parallelism:
            shares = spread([[record] for record in records], scattered(start), parallelism)
        else:
            shares = [records[low:high] for low, high in filter(None, blocks(0, len(records), parallelism))]
        return [[SplitRange(share, 0, len(share))] if share else [] for share in shares]


class SocketReader(SourceReader[list[bytes], str]):
    """Decodes text: a share holds it."""

    def __init__(self, delimiter: str = "\n") -> None:
        self._lines = delimiter == "\n"

    def read(self, split: list[bytes], start: int, end: int) -> Iterator[Records[str]]:
        for first in range(start, end, CHUNK_RECORDS):
            texts = [record.decode("utf-8", "replace") for record in split[first : min(first + CHUNK_RECORDS, end)]]
            # As in Flink, lines may end in \r\n.
            yield Records([text.removesuffix("\r") for text in texts] if self._lines else texts)


class _Ends:
    """Where batches may end that begin at one position, as far as that was asked. It is asked repeatedly: for fewer
    records where they are too many bytes, and while a batch waits for its time."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._known: dict[int, int] = {}
        """By how many records there was room for."""
        self._first: int | None = None
        """Where the first record ends, if it was found to be longer than a batch."""
        self.wanted: dict[int, int] = {}
        """By end, how many records there was room for at last."""

    def within(self, log: RecordLog, records: int) -> int:
        """The last end for which there is room, or else the first one."""
        end = self._known.get(records)
        if end is None:
            end = self._known[records] = self._find(log, self.start + records * BYTES_PER_RECORD)
        self.wanted[end] = records
        return end

    def _find(self, log: RecordLog, reach: int) -> int:
        if self._first is None or self._first <= reach:
            end = log.last_end(self.start, reach)
            if end is not None:
                return end
            self._first = log.first_end(self.start, reach)
        return self._first
