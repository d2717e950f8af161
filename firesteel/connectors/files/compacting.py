"""Puts committed parts together before readers see them, exactly once.

A part that is committed while compaction is on stays hidden and *waits*. A small file of the sink, the compaction's
log, says which parts do; it is written before the commit counts as done. When the strategy says so, the waiting parts
of a bucket become one file:

1. **Merge**, in a thread of its own: the new file is written under a hidden name and forced to disk.
   *Crash here:* it is in no log, so it is deleted when the job starts again; the parts still wait.
2. **Decide:** the log is written anew: this file takes the place of these parts.
   *Crash from here on:* the next start does steps 3 and 4 again, as far as they were not done.
3. The new file gets its visible name, in one step.
4. The parts are deleted, and the log forgets them.

When an attempt begins, and when the job ends, all that waits is put together, whatever the strategy says: nothing that
was committed stays hidden without a job. A stream that brings nothing has no commits; for parts that wait, each
interval without one counts as a checkpoint.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.files.layout import Layout
from firesteel.durable.versions import COMPACTION
from firesteel.filesystems import joined

__all__ = ["Compaction", "CompactionSettings"]


@dataclass(frozen=True)
class CompactionSettings:
    """What a sink was built with."""

    strategy: FileCompactStrategy
    compactor: FileCompactor


class Waiting(NamedTuple):
    """A part that is committed and not visible."""

    path: str
    size: int
    checkpoint: int


@dataclass
class _Log:
    waiting: dict[str, Waiting] = field(default_factory=dict)
    decided: dict[str, list[str]] = field(default_factory=dict)
    """By its visible path, the parts that a file takes the place of."""


class Compaction:
    """One sink's, in the driver. The log belongs to one process at a time, as the sink's commits do."""

    def __init__(
        self, layout: Layout, prefix: str, settings: CompactionSettings | None, idle_seconds: float = 60.0
    ) -> None:
        self._layout, self._files, self._settings = layout, layout.files, settings
        self._idle_seconds = idle_seconds
        self._checkpoint = 0
        """The last one, with those that silence counts for."""
        self._ahead = 0
        """How many those are."""
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()
        self._path = joined(layout.base, f".{prefix}.compaction")
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[str, Future[None]] = {}
        """By the part that is the first one of a group."""
        self._taken: set[str] = set()
        """Parts that are being merged."""
        self._log = self._read()

    @property
    def on(self) -> bool:
        return self._settings is not None

    # Live

    def add(self, paths: Sequence[str], checkpoint: int) -> None:
        """These parts are committed. Raises what went wrong in a thread since the last call."""
        self._raise_failures()
        with self._lock:
            checkpoint += self._ahead
            self._checkpoint = max(checkpoint, self._checkpoint)
            for path in paths:
                found = self._files.info(self._layout.hidden(path))
                if found is None and not self._files.exists(self._layout.final(path)):
                    raise FileNotFoundError(f"The finished part file {self._layout.hidden(path)} is gone.")
                if found is not None:
                    self._log.waiting[path] = Waiting(path, found.size, checkpoint)
            if paths:
                self._write()
            self._compact_due()
            self._listen_for_silence()

    def _compact_due(self) -> None:
        for group in self._due(self._checkpoint):
            self._taken.update(one.path for one in group)
            if self._pool is None:
                assert self._settings is not None
                threads = self._settings.strategy.num_compact_threads
                self._pool = ThreadPoolExecutor(threads, thread_name_prefix="firesteel-compaction")
            self._running[group[0].path] = self._pool.submit(self._compact, group)

    # Silence

    def silent(self) -> None:
        """An interval without a commit is over: it counts as a checkpoint for the parts that wait."""
        with self._lock:
            if any(path not in self._taken for path in self._log.waiting):
                self._ahead += 1
                self._checkpoint += 1
                self._compact_due()

    def _listen_for_silence(self) -> None:
        assert self._settings is not None
        if self._ticker is None and self._log.waiting and self._settings.strategy.num_checkpoints_before_compaction > 0:
            self._over.clear()
            self._ticker = threading.Thread(target=self._tick, name="firesteel-compaction-silence", daemon=True)
            self._ticker.start()

    def _tick(self) -> None:
        seen, due = self._checkpoint, time.monotonic() + self._idle_seconds
        while not self._over.wait(max(0.0, due - time.monotonic())):
            # A process that stood still may have been overtaken by another one: nothing is done before that is known.
            stood_still = time.monotonic() - due > self._idle_seconds
            if self._checkpoint == seen and not stood_still:
                self.silent()
            seen, due = self._checkpoint, time.monotonic() + self._idle_seconds

    def _stop_listening(self) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
            self._ticker = None

    def _raise_failures(self) -> None:
        for first in [first for first, future in self._running.items() if future.done()]:
            self._running.pop(first).result()

    def _due(self, checkpoint: int) -> list[list[Waiting]]:
        assert self._settings is not None
        strategy, found = self._settings.strategy, []
        for parts in self._by_bucket(one for one in self._log.waiting.values() if one.path not in self._taken):
            enough = 0 < strategy.size_threshold <= sum(one.size for one in parts)
            waited = checkpoint - min(one.checkpoint for one in parts) + 1
            if enough or 0 < strategy.num_checkpoints_before_compaction <= waited:
                found += self._groups(parts)
        return found

    @staticmethod
    def _by_bucket(parts: Any) -> list[list[Waiting]]:
        buckets: dict[str, list[Waiting]] = {}
        for one in parts:
            buckets.setdefault(os.path.dirname(one.path), []).append(one)
        return list(buckets.values())

    def _groups(self, parts: list[Waiting]) -> list[list[Waiting]]:
        assert self._settings is not None
        return [parts] if self._settings.compactor.merges else [[one] for one in parts]

    def buckets(self) -> set[str]:
        """Those with parts that wait."""
        with self._lock:
            return {os.path.dirname(path) for path in (*self._log.waiting, *self._log.decided)}

    # Steps 1 to 4

    def _compact(self, group: list[Waiting]) -> None:
        target = self._merge(group)
        with self._lock:
            for one in group:
                del self._log.waiting[one.path]
            self._log.decided[target] = [one.path for one in group if one.path != target]
            self._write()
            self._taken.difference_update(one.path for one in group)
        self._show(target)

    def _merge(self, group: list[Waiting]) -> str:
        """The path of a file, still hidden, that has what the parts of the group have."""
        assert self._settings is not None
        compactor, first = self._settings.compactor, group[0].path
        if len(group) == 1 and compactor.verbatim:
            return first
        bucket, name = os.path.split(first)
        target = os.path.join(bucket, f"compacted-{name}")
        hidden = self._layout.hidden(target)
        # What an earlier try has left.
        self._files.delete(hidden)
        with self._files.open_output(hidden) as out:
            compactor.compact([self._input(one) for one in group], out)
            if self._files.appends:
                self._files.sync(out)
        return target

    def _input(self, one: Waiting) -> InputFile:
        found = self._files.info(self._layout.hidden(one.path))
        if found is None:
            raise FileNotFoundError(f"The finished part file {self._layout.hidden(one.path)} is gone.")
        opened = InputFile(found.path, found.size, found.modified)
        # The way to it is the committer's, with the job's access.
        opened.__dict__["system"] = self._files
        return opened

    def _show(self, target: str) -> None:
        """Steps 3 and 4. Safe to repeat at any point."""
        hidden = self._layout.hidden(target)
        if self._files.exists(hidden):
            self._files.move(hidden, self._layout.final(target))
        for path in self._log.decided[target]:
            self._files.delete(self._layout.hidden(path))
        with self._lock:
            del self._log.decided[target]
            self._write()

    # When no writer is at work

    def finish(self) -> None:
        """Brings all that waits before readers."""
        self._stop_listening()
        running, self._running = self._running, {}
        for future in running.values():
            future.result()
        for target in list(self._log.decided):
            self._show(target)
        for parts in self._by_bucket(self._log.waiting.values()):
            if self._settings is not None:
                for group in self._groups(parts):
                    self._compact(group)
            else:
                # It was on when they were written, and is not any more.
                for one in parts:
                    del self._log.waiting[one.path]
                    self._log.decided[one.path] = []
                    self._write()
                    self._show(one.path)

    def close(self) -> None:
        self._stop_listening()
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    # The log

    def _read(self) -> _Log:
        try:
            found = json.loads(self._files.read(self._path))
        except FileNotFoundError:
            return _Log()
        COMPACTION.check(found.get("format"), self._path)
        return _Log({one[0]: Waiting(*one) for one in found["waiting"]}, found["decided"])

    def _write(self) -> None:
        log = self._log
        if not log.waiting and not log.decided:
            self._files.delete(self._path)
            return
        content = {"format": COMPACTION.version, "waiting": list(log.waiting.values()), "decided": log.decided}
        self._files.write(self._path, json.dumps(content).encode())
