"""A job's Python files, requirements, archives and cached files, gathered in a folder named by what it contains."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firesteel.datastream.dependencies import Dependencies
from firesteel.engine import cached_files
from firesteel.engine.imports import JobFiles
from firesteel.engine.scratch import scratch_folder
from firesteel.errors import ProgramError, SetupError
from firesteel.filesystems import StorageOptions

__all__ = ["archive_of", "gather"]

_GATHERING = threading.Lock()


def gather(dependencies: Dependencies, options: StorageOptions | None = None) -> JobFiles | None:
    """The files of a job, in a folder of this process. Jobs with the same files share one, and so do requirements.
    What is large is read piece by piece."""
    if dependencies == Dependencies():
        return None
    with _GATHERING:
        parent = scratch_folder() / "python"
        parent.mkdir(exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=parent))
        elsewhere = Path(tempfile.mkdtemp(prefix="fetched-", dir=parent))
        try:
            dependencies = cached_files.fetched(dependencies, elsewhere, options or StorageOptions())
            files = draft / "files"
            files.mkdir()
            for path in dependencies.python_files:
                _add(Path(path), files)
            digest = hashlib.blake2b(digest_size=12)
            for file in sorted(path for path in files.rglob("*") if path.is_file()):
                _count_in(digest, str(file.relative_to(files)), file.read_bytes())
            for text, source in cached_files.sources(dependencies):
                _count_in(digest, text, _digest_of(source))
            if dependencies.requirements is None:
                (draft / "packages").mkdir()
            else:
                installed = _installed(*dependencies.requirements)
                _count_in(digest, "requirements", installed.name.encode())
                (draft / "packages").symlink_to(installed)
            name = f"firesteel-{digest.hexdigest()}"
            if not (parent / name).exists():
                cached_files.place(dependencies, draft)
                draft.rename(parent / name)
            return JobFiles(name, str(parent / name))
        finally:
            for folder in (draft, elsewhere):
                shutil.rmtree(folder, ignore_errors=True)


def archive_of(files: JobFiles) -> str:
    """The folder as one file, for workers on other machines."""
    path = Path(files.folder).with_suffix(".zip")
    if not path.exists():
        draft = path.with_suffix(".draft")
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            # Through the link to the packages, which jobs share.
            for folder, _, names in os.walk(files.folder, followlinks=True):
                for name in names:
                    file = os.path.join(folder, name)
                    archive.write(file, os.path.relpath(file, files.folder))
        draft.rename(path)
    return str(path)


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=12)).digest()


def _count_in(digest: Any, name: str, content: bytes) -> None:
    for part in (name.encode(), content):
        digest.update(len(part).to_bytes(8, "big") + part)


def _add(path: Path, folder: Path) -> None:
    """A module, a package or an archive of them. Two different ones of one name would hide each other."""
    for name, content in _contents(path):
        target = folder / name
        if target.exists() and target.read_bytes() != content:
            raise ProgramError(
                f"add_python_file(): {path} brings {name}, and so does another file of the job, with another content. "
                "Rename one of them."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files that can be imported, by where they are in the folder."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(path.parent)), file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                # Names that lead out of the folder are not for import.
                if not entry.is_dir() and not os.path.isabs(entry.filename) and ".." not in Path(entry.filename).parts:
                    yield entry.filename, archive.read(entry)
    else:
        yield path.name, path.read_bytes()


def _installed(requirements: str, cache: str | None) -> Path:
    """The packages of a requirements file, installed once in a process. Pure Python packages work everywhere; others
    only where the workers' platform is the driver's."""
    parent = scratch_folder() / "requirements"
    parent.mkdir(exist_ok=True)
    target = parent / _key_of(requirements, cache)
    if target.exists():
        return target
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=parent))
    command: list[Any] = [sys.executable, "-m", "pip", "install", "-q", "-r", requirements, "-t", draft / "packages"]
    if cache:
        command += ["--no-index", "--find-links", cache]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SetupError(f"The requirements in {requirements} could not be installed: {done.stderr.strip()[-400:]}")
        (draft / "packages").mkdir(exist_ok=True)
        (draft / "packages").rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _key_of(requirements: str, cache: str | None) -> str:
    """By what the file says, and by the state of the files that it names: wheels, other lists of requirements."""
    text = Path(requirements).read_bytes()
    digest = hashlib.blake2b(digest_size=12)
    _count_in(digest, requirements, text)
    base = os.path.dirname(requirements)
    named = {os.path.join(base, word) for line in text.decode(errors="replace").splitlines() for word in line.split()}
    if cache:
        named |= {os.path.join(cache, entry) for entry in os.listdir(cache)} if os.path.isdir(cache) else set()
    for path in sorted(path for path in named if os.path.exists(path)):
        state = os.stat(path)
        _count_in(digest, path, f"{state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()
