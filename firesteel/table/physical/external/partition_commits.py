"""The options ``sink.partition-commit.*`` and ``partition.time-extractor.*`` of tables of files."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from firesteel.connectors.table.partition_commits import (
    SUCCESS_FILE,
    CommitTrigger,
    PartitionTimeTrigger,
    ProcessTimeTrigger,
)
from firesteel.connectors.table.partition_folders import folder_values
from firesteel.errors import InputError
from firesteel.table.functions.time_formats import TimeFormatError, parse_time
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError

__all__ = ["PARTITION_COMMIT_OPTIONS", "PartitionTimes", "partition_commit"]

PARTITION_COMMIT_OPTIONS = (
    "sink.partition-commit.trigger",
    "sink.partition-commit.delay",
    "sink.partition-commit.watermark-time-zone",
    "sink.partition-commit.policy.kind",
    "sink.partition-commit.policy.class",
    "sink.partition-commit.policy.class.parameters",
    "sink.partition-commit.success-file.name",
    "partition.time-extractor.kind",
    "partition.time-extractor.class",
    "partition.time-extractor.timestamp-pattern",
    "partition.time-extractor.timestamp-formatter",
)
_TRIGGERS = ("process-time", "partition-time")
_POLICIES = ("success-file", "metastore", "custom")
_DATE = re.compile(r"(\d{1,9})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d{1,9})?)?")


def partition_commit(options: TableOptions, partitions: Sequence[str]) -> tuple[CommitTrigger, str] | None:
    """When partitions are committed, and the name of the file that says so; None if nobody asked for it."""
    trigger = options.choice("sink.partition-commit.trigger", _TRIGGERS, _TRIGGERS[0])
    delay = options.duration("sink.partition-commit.delay", "0 s") or 0
    times = _times(options, partitions)
    kinds = options.text("sink.partition-commit.policy.kind")
    if kinds is None:
        return None
    for kind in (each.strip() for each in kinds.split(",")):
        if kind not in _POLICIES:
            raise options.refused("sink.partition-commit.policy.kind", "success-file")
        if kind == "metastore":
            raise SqlValidationError(
                f"Table {options.path}: the policy 'metastore' is for tables of Hive. Files have 'success-file'."
            )
        if kind == "custom":
            raise NotSupportedError(
                f"Not supported: a class of Java as the policy that commits partitions (table {options.path}). "
                "'sink.partition-commit.policy.kind' = 'success-file' is there."
            )
    if not partitions:
        # As in Flink: a table without partitions has nothing to commit.
        return None
    name = options.text("sink.partition-commit.success-file.name", SUCCESS_FILE) or SUCCESS_FILE
    if "/" in name:
        raise options.refused("sink.partition-commit.success-file.name", "the name of a file")
    return (ProcessTimeTrigger(delay) if trigger == _TRIGGERS[0] else PartitionTimeTrigger(times, delay)), name


def _times(options: TableOptions, partitions: Sequence[str]) -> PartitionTimes:
    if options.choice("partition.time-extractor.kind", ("default", "custom"), "default") == "custom":
        raise NotSupportedError(
            f"Not supported: a class of Java that tells the time of a partition (table {options.path}). "
            "'partition.time-extractor.timestamp-pattern' puts it together from the partition's columns."
        )
    zone = options.text("sink.partition-commit.watermark-time-zone", "UTC") or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise options.refused(
            "sink.partition-commit.watermark-time-zone", "a time zone such as 'Asia/Shanghai'"
        ) from None
    pattern = options.text("partition.time-extractor.timestamp-pattern")
    if pattern is not None and partitions and not _names(partitions).search(pattern):
        raise options.refused(
            "partition.time-extractor.timestamp-pattern", f"a text with ${' or $'.join(partitions)} in it"
        )
    formatter = options.text("partition.time-extractor.timestamp-formatter")
    if formatter is not None:
        try:
            parse_time("", formatter)
        except TimeFormatError as error:
            raise SqlValidationError(
                f"Table {options.path}: 'partition.time-extractor.timestamp-formatter': {error}"
            ) from None
    return PartitionTimes(options.path, tuple(partitions), pattern, formatter, zone)


def _names(partitions: Sequence[str]) -> re.Pattern[str]:
    """Of names that begin alike the longest counts."""
    return re.compile(r"\$(" + "|".join(map(re.escape, sorted(partitions, key=len, reverse=True))) + ")")


@dataclass(frozen=True)
class PartitionTimes:
    """The time of a partition in milliseconds, from the name of its folder.

    >>> times = PartitionTimes("t", ("dt", "hm"), "$dt $hm:00", None, "UTC")
    >>> times("dt=1970-01-01/hm=00%3A01")
    60000
    """

    table: str
    partitions: tuple[str, ...]
    pattern: str | None = None
    """A text with ``$`` and the names of columns; the first column alone where there is none."""
    formatter: str | None = None
    """Java's pattern for the time; ``yyyy-MM-dd``, with ``HH:mm:ss`` or without, where there is none."""
    zone: str = "UTC"

    def __call__(self, folder: str) -> int:
        values = dict(zip(self.partitions, folder_values(folder), strict=True))
        if self.pattern is None:
            text = values[self.partitions[0]]
        else:
            text = _names(self.partitions).sub(lambda found: values[found[1]], self.pattern)
        try:
            moment = _lenient(text) if self.formatter is None else parse_time(text, self.formatter)
        except (ValueError, OverflowError):
            moment = None
        if moment is None:
            wanted = self.formatter or "yyyy-MM-dd or yyyy-MM-dd HH:mm:ss"
            raise InputError(
                f"Table {self.table}: the partition {folder} has no time. 'sink.partition-commit.trigger' = "
                f"'partition-time' needs one of the form {wanted}, and 'partition.time-extractor.timestamp-pattern' = "
                f"{self.pattern!r} gives {text!r}."
            )
        return int(moment.replace(tzinfo=ZoneInfo(self.zone)).timestamp() * 1000)


def _lenient(text: str) -> datetime.datetime | None:
    """As Flink: a month of 13 is the next January, and 24:00:00 the next day."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups())
    years, month = divmod(month - 1, 12)
    first = datetime.datetime(year + years, month + 1, 1)
    return first + datetime.timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
