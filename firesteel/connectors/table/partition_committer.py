"""Marks the partitions that are complete: step 3 of :mod:`.partition_commits`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.table.partition_report import PartitionReport
from firesteel.datastream.connectors.base import Committer, CommitterContext
from firesteel.durable.versions import PARTITIONS
from firesteel.errors import CheckpointError
from firesteel.filesystems import FileSystem, joined

__all__ = ["PartitionCommitter"]


class PartitionCommitter(Committer):
    """Commits parts through another committer, and then marks the partitions that are complete with them.

    Those that are not are in a hidden file of the sink, from which a restarted job goes on. A job that is stopped
    leaves them in a file that bears the name of the sink alone: for the job that begins with its savepoint, which has
    another id and the same sink.
    """

    def __init__(self, inner: FileCommitter, base: str, success_file: str, context: CommitterContext) -> None:
        self._inner, self._base, self._success_file = inner, base, success_file
        self._prefix = context.name_prefix()
        self._files: FileSystem = context.file_system(base)
        sink = hashlib.blake2b(context.sink_uid().encode(), digest_size=8).hexdigest()
        self._own, self._left = joined(base, f".{self._prefix}.partitions"), joined(base, f".{sink}.partitions")
        self._pending: dict[str, int] = {}
        """Partitions that are not marked yet, each with the time after which it is complete."""
        self._stored: dict[str, int] = {}
        """What the hidden file has of them."""
        self._reports: dict[int, PartitionReport] = {}
        """The last one of each subtask."""
        self._begun = False

    # Live

    def commit(self, committables: list[Any]) -> None:
        self._commit(committables, self._inner.commit)

    def _commit(self, committables: list[Any], commit: Callable[[list[Any]], None]) -> None:
        parts, reports = _apart(committables)
        commit(parts)
        self._take(reports)
        self._settle()

    def _take(self, reports: list[PartitionReport]) -> None:
        for report in reports:
            if any(each.parallelism != report.parallelism for each in self._reports.values()):
                self._reports = {}
            self._reports[report.subtask] = report
            for folder, complete_after in report.written.items():
                self._pending.setdefault(folder, complete_after)

    def _settle(self) -> None:
        """Marks what is complete and writes down what is not. A crash in between marks a partition once more."""
        for folder in self._complete():
            self._mark(folder)
            del self._pending[folder]
        self._store()

    def _complete(self) -> list[str]:
        reports = self._reports.values()
        if not self._pending or not reports or len(reports) < next(iter(reports)).parallelism:
            return []
        time, ended = min(report.time for report in reports), all(report.ended for report in reports)
        unseen = self._inner.unseen_buckets()
        return sorted(
            folder for folder, after in self._pending.items() if (ended or time > after) and folder not in unseen
        )

    def _mark(self, folder: str) -> None:
        place = joined(self._base, folder)
        hidden = joined(place, f".{self._prefix}{self._success_file}")
        # What an earlier try has left.
        self._files.delete(hidden)
        with self._files.open_output(hidden) as out:
            if self._files.appends:
                self._files.sync(out)
        self._files.move(hidden, joined(place, self._success_file))

    # After a failure, and at the end

    def recover(self, pending: list[Any]) -> None:
        self._inner.recover(_apart(pending)[0])
        if self._begun:
            # The job is over. What compaction had kept back is visible now.
            self._settle()
            self._leave()
        else:
            self._begun = True
            self._adopt()

    def _adopt(self) -> None:
        self._stored = self._read(self._own)
        self._pending = dict(self._stored)
        left = self._read(self._left)
        if left:
            self._pending = left | self._stored
            self._store()
            self._files.delete(self._left)

    def _leave(self) -> None:
        if self._pending:
            self._write(self._left, self._read(self._left) | self._pending)
            self._files.delete(self._own)

    def recover_and_commit(self, committables: list[Any]) -> None:
        self._commit(committables, self._inner.recover_and_commit)

    def abort(self, committables: list[Any]) -> None:
        self._inner.abort(_apart(committables)[0])

    def close(self) -> None:
        self._inner.close()

    # The hidden file

    def _read(self, path: str) -> dict[str, int]:
        try:
            content = self._files.read(path)
        except FileNotFoundError:
            return {}
        try:
            found = json.loads(content)
            number, partitions = found.get("format"), dict(found.get("partitions", {}))
        except (ValueError, TypeError, AttributeError):
            raise CheckpointError(
                f"The list of partitions that are to be marked, {path}, is damaged. Remove it to go on: the partitions "
                "in it are marked when rows are written to them again."
            ) from None
        PARTITIONS.check(number, path)
        return partitions

    def _store(self) -> None:
        if self._pending == self._stored:
            return
        if self._pending:
            self._write(self._own, self._pending)
        else:
            self._files.delete(self._own)
        self._stored = dict(self._pending)

    def _write(self, path: str, partitions: dict[str, int]) -> None:
        content = {"format": PARTITIONS.version, "partitions": partitions}
        self._files.write(path, json.dumps(content).encode())


def _apart(committables: list[Any]) -> tuple[list[Any], list[PartitionReport]]:
    """The parts, and the reports."""
    parts = [each for each in committables if not isinstance(each, PartitionReport)]
    return parts, [each for each in committables if isinstance(each, PartitionReport)]
