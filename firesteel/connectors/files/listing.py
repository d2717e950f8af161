"""Which files there are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from firesteel.errors import ConfigurationError, ProgramError
from firesteel.filesystems import FileInfo, FileSystem, StorageOptions, file_system_of, openable

__all__ = ["list_files", "listed", "resolved_paths"]

_HIDDEN = re.compile(r"/[._]")
"""As Hadoop and Flink do, files and folders are left out whose names begin like this."""


def resolved_paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Paths as the port takes them."""
    try:
        return tuple(openable(os.fspath(path), "A path of a file source") for path in paths)
    except ConfigurationError as error:
        raise ProgramError(str(error)) from None


def list_files(paths: Iterable[str], options: StorageOptions | None = None) -> list[FileInfo]:
    """The files of some resolved paths, each of which is a file or a folder that must be there, in the order of their
    names."""
    found: dict[str, FileInfo] = {}
    for path in paths:
        system = file_system_of(path, options)
        files = list(listed(path, system))
        if not files and not system.exists(path):
            raise ProgramError(f"FileSource: there is no file or folder {path}.")
        found.update((file.path, file) for file in files)
    return [found[path] for path in sorted(found)]


def listed(path: str, system: FileSystem) -> Iterator[FileInfo]:
    """The file itself, or all files below a folder, however deep, that are not hidden and not empty."""
    alone = system.info(path)
    found = [alone] if alone is not None else system.walk(path)
    return (one for one in found if one.size and (alone is not None or not _HIDDEN.search(one.path[len(path) :])))
