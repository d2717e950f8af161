"""What Spark has computed for a source, on its way to the tasks.

    <directory>/batches/00000000000000000007/part-*.parquet    rows of the batch with this number
    <directory>/batches/00000000000000000007/manifest.json     which files, how many rows, how many came before
    <directory>/spark-query/                                   Spark's checkpoint of the query that fills it

A batch is *published* by a rename, when it is complete and on the disk: it is there as a whole or not at all. So
whatever happens to Spark, or to the job, a position means the same rows for ever.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from firesteel.common.private_files import make_private_folder, replace_file, sync_folder
from firesteel.durable.versions import STAGED
from firesteel.errors import CheckpointError

__all__ = ["Staged", "StagedBatch", "StagedFile"]

MANIFEST = "manifest.json"
FAILURE = "failure"
QUERY = "spark-query"


class StagedFile(NamedTuple):
    """Some rows in a row."""

    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class StagedBatch:
    """What was published at once."""

    number: int
    first: int
    """How many rows came before."""
    files: tuple[StagedFile, ...]

    @property
    def end(self) -> int:
        return self.first + sum(file.rows for file in self.files)


class Staged:
    """The published batches of a source, seen from the process that fills it or from the one that plans."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._folder = os.path.join(directory, "batches")
        make_private_folder(self._folder)
        self.batches: list[StagedBatch] = []
        self.look()

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:020d}")

    @property
    def end(self) -> int:
        """How many rows were published ever."""
        return self.batches[-1].end if self.batches else 0

    def look(self) -> None:
        """Notices what was published since."""
        if not self.batches:
            numbers = sorted(int(name) for name in os.listdir(self._folder) if name.isdigit())
            self.batches = [self._read(number) for number in numbers]
            return
        while os.path.isdir(self._path(self.batches[-1].number + 1)):
            self.batches.append(self._read(self.batches[-1].number + 1))

    def _read(self, number: int) -> StagedBatch:
        path = os.path.join(self._path(number), MANIFEST)
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            STAGED.check(found.get("format"), path)
            if any(os.path.basename(name) != name or name in ("", ".", "..") for name, _, _ in found["files"]):
                raise ValueError("a file in it is not in its own folder")
            first = int(found["first"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"{path}, which says what Spark has computed for a source, cannot be read ({error}). Put it back to go "
                "on, or start the job without its checkpoint or savepoint."
            ) from None
        files = [StagedFile(os.path.join(self._path(number), name), rows, size) for name, rows, size in found["files"]]
        return StagedBatch(number, first, tuple(files))

    def draft(self, number: int) -> str:
        """A folder that Spark may fill, and that is not there yet."""
        draft = os.path.join(self.directory, "drafts", str(number))
        shutil.rmtree(draft, ignore_errors=True)
        make_private_folder(os.path.dirname(draft))
        return draft

    def publish(self, number: int, draft: str) -> None:
        """Makes of a draft the batch with this number; one that was published before stays as it is."""
        import pyarrow.parquet

        if os.path.isdir(self._path(number)):
            shutil.rmtree(draft, ignore_errors=True)
            return
        make_private_folder(draft)
        files = []
        # By their names they are in the order of Spark's partitions.
        for name in sorted(os.listdir(draft)):
            path = os.path.join(draft, name)
            if not name.endswith(".parquet"):
                os.remove(path)
                continue
            rows = pyarrow.parquet.read_metadata(path).num_rows
            _sync(path)
            if rows:
                files.append([name, rows, os.path.getsize(path)])
        manifest = {"format": STAGED.version, "first": self.end, "files": files}
        replace_file(os.path.join(draft, MANIFEST), json.dumps(manifest).encode(), durable=True)
        os.rename(draft, self._path(number))
        sync_folder(self._folder)
        self.look()

    def forget(self, position: int) -> None:
        """Removes batches all of whose rows lie before a position. The newest one stays: it knows how many there
        were."""
        while len(self.batches) > 1 and self.batches[0].end <= position:
            path = self._path(self.batches.pop(0).number)
            # Under another name first: half of a batch that a crash left would be taken for a damaged one.
            with contextlib.suppress(OSError):
                os.rename(path, f"{path}.gone")
            shutil.rmtree(f"{path}.gone", ignore_errors=True)

    def waiting(self) -> int:
        """How many rows of batches are there that nobody has removed yet, but for the newest batch."""
        while len(self.batches) > 1 and not os.path.isdir(self._path(self.batches[0].number)):
            self.batches.pop(0)
        return sum(batch.end - batch.first for batch in self.batches[:-1])

    def between(self, start: int, end: int) -> Iterator[tuple[StagedFile, int, int]]:
        """The files with the rows from one position to another, each with its first row and the row behind its last."""
        for batch in self.batches:
            at = batch.first
            for file in batch.files:
                low, high = max(start - at, 0), min(end - at, file.rows)
                if low < high:
                    yield file, low, high
                at += file.rows

    # What the driver tells the process that plans

    def fail(self, text: str, permanent: bool) -> None:
        replace_file(os.path.join(self.directory, FAILURE), json.dumps([text, permanent]).encode())

    def failure(self) -> tuple[str, bool] | None:
        try:
            with open(os.path.join(self.directory, FAILURE), encoding="utf-8") as file:
                text, permanent = json.load(file)
        except FileNotFoundError:
            return None
        return text, permanent

    def recovered(self) -> None:
        path = os.path.join(self.directory, FAILURE)
        if os.path.exists(path):
            os.remove(path)


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
