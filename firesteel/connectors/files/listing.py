"""Which files there are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from firesteel.errors import ConfigurationError, ProgramError
from firesteel.filesystems import FileInfo, FileSystem, StorageOptions, file_system_of, openable

__all__ = ["PathPattern", "list_files", "listed", "matches", "resolved_paths"]

PathPattern = re.Pattern[str]

_AUTHORITY = re.compile(r"^[\w.+-]+://[^/]*")
_HIDDEN = re.compile(r"/[._]")
"""As Hadoop and Flink do, files and folders are left out whose names begin like this."""


def resolved_paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Paths as the port takes them."""
    try:
        return tuple(openable(os.fspath(path), "A path of a file source") for path in paths)
    except ConfigurationError as error:
        raise ProgramError(str(error)) from None


def list_files(
    paths: Iterable[str], options: StorageOptions | None = None, pattern: PathPattern | None = None
) -> list[FileInfo]:
    """The files of some resolved paths, each of which is a file or a folder that must be there, in the order of their
    names."""
    found: dict[str, FileInfo] = {}
    for path in paths:
        system = file_system_of(path, options)
        files = list(listed(path, system))
        if not files and not system.exists(path):
            raise ProgramError(f"FileSource: there is no file or folder {path}.")
        found.update((file.path, file) for file in files if matches(file.path, pattern))
    return [found[path] for path in sorted(found)]


def matches(path: str, pattern: PathPattern | None) -> bool:
    """Whether a pattern has all of a path, without the system and the bucket that a URI begins with.

    >>> matches("s3://shop/orders/1.csv", re.compile("/orders/.*csv")), matches("/orders/1.csv", re.compile("1.csv"))
    (True, False)
    """
    return pattern is None or pattern.fullmatch(_AUTHORITY.sub("", path)) is not None


def listed(path: str, system: FileSystem) -> Iterator[FileInfo]:
    """The file itself, or all files below a folder, however deep, that are not hidden and not empty."""
    alone = system.info(path)
    found = [alone] if alone is not None else system.walk(path)
    return (one for one in found if one.size and (alone is not None or not _HIDDEN.search(one.path[len(path) :])))
