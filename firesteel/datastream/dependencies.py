"""What a job brings for its functions: Python files, requirements, archives and cached files.

Programs add them with methods of the environment, settings with the keys that PyFlink's methods write. Files of this
machine are checked there; those of other file systems are looked at when the job fetches them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError, ProgramError, short_repr
from firesteel.filesystems import is_remote, resolved

__all__ = ["NOTHING_NEEDED", "CachedFile", "Dependencies", "check_archive", "check_executable"]


class CachedFile(NamedTuple):
    """A file or folder, perhaps of another file system, that functions find by its name."""

    name: str
    path: str
    executable: bool = False


@dataclass(frozen=True)
class Dependencies:
    """Each call gives another one with more in it.

    >>> settings = Configuration.from_dict({"python.archives": "data.zip#data"})
    >>> Dependencies().configured(settings)
    Traceback (most recent call last):
    firesteel.errors.ProgramError: add_python_archive(): there is no file 'data.zip'.
    """

    python_files: tuple[str, ...] = ()
    requirements: tuple[str, str | None] | None = None
    archives: tuple[tuple[str, str], ...] = ()
    """Archives with the names of the folders that they are unpacked to."""
    cached_files: tuple[CachedFile, ...] = field(default=())

    def configured(self, configuration: Configuration) -> Dependencies:
        """Together with what the settings name."""
        found = self
        for path in _listed(configuration, "python.files"):
            found = found.with_file(path)
        for archive in _listed(configuration, "python.archives"):
            path, _, target = archive.partition("#")
            found = found.with_archive(path, target or None)
        requirements = configuration.get_string("python.requirements", "")
        if requirements and found.requirements is None:
            path, _, cache = requirements.partition("#")
            found = found.with_requirements(path, cache or None)
        for cached in _cached_files(configuration):
            found = found.with_cached_file(*cached)
        executable = configuration.get_string("python.executable", "")
        if executable:
            check_executable(executable)
        return found

    def with_file(self, path: str) -> Dependencies:
        found = resolved(os.fspath(path), "add_python_file(): the file's path")
        if not is_remote(found) and not os.path.exists(found):
            raise ProgramError(f"add_python_file(): there is no {path!r}.")
        return replace(self, python_files=(*self.python_files, found))

    def with_requirements(self, path: str, cache: str | None) -> Dependencies:
        found = resolved(os.fspath(path), "set_python_requirements(): the file's path")
        if not is_remote(found) and not os.path.isfile(found):
            raise ProgramError(f"set_python_requirements(): there is no file {path!r}.")
        folder = resolved(os.fspath(cache), "set_python_requirements(): the folder of packages") if cache else None
        return replace(self, requirements=(found, folder))

    def with_archive(self, path: str, target: str | None) -> Dependencies:
        found = resolved(os.fspath(path), "add_python_archive(): the file's path")
        if not is_remote(found):
            if not os.path.isfile(found):
                raise ProgramError(f"add_python_archive(): there is no file {path!r}.")
            check_archive(found, path)
        name = os.path.basename(found) if target is None else target
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or os.path.isabs(name):
            raise ProgramError(
                f"add_python_archive(): target_dir should be a relative path without '..', got {target!r}."
            )
        return replace(self, archives=(*self.archives, (found, name)))

    def with_cached_file(self, name: str, place: str, executable: bool) -> Dependencies:
        path = resolved(place, "register_cached_file(): the file's path")
        if not is_remote(path) and not os.path.exists(path):
            raise ProgramError(f"register_cached_file(): there is no {place!r}.")
        if any(known.name == name for known in self.cached_files):
            raise ProgramError(f"register_cached_file(): a file {name!r} was registered already. Take another name.")
        return replace(self, cached_files=(*self.cached_files, CachedFile(name, path, executable)))


NOTHING_NEEDED = Dependencies()
"""Functions import what is there already."""


def check_archive(path: str, given: str) -> None:
    """Refuses what cannot be unpacked. ``given``: how the program names it."""
    if not zipfile.is_zipfile(path) and not tarfile.is_tarfile(path):
        raise ProgramError(f"add_python_archive(): {given} is neither a zip nor a tar file.")


def check_executable(python: str) -> None:
    """Refuses another Python than the one that workers run with: all jobs of a process share one Spark session, and
    their functions are pickled for one Python."""
    here = os.environ.get("PYSPARK_PYTHON") or sys.executable
    if not any(_same(python, known) for known in (here, sys.executable)):
        raise ProgramError(
            f"set_python_executable({short_repr(python, 80)}): workers run with {here}, the Python of this program. "
            "To use another one start the program with it, or set PYSPARK_PYTHON before the first job; it needs "
            "Firesteel and the same version. Packages come with set_python_requirements()."
        )


def _same(python: str, other: str) -> bool:
    """Whether two paths name one environment. The Python of another one may be a link to the same file."""
    one, two = shutil.which(python), shutil.which(other)
    if one is None or two is None:
        return False
    folders = os.path.dirname(os.path.abspath(one)), os.path.dirname(os.path.abspath(two))
    return os.path.realpath(one) == os.path.realpath(two) and os.path.realpath(folders[0]) == os.path.realpath(
        folders[1]
    )


def _listed(configuration: Configuration, key: str) -> list[str]:
    return [part.strip() for part in configuration.get_string(key, "").split(",") if part.strip()]


_FIELD = re.compile(r"\s*(\w+)\s*:\s*('[^']*'|\"[^\"]*\"|[^,;]*)\s*(,|$)")


def _cached_files(configuration: Configuration) -> list[CachedFile]:
    """The value of ``pipeline.cached-files``: ``name:table,path:'file:///tables/a.csv';name:…``."""
    key = "pipeline.cached-files"
    found = []
    for entry in Configuration.parse_list_value(configuration.get_string(key, "")):
        fields = {match[1]: match[2].strip().strip("'\"") for match in _FIELD.finditer(entry)}
        if not fields.get("name") or not fields.get("path"):
            raise ConfigurationError(f"Setting '{key}' should be like name:table,path:'/tables/a.csv', got {entry!r}.")
        found.append(CachedFile(fields["name"], fields["path"], fields.get("executable", "").lower() == "true"))
    return found
