"""Programs that were uploaded, stored under the hash of their content. They are never imported here."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.private_files import make_private_folder, replace_file
from firesteel.errors import FailureKind, FiresteelError, ProgramError

__all__ = ["NoRoomError", "ProgramStore", "StoredProgram", "safe_name"]

KEPT_FREE = 64 << 20
"""Bytes of the disk that uploads leave to others."""
_ID = re.compile(r"([0-9a-f]{32})_([A-Za-z0-9._-]{1,100})")


class NoRoomError(FiresteelError):
    """An upload is larger than what is allowed, or than what there is room for."""

    kind = FailureKind.PERMANENT


@dataclass(frozen=True)
class StoredProgram:
    """One uploaded program."""

    id: str
    name: str
    path: Path
    uploaded: int
    """In milliseconds since 1970."""


def safe_name(name: str) -> str:
    """The last part of a name that somebody chose, without anything that a path or a page could take for more.

    >>> safe_name("../../x.py"), safe_name("C:\\\\jobs\\\\a b<script>.py"), safe_name(".py")
    ('x.py', 'a_b_script_.py', 'program.py')
    """
    last = re.split(r"[/\\\x00]", name)[-1]
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip(".")[-100:]
    return plain if plain not in ("", "py", "zip", "pyz") else f"program.{plain or 'py'}"


class ProgramStore:
    """The same content is stored once, under each name that it came with.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = ProgramStore(Path(folder.name), 1000)
    >>> one = store.put("count.py", b"print(1)\\n")
    >>> one.id
    'cc42155088fca5730758db72b2a5bca3_count.py'
    >>> store.find(one.id).path.read_text(), store.put("count.py", b"print(1)\\n") == one
    ('print(1)\\n', True)
    >>> store.delete(one.id), store.find(one.id)
    (True, None)
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def put(self, name: str, content: bytes) -> StoredProgram:
        name = safe_name(name)
        check_program(name, content)
        digest = hashlib.sha256(content).hexdigest()[:32]
        path = self._folder / digest / name
        if not path.exists():
            used = sum(one.path.stat().st_size for one in self.all())
            if used + len(content) > self._max_bytes:
                raise NoRoomError(
                    f"All programs together may have {self._max_bytes:,} bytes (firesteel.cluster.max-programs): "
                    f"delete some first."
                )
            if shutil.disk_usage(self._folder).free < len(content) + KEPT_FREE:
                raise NoRoomError("There is not enough room on the job manager's disk.")
            make_private_folder(str(path.parent))
            replace_file(str(path), content, durable=True)
        return self._described(path)

    def find(self, program_id: str) -> StoredProgram | None:
        match = _ID.fullmatch(program_id)
        if match is None:
            return None
        path = self._folder / match[1] / match[2]
        return self._described(path) if path.is_file() and not path.is_symlink() else None

    def all(self) -> list[StoredProgram]:
        """The last ones first."""
        found = [self._described(path) for path in self._folder.glob("*/*") if _ID.fullmatch(_id_of(path))]
        return sorted(found, key=lambda one: one.uploaded, reverse=True)

    def delete(self, program_id: str) -> bool:
        found = self.find(program_id)
        if found is None:
            return False
        found.path.unlink(missing_ok=True)
        if not any(found.path.parent.iterdir()):
            os.rmdir(found.path.parent)
        return True

    @staticmethod
    def _described(path: Path) -> StoredProgram:
        return StoredProgram(_id_of(path), path.name, path, int(path.stat().st_mtime * 1000))


def _id_of(path: Path) -> str:
    return f"{path.parent.name}_{path.name}"


def check_program(name: str, content: bytes) -> None:
    """Whether it can be a program: the text of one, or a zip file with a ``__main__.py``."""
    if name.endswith((".zip", ".pyz")):
        import io

        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if "__main__.py" in archive.namelist():
                    return
        except (zipfile.BadZipFile, OSError):
            pass
        raise ProgramError(f"{name} is not a zip file with a __main__.py in it.")
    if not name.endswith(".py"):
        raise ProgramError(f"{name} is not a program: upload a .py file, or a .zip or .pyz file with a __main__.py.")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        raise ProgramError(f"{name} is not text in UTF-8.") from None
