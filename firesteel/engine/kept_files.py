"""The files that a job brings, kept in its checkpoint folder for those who replay a batch of it.

    folder/firesteel-files/<name>.zip     modules, packages of the requirements, archives, cached files

The name is made of what they contain, so a start with the same files writes nothing.
"""

from __future__ import annotations

import logging
import os
import zipfile

from firesteel.engine.imports import JobFiles
from firesteel.engine.shipping import archive_of
from firesteel.filesystems import Storage, joined

logger = logging.getLogger("firesteel")

__all__ = ["FILES", "keep_files", "kept_files"]

FILES = "firesteel-files"
LARGEST = 64 << 20
"""Bytes of an archive that is kept. A checkpoint folder may be on a file system that is paid for by the byte."""


def keep_files(files: JobFiles, folder: str, storage: Storage) -> None:
    """Keeps a job's files, and not those of an earlier start. The job itself runs without that, too."""
    name, place = f"{files.name}.zip", joined(folder, FILES)
    try:
        there = storage.sizes(place)
        for other in there.keys() - {name}:
            storage.delete(joined(place, other))
        if name in there:
            return
        archive = archive_of(files)
        if os.path.getsize(archive) > LARGEST:
            logger.info("the job's files are too large to be kept in %s: a replay needs the program", place)
            return
        storage.make_folder(place)
        with open(archive, "rb") as file:
            storage.write(joined(place, name), file.read())
    except OSError as error:
        logger.warning("The job's files cannot be kept in %s, so a replay needs the program: %s", place, error)


def kept_files(files: JobFiles, folder: str, storage: Storage, directory: str) -> JobFiles | None:
    """The files of a job, unpacked into a directory; None if they were not kept."""
    try:
        content = storage.read(joined(folder, FILES, f"{files.name}.zip"))
    except FileNotFoundError:
        return None
    archive, unpacked = os.path.join(directory, "files.zip"), os.path.join(directory, "files")
    with open(archive, "wb") as file:
        file.write(content)
    with zipfile.ZipFile(archive) as found:
        # Names that lead out of the directory are made harmless by zipfile itself.
        found.extractall(unpacked)
    os.remove(archive)
    return JobFiles(files.name, unpacked)
