"""Which kinds of rows a changelog has."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.types import RowKind

__all__ = ["ChangelogMode"]


@dataclass(frozen=True)
class ChangelogMode:
    """Made by :meth:`insert_only`, :meth:`upsert` or :meth:`all`.

    >>> print(ChangelogMode.upsert())
    [INSERT, UPDATE_AFTER, DELETE]
    """

    kinds: tuple[RowKind, ...]

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Insertions alone."""
        return ChangelogMode((RowKind.INSERT,))

    @staticmethod
    def upsert() -> ChangelogMode:
        """Each row replaces the one with its key; updates do not say what was before."""
        return ChangelogMode((RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE))

    @staticmethod
    def all() -> ChangelogMode:
        """All kinds."""
        return ChangelogMode((RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE))

    def __str__(self) -> str:
        return f"[{', '.join(kind.name for kind in self.kinds)}]"
