"""Options of connectors: those that are known, and their values."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from firesteel.table.sql.errors import SqlValidationError, near_names

__all__ = ["TableOptions"]


class TableOptions:
    """The options of one table. ``known`` may have patterns: ``fields.*.kind``."""

    def __init__(self, options: Mapping[str, str], path: str, known: Sequence[str]) -> None:
        self._options = options
        self._path = path
        for key in options:
            if key != "connector" and not any(fnmatch.fnmatchcase(key, each) for each in known):
                shown = f" It has {', '.join(known)}." if known else " It has no options."
                raise SqlValidationError(
                    f"Table {path}: connector {options['connector']!r} has no option {key!r}."
                    f"{near_names(key, known)}{shown}"
                )

    def text(self, key: str, default: str | None = None) -> str | None:
        """An option as it is."""
        return self._options.get(key, default)

    def integer(self, key: str) -> int | None:
        """A whole number; None if it is not set."""
        value = self._options.get(key)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise self.refused(key, "a whole number") from None

    def number(self, key: str) -> float | None:
        """A number; None if it is not set."""
        value = self._options.get(key)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            raise self.refused(key, "a number") from None

    def refused(self, key: str, wanted: str) -> SqlValidationError:
        """A value that cannot be understood."""
        return SqlValidationError(f"Table {self._path}: {key!r} should be {wanted}, got {self._options.get(key)!r}.")
