"""File sinks into one folder, and what is seen there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firesteel.common import Encoder, WatermarkStrategy
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.writer import FileWriter
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    RollingPolicy,
)
from firesteel.filesystems import LOCAL

NONE = WatermarkStrategy.no_watermarks()
FLAT = BucketAssigner.base_path_bucket_assigner()
TEXT = Encoder.simple_string_encoder()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}


def flat(folder: Path, encoder: Encoder = TEXT) -> Any:
    return FileSink.for_row_format(str(folder), encoder).with_bucket_assigner(FLAT)


def visible(folder: Path) -> list[Path]:
    """What a reader sees."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name[0] not in "._")


def hidden(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob(".*") if file.is_file())


def lines(folder: Path) -> list[str]:
    return [line for file in visible(folder) for line in file.read_text().splitlines()]


# Ends of a process


class Crash(Exception):
    """The process ends here."""


class Failing:
    """This machine's files, until the process ends at one of the steps that change something."""

    def __init__(self, folders: bool, dies_at: int) -> None:
        self.appends = folders
        self._left = dies_at

    def dies_never(self) -> None:
        self._left = 1 << 60

    def __getattr__(self, name: str) -> Any:
        action = getattr(LOCAL, name)
        if name not in ("open_output", "sync", "write", "move", "delete"):
            return action

        def step(*given: Any) -> Any:
            # Before the step: after it is before the next one.
            self._left -= 1
            if self._left <= 0:
                raise Crash(f"{name} {given}")
            return action(*given)

        return step


# Buckets and names


class ByRest(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"rest={element % 3}"


class Moment:
    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def current_processing_time(self) -> int:
        return self.milliseconds


# The writer and the committer by hand


class Bench:
    """One subtask's writer and the committer of a sink."""

    def __init__(self, folder: Path, policy: RollingPolicy | None = None) -> None:
        self.folder = folder
        self.settings = (
            flat(folder).with_rolling_policy(policy or RollingPolicy.default_rolling_policy()).build()._settings
        )
        self.identity = SinkIdentity()

    def committer(self) -> FileCommitter:
        return FileCommitter(str(self.folder), CommitterContext(self.identity))

    def writer(self, subtask: int = 0) -> FileWriter:
        return FileWriter(self.settings, WriterContext(self.identity, subtask, 2, clock=lambda: 0))

    @staticmethod
    def batch(writer: FileWriter, *values: Any, last: bool = False) -> list[Any]:
        for value in values:
            writer.write(value, Moment(0))  # type: ignore[arg-type]
        writer.flush(last)
        return writer.prepare_commit()
