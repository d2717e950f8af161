"""Archives and cached files of a job: how they are put into its folder, and how functions find them there."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from firesteel.datastream.dependencies import Dependencies, check_archive
from firesteel.datastream.functions import DistributedCache
from firesteel.engine.imports import JobFiles
from firesteel.errors import ProgramError
from firesteel.filesystems import StorageOptions, file_system_of, is_remote

__all__ = ["JobCache", "fetched", "place", "sources"]

INDEX = "cached.json"
"""In a job's folder: for each name its place there, and whether it can be executed."""


@dataclass(frozen=True)
class JobCache(DistributedCache):
    """What a job brings, as its functions see it."""

    files: JobFiles

    def get_file(self, name: str) -> str:
        here = self.files.here()
        index = json.loads(Path(here, INDEX).read_text()) if os.path.exists(os.path.join(here, INDEX)) else {}
        if name not in index:
            known = f" There are {', '.join(map(repr, sorted(index)))}." if index else ""
            raise ProgramError(
                f"There is no cached file {name!r}.{known} Bring it with register_cached_file(), before execute()."
            )
        place, executable = index[name]
        path = os.path.join(here, place)
        if executable and not os.access(path, os.X_OK):
            # An archive of Spark's loses it on the way to another machine.
            os.chmod(path, 0o700)
        return path


def fetched(dependencies: Dependencies, folder: Path, options: StorageOptions) -> Dependencies:
    """The same with files of other file systems copied to a folder."""
    numbers = count()

    def local(path: str, method: str) -> str:
        return _fetch(path, folder / str(next(numbers)), method, options) if is_remote(path) else path

    archives = []
    for path, target in dependencies.archives:
        here = local(path, "add_python_archive")
        check_archive(here, path)
        archives.append((here, target))
    requirements = dependencies.requirements
    if requirements is not None:
        path, cache = requirements
        method = "set_python_requirements"
        requirements = local(path, method), None if cache is None else local(cache, method)
    return replace(
        dependencies,
        python_files=tuple(local(path, "add_python_file") for path in dependencies.python_files),
        requirements=requirements,
        archives=tuple(archives),
        cached_files=tuple(
            cached._replace(path=local(cached.path, "register_cached_file")) for cached in dependencies.cached_files
        ),
    )


def _fetch(place: str, folder: Path, method: str, options: StorageOptions) -> str:
    files, target = file_system_of(place, options), folder / place.rpartition("/")[2]
    for path in files.names(place) if files.is_folder(place) else [place]:
        copied = target / path[len(place) :].lstrip("/") if path != place else target
        copied.parent.mkdir(parents=True, exist_ok=True)
        try:
            with files.open_input(path) as source, copied.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except FileNotFoundError:
            raise ProgramError(f"{method}(): there is no {path!r}.") from None
    return str(target)


def sources(dependencies: Dependencies) -> Iterator[tuple[str, Path]]:
    """What is put into the folder: a text that says how, and the file that it comes from."""
    for path, target in dependencies.archives:
        yield f"archive {target}", Path(path)
    for cached in dependencies.cached_files:
        root = Path(cached.path)
        for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if file.is_file():
                yield f"cached {cached.name} {cached.executable} {file.relative_to(root)}", file


def place(dependencies: Dependencies, folder: Path) -> None:
    """Unpacks and copies it."""
    index: dict[str, tuple[str, bool]] = {}
    for path, target in dependencies.archives:
        unpacked = folder / "archives" / target
        unpacked.mkdir(parents=True, exist_ok=True)
        _unpack(path, unpacked)
        index[target] = (f"archives/{target}", False)
    for number, cached in enumerate(dependencies.cached_files):
        name = os.path.basename(os.path.normpath(cached.path))
        copied = folder / "cached" / str(number) / name
        copied.parent.mkdir(parents=True)
        if os.path.isdir(cached.path):
            shutil.copytree(cached.path, copied)
        else:
            shutil.copyfile(cached.path, copied)
            copied.chmod(0o700 if cached.executable else 0o600)
        index[cached.name] = (f"cached/{number}/{name}", cached.executable)
    if index:
        (folder / INDEX).write_text(json.dumps(index))


def _unpack(path: str, folder: Path) -> None:
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            # Refuses what leads out of the folder.
            archive.extractall(folder, filter="data")
        return
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if os.path.isabs(entry.filename) or ".." in Path(entry.filename).parts:
                continue
            unpacked = archive.extract(entry, folder)
            mode = entry.external_attr >> 16 & 0o777
            if mode and not entry.is_dir():
                os.chmod(unpacked, mode | 0o600)
