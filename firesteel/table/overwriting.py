"""INSERT OVERWRITE: new files take the place of those that were there, in the partitions that get rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firesteel.connectors.files.listing import listed as listed_files
from firesteel.errors import ConfigurationError
from firesteel.filesystems import file_system_of, resolved
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable
from firesteel.table.sql.errors import SqlValidationError

__all__ = ["Overwrite", "Overwritten", "checked_overwrite"]


@dataclass(frozen=True)
class Overwrite:
    """That rows take the place of others. ``folder`` is the partition that ``PARTITION (...)`` names as a whole: its
    rows go also where the query gives none."""

    folder: str | None = None


def checked_overwrite(table: CatalogObject, path: str, streaming: bool) -> DeclaredTable:
    """The table, if its rows can be overwritten; the same is refused as in Flink."""
    if streaming:
        raise SqlValidationError(
            f"INSERT OVERWRITE into {path}: a stream has no end, so nothing could be replaced by it. Use batch mode, "
            "or INSERT INTO, which adds rows."
        )
    if not isinstance(table, DeclaredTable) or table.options.get("connector") != "filesystem":
        raise SqlValidationError(f"INSERT OVERWRITE into {path}: only tables of files can be overwritten.")
    return table


class Overwritten:
    """The files of a table before a job, which go when it has written others. If the job fails, they stay."""

    def __init__(self, table: DeclaredTable, overwrite: Overwrite) -> None:
        try:
            self._path = resolved(table.options.get("path", ""), "The path of a table")
        except ConfigurationError as error:
            raise SqlValidationError(str(error)) from None
        self._depth = len(table.partitioned_by)
        self._static = overwrite.folder
        self._before = set(self._files())

    def _files(self) -> Iterator[str]:
        for file in listed_files(self._path, file_system_of(self._path)):
            yield file.path

    def _folder(self, file: str) -> str:
        return "/".join(file[len(self._path) :].strip("/").split("/")[:-1][: self._depth])

    def replace(self) -> None:
        """Called when the new files are there."""
        system = file_system_of(self._path)
        new = {self._folder(file) for file in self._files() if file not in self._before}
        if self._static is not None:
            new.add(self._static)
        for file in sorted(self._before):
            if not self._depth or self._folder(file) in new:
                system.delete(file)
