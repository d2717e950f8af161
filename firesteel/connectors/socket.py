"""Text from a socket. A socket cannot be read twice, so what it sends is written to a log before it counts."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from typing import IO, Any

from firesteel.connectors.blocks import blocks, scattered, spread
from firesteel.connectors.source import CHUNK_RECORDS, Chunks, SplitSource
from firesteel.errors import ProgramError, SetupError

__all__ = ["SocketSource"]

logger = logging.getLogger("firesteel.connectors.socket")

RETRY_SECONDS = 0.5


class SocketSource(SplitSource):
    """Delimited text from a server. Bytes go to a log file in the job's directory as they come; a position is
    a number of bytes of that log, always at the end of a record, and only what was synced to disk is offered.

    Tasks get their text with their share, so they need no access to the log.
    """

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
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, "socket.log")
        self._log: IO[bytes] = open(self._path, "ab")  # noqa: SIM115 - closed by stop()
        self._durable = os.path.getsize(self._path)
        """Bytes that a restart would find."""
        self._complete = self._end_of_records()
        # What an earlier run left half received is a record of its own: a new connection begins a new one.
        self._end_record()
        self._counts: dict[tuple[int, int], int] = {}
        self._gone = False
        self._never_reached = ""
        self._stopping = threading.Event()
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._receive, name="firesteel-socket", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if not hasattr(self, "_stopping"):
            return
        self._stopping.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(2)
        self._log.close()

    def _end_of_records(self) -> int:
        """The end of the last complete record in the log; a crash may have left half a one behind it."""
        with open(self._path, "rb") as file:
            content = file.read()
        return content.rfind(self._delimiter) + len(self._delimiter) if self._delimiter in content else 0

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
            self._end_record()
            tries += 1
            if 0 <= self._max_retry < tries:
                if not reached:
                    self._never_reached = f"Nothing answers at {self._address[0]}:{self._address[1]}: {reason}."
                self._gone = True
                return
            self._stopping.wait(RETRY_SECONDS)

    def _copy(self, connection: socket.socket) -> None:
        tail = b""
        while not self._stopping.is_set():
            data = connection.recv(1 << 16)
            if not data:
                return
            self._append(data)
            # The delimiter may be cut in two by the network.
            joined = tail + data
            end = joined.rfind(self._delimiter)
            if end >= 0:
                behind = len(joined) - end - len(self._delimiter)
                self._complete = self._durable - behind
                tail = joined[end + len(self._delimiter) :]
            else:
                tail = joined
            tail = tail[-len(self._delimiter) :]

    def _append(self, data: bytes) -> None:
        self._log.write(data)
        self._log.flush()
        os.fsync(self._log.fileno())
        self._durable += len(data)

    def _end_record(self) -> None:
        """A broken connection ends the record it was in."""
        if self._durable > self._complete:
            self._append(self._delimiter)
            self._complete = self._durable

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        if self._gone and self._never_reached:
            raise SetupError(self._never_reached)
        complete: int = self._complete
        if complete - position > max_records * 64:
            text = self._slice(position, position + max_records * 64)
            end = text.rfind(self._delimiter)
            if end >= 0:
                return position + end + len(self._delimiter)
        return max(complete, position)

    def ended(self, position: int) -> bool:
        return self._gone and position >= self._complete

    def count(self, start: int, end: int) -> int:
        return self._slice(start, end).count(self._delimiter) if end > start else 0

    def _slice(self, start: int, end: int) -> bytes:
        with open(self._path, "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def plan(self, start: int, end: int, parallelism: int) -> list[Any]:
        records = self._slice(start, end).split(self._delimiter)[:-1]
        if len(records) < parallelism:
            return spread([[record] for record in records], scattered(start), parallelism)
        return [records[low:high] for low, high in filter(None, blocks(0, len(records), parallelism))]

    def read(self, share: Any) -> Chunks:
        for start in range(0, len(share), CHUNK_RECORDS):
            part = share[start : start + CHUNK_RECORDS]
            texts = [record.decode("utf-8", "replace") for record in part]
            # As in Flink, lines may end in \r\n.
            yield [text.removesuffix("\r") for text in texts] if self._delimiter == b"\n" else texts, None
