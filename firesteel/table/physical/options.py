"""Options of connectors: those that are known, and their values."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence

from firesteel.common.parsing import parse_duration_ms, parse_memory_bytes
from firesteel.errors import ConfigurationError
from firesteel.table.sql.errors import SqlValidationError, near_names

__all__ = ["TableOptions"]


class TableOptions:
    """The options of one table. ``known`` may have patterns: ``fields.*.kind``. Those of formats are many: where an
    option is not known, only near ones of them are named."""

    def __init__(
        self, options: Mapping[str, str], path: str, known: Sequence[str], of_formats: Sequence[str] = ()
    ) -> None:
        self._options = options
        self._path = path
        every = (*known, *of_formats)
        for key in options:
            if key != "connector" and not any(fnmatch.fnmatchcase(key, each) for each in every):
                more = ", and those of its formats" if of_formats else ""
                shown = f" It has {', '.join(known)}{more}." if known else " It has no options."
                raise SqlValidationError(
                    f"Table {path}: connector {options['connector']!r} has no option {key!r}."
                    f"{near_names(key, every)}{shown}"
                )

    @property
    def path(self) -> str:
        """The table's name."""
        return self._path

    def __contains__(self, key: str) -> bool:
        return key in self._options

    def below(self, prefix: str) -> dict[str, str]:
        """The options whose names begin like this, without that beginning."""
        return {key.removeprefix(prefix): value for key, value in self._options.items() if key.startswith(prefix)}

    def required(self, key: str) -> str:
        """An option that must be there."""
        value = self._options.get(key)
        if value is None:
            connector = self._options.get("connector")
            raise SqlValidationError(f"Table {self._path}: connector {connector!r} needs the option {key!r}.")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._options.get(key)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise self.refused(key, "true or false")
        return value.lower() == "true"

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self._options.get(key, default)
        known = {each.lower(): each for each in choices}
        if value.lower() not in known:
            raise SqlValidationError(
                f"Table {self._path}: {key!r} should be one of {', '.join(choices)}, got {value!r}."
                f"{near_names(value, choices)}"
            )
        return known[value.lower()]

    def duration(self, key: str, default: str | None = None) -> int | None:
        """A duration in milliseconds."""
        return self._parsed(key, default, parse_duration_ms, "a duration such as '10 s'")

    def memory(self, key: str, default: str | None = None) -> int | None:
        """A number of bytes."""
        return self._parsed(key, default, parse_memory_bytes, "a size such as '128 MB'")

    def _parsed(self, key: str, default: str | None, parse: Callable[[str], int], wanted: str) -> int | None:
        value = self._options.get(key, default)
        if value is None:
            return None
        try:
            return parse(value)
        except ConfigurationError:
            raise self.refused(key, wanted) from None

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
