"""The tokens of a job manager: made once, kept in files that only its user can read."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from firesteel.cluster.folders import ClusterFolder
from firesteel.common.private_files import replace_file
from firesteel.errors import SetupError

__all__ = ["Tokens", "read_token"]


@dataclass(frozen=True)
class Tokens:
    """One that allows everything, and one for those who look only."""

    full: str = field(repr=False)
    read_only: str = field(repr=False)

    @staticmethod
    def of(folder: ClusterFolder) -> Tokens:
        """
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     folder = ClusterFolder.make(Path(place) / "cluster")
        ...     first, second = Tokens.of(folder), Tokens.of(folder)
        ...     first == second, len(first.full), oct(folder.token.stat().st_mode)[-3:]
        (True, 43, '600')
        """
        return Tokens(_made(folder.token), _made(folder.read_token))

    @property
    def all(self) -> tuple[str, ...]:
        return self.full, self.read_only

    def allows(self, token: str, changes: bool) -> bool | None:
        """Whether a token allows something; None if it is none of ours. Takes the same time for every wrong one."""
        given = token.encode(errors="replace")
        full = hmac.compare_digest(given, self.full.encode())
        read_only = hmac.compare_digest(given, self.read_only.encode())
        if not full and not read_only:
            return None
        return full or not changes


def _made(path: Path) -> str:
    if not path.exists():
        made = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        replace_file(str(made), secrets.token_urlsafe(32).encode(), durable=True)
        try:
            # Two job managers may start at the same moment: the first one's counts for both.
            with contextlib.suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink()
    return read_token(path)


def read_token(path: Path) -> str:
    """Raises SetupError where others can read it: then it is no secret any more."""
    try:
        info = path.lstat()
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise SetupError(f"The token cannot be read from {path}: {error}.") from error
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise SetupError(f"{path} belongs to somebody else, or others can read it. Delete it, and a new one is made.")
    if len(token) < 16:
        raise SetupError(f"{path} holds no token. Delete it, and a new one is made.")
    return token
