"""One subtask's part files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.files.buckets import BucketAssigner, ByBatch, check_bucket
from firesteel.connectors.files.compacting import CompactionSettings
from firesteel.connectors.files.layout import Layout
from firesteel.connectors.files.ledger import Ledger
from firesteel.connectors.files.parts import Finished, Format, InProgress, Part, RowFormat
from firesteel.connectors.files.rolling import RollingPolicy, size_limit
from firesteel.datastream.connectors.base import SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction

__all__ = ["FileSinkSettings", "FileWriter"]

APPENDED_TOGETHER = 1000
"""Records whose bytes are handed to the file system at once."""


@dataclass(frozen=True)
class FileSinkSettings:
    """All that a file sink was built with."""

    base: str
    form: Format
    assigner: BucketAssigner
    policy: RollingPolicy
    part_prefix: str = "part"
    part_suffix: str = ""
    check_interval: int = 60_000
    compaction: CompactionSettings | None = None


class FileWriter(SinkWriter):
    """Writes a part per bucket at a time."""

    def __init__(self, settings: FileSinkSettings, context: WriterContext) -> None:
        self._settings, self._context = settings, context
        self._layout = Layout(settings.base, context.name_prefix(), context.file_system(settings.base))
        self._resumes = settings.form.resumes and self._layout.files.appends
        """Whether a part may go on in the next batch."""
        self._ledger = Ledger(settings.base, context.name_prefix())
        self._parts: dict[str, Part] = {}
        self._committables: list[Finished | InProgress] = []
        self._generation = itertools.count()
        self._take_name()
        self._begun = False
        self._checked = 0
        limit = size_limit(settings.policy)
        if isinstance(settings.form, RowFormat) and isinstance(settings.assigner, ByBatch) and limit is not None:
            self._encode, self._limit, self._by_batch = settings.form.encoding(context), limit, settings.assigner
            # Nothing is asked of each record that can be asked of many.
            self.write_all = self._append_all

    def _take_name(self) -> None:
        """By another name the committer knows that parts of the one before have no future."""
        self._writer = f"{self._context.writer_id()}-{next(self._generation)}"
        settings, prefix = self._settings, self._context.name_prefix()
        self._names: Iterator[str] = (
            f"{settings.part_prefix}-{prefix}-{self._writer}-{number}{settings.part_suffix}"
            for number in itertools.count()
        )

    def _begin(self) -> None:
        """The first record of a batch, or its end: are the parts in progress still this writer's? (step 4)"""
        self._begun = True
        if self._parts:
            known = self._ledger.read()
            for part in self._parts.values():
                entry = known.get(part.path)
                if entry is None or entry.length != part.prepared:
                    self._give_up()
                    return

    def _give_up(self) -> None:
        parts, self._parts = self._parts, {}
        for part in parts.values():
            part.close()
        self._take_name()

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        if not self._begun:
            self._begin()
        bucket = self._settings.assigner.get_bucket_id(value, context)
        part = self._parts.get(bucket)
        if part is not None and self._settings.policy.should_roll_on_event(part.info, value):
            self._finish(bucket)
            part = None
        (part or self._new_part(bucket)).write(value, context.current_processing_time())

    def _new_part(self, bucket: str) -> Part:
        settings = self._settings
        part = Part(self._layout, check_bucket(bucket), next(self._names), settings.form, self._context)
        self._parts[bucket] = part
        return part

    def _append_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        """As ``write`` for each of them, where all of a batch have one bucket and only its size ends a part."""
        if not self._begun:
            self._begin()
        now = self._context.current_processing_time()
        bucket = self._by_batch.bucket_at(now)
        encoded = map(self._encode, values)
        while portion := list(itertools.islice(encoded, APPENDED_TOGETHER)):
            part, size = self._parts.get(bucket), sum(map(len, portion))
            if (0 if part is None else part.info.size) + size < self._limit:
                (part or self._new_part(bucket)).append(portion, size, now)
                continue
            for one in portion:
                part = self._parts.get(bucket)
                if part is not None and part.info.size >= self._limit:
                    self._finish(bucket)
                    part = None
                (part or self._new_part(bucket)).append([one], len(one), now)

    def _finish(self, bucket: str) -> None:
        part = self._parts[bucket]
        part.finish()
        del self._parts[bucket]
        self._committables.append(Finished(part.path, self._context.subtask(), self._writer))

    def flush(self, end_of_input: bool) -> None:
        if not self._begun:
            self._begin()
        self._checked = now = self._context.current_processing_time()
        policy = self._settings.policy
        for bucket, part in list(self._parts.items()):
            if (
                end_of_input
                or not self._resumes
                or policy.should_roll_on_checkpoint(part.info)
                or policy.should_roll_on_processing_time(part.info, now)
            ):
                self._finish(bucket)
            elif part.info.size != part.prepared:
                part.prepared = part.sync()
                self._committables.append(InProgress(part.path, self._context.subtask(), self._writer, part.prepared))

    def prepare_commit(self) -> list[Any]:
        self._begun = False
        committables, self._committables = self._committables, []
        return committables

    def wake_at(self) -> int | None:
        # Parts grow old without records, too.
        return self._checked + self._settings.check_interval if self._parts else None

    def close(self) -> None:
        self._give_up()
