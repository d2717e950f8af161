"""What functions log and print inside Spark's Python workers: sent to the driver at once, with operator and subtask.

It goes over the line that each process has to its job's driver (:mod:`.lifeline`), so it arrives from other machines,
too, and before a failure that ends the batch. While that line is not there yet it waits; where there is none, or it has
broken, it goes to the process's standard error, as everything else that a worker writes.
"""

from __future__ import annotations

import io
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, TextIO

from firesteel.common.log_format import TextFormatter
from firesteel.runtime.task_log import current_subtask, entry_of, record_of

__all__ = ["LINE", "WorkerLog"]

WAITING = 1000
"""So many records wait for the line."""
STDOUT, STDERR = "stdout", "stderr"


class WorkerLog:
    """The log of one process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._line: socket.socket | None = None
        self._waiting: list[dict[str, Any]] | None = None
        """What is to be sent once there is a line; None if none is to be expected."""
        self._before: dict[str, int] = {}
        """By logger the level that it had before the job."""
        self._shown_from = logging.WARNING
        """From which level on records are shown where nothing else is said."""
        self._real = sys.stderr
        self._text = TextFormatter(times=False)

    def expect(self, levels: Mapping[str, str]) -> None:
        """A line of a new job will come, or it will be said that it does not. ``levels``: the job's, by logger."""
        with self._lock:
            if self._line is None and self._waiting is None:
                self._waiting = []
            self._capture()
            for name, level in self._before.items():
                logging.getLogger(name or None).setLevel(level)
            self._before.clear()
            self._set_levels(levels)

    def _set_levels(self, levels: Mapping[str, str]) -> None:
        """The root logger has no name."""
        for name, level in levels.items():
            logger = logging.getLogger(name or None)
            self._before.setdefault(name, logger.level)
            logger.setLevel(level)
        if logging.lastResort is not None:
            # What loggers let through is to be shown.
            chosen = [logging.getLogger(name or None).level for name in self._before]
            logging.lastResort.setLevel(min([self._shown_from, *chosen]))

    def attach(self, line: socket.socket) -> None:
        """The line of the job that this process works for now."""
        with self._lock:
            waiting, self._waiting, self._line = self._waiting or [], None, line
            for entry in waiting:
                self.send(entry)

    def detach(self, line: socket.socket | None = None) -> None:
        """That line is over, or could not be had. Without one: whatever there is."""
        with self._lock:
            if line is None or line is self._line:
                waiting, self._waiting, self._line = self._waiting or [], None, None
                for entry in waiting:
                    self.send(entry)

    def received(self, message: Mapping[str, Any]) -> None:
        if "levels" in message:
            self._set_levels(message["levels"])

    def send(self, entry: dict[str, Any]) -> None:
        with self._lock:
            if self._line is not None:
                try:
                    self._line.sendall(json.dumps({"log": entry}).encode() + b"\n")
                    return
                except OSError:
                    self._line = None
            elif self._waiting is not None and len(self._waiting) < WAITING:
                self._waiting.append(entry)
                return
            self._write(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        """As text, where this process's output goes."""
        if entry["name"] in (STDOUT, STDERR):
            text = str(entry["message"])
        else:
            text = self._text.format(record_of(entry))
        try:
            self._real.write(text + "\n")
            self._real.flush()
        except (OSError, ValueError):
            # Nobody is there to receive it.
            return

    def _capture(self) -> None:
        if not isinstance(sys.stdout, _Lines):
            self._real = sys.stderr
            sys.stdout, sys.stderr = _Lines(STDOUT, sys.stdout, self), _Lines(STDERR, sys.stderr, self)
            # Where a program sets up its own logging in a worker, that counts: then nothing comes here.
            fallback = _Handler(self)
            if logging.lastResort is not None:
                self._shown_from = logging.lastResort.level
            logging.lastResort = fallback

    def forget(self) -> None:
        """In a forked child: the line is the parent's."""
        self._lock = threading.RLock()
        self._line = self._waiting = None


class _Handler(logging.Handler):
    def __init__(self, log: WorkerLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.send(entry_of(record))


class _Lines(io.TextIOBase):
    """What is printed, line by line. Each thread has lines of its own."""

    def __init__(self, name: str, real: TextIO, log: WorkerLog) -> None:
        self._name = name
        self._real = real
        self._log = log
        self._begun = threading.local()

    def write(self, text: str) -> int:
        whole = getattr(self._begun, "text", "") + text
        *lines, self._begun.text = whole.split("\n")
        for line in lines:
            self._log.send(
                {"name": self._name, "level": logging.INFO, "message": line, "time": time.time(), **current_subtask()}
            )
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._real.fileno()

    def isatty(self) -> bool:
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


LINE = WorkerLog()
