"""Who is the one job manager of a cluster: a port, and a file lock for those of one folder.

An election only chooses. Whoever was elected begins an epoch of the registry (:meth:`Registry.claim`), and the last
epoch is the one that counts: so two who both believe to be elected, because one of them stood still, never both act.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

__all__ = ["Election", "FileElection"]


class Election(Protocol):
    """Several job managers may stand; one is elected at a time."""

    def stand(self, seconds: float) -> bool:
        """Waits so long to be elected; says whether it was."""

    def holds(self) -> bool:
        """Whether it is still elected, as far as can be known without asking anybody."""

    def resign(self) -> None: ...


class FileElection:
    """Whoever holds the lock is elected. The system gives it back when the process ends, however that happens.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> first, second = (FileElection(Path(folder.name) / "lock") for _ in range(2))
    >>> first.stand(0), second.stand(0), first.resign(), second.stand(0)
    (True, False, None, True)
    >>> second.resign(); folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path, mode=0o600, thread_local=False)

    def stand(self, seconds: float) -> bool:
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            return False
        return True

    def holds(self) -> bool:
        return bool(self._lock.is_locked)

    def resign(self) -> None:
        self._lock.release()
