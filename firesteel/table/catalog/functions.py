"""Users' functions by name."""

from __future__ import annotations

import importlib
from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.catalog.manager import CatalogError, CatalogManager, Path
from firesteel.table.functions.aggregates import KNOWN_AGGREGATES
from firesteel.table.functions.registry import find as find_built_in
from firesteel.table.functions.user_functions import UserFunction

__all__ = ["FunctionCatalog", "PythonFunction"]

_SPECIAL = frozenset(("CASE", "CAST", "TRY_CAST", "ROW", "ARRAY", "MAP", "IF", "TYPEOF", "TUMBLE", "HOP", "CUMULATE"))


class PythonFunction:
    """``CREATE FUNCTION f AS 'module.name' LANGUAGE PYTHON``: loaded when it is used for the first time."""

    def __init__(self, identifier: str) -> None:
        self.identifier = identifier
        self._loaded: UserFunction | None = None

    def load(self) -> UserFunction:
        """The function."""
        if self._loaded is None:
            module, _, name = self.identifier.rpartition(".")
            if not module:
                raise ProgramError(f"A Python function is named as 'module.function', got {self.identifier!r}.")
            try:
                found = getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError) as error:
                raise ProgramError(f"There is no Python function {self.identifier!r}: {error}.") from None
            self._loaded = definition_of(found, self.identifier)
        return self._loaded


def definition_of(function: Any, what: str) -> UserFunction:
    """What a function that :func:`~firesteel.table.udf.udf` and its like gave stands for."""
    definition = getattr(function, "_definition", None)
    if definition is None:
        raise ProgramError(
            f"{what} takes a function that udf(), udtf(), udaf() or udtaf() made, got {short_repr(function, 80)}."
        )
    found: UserFunction = definition()
    return found


Entry = UserFunction | PythonFunction


class FunctionCatalog:
    """Temporary system functions, which hide those that are built in; and functions of catalogs. Names are the same in
    small and in capital letters."""

    def __init__(self, catalogs: CatalogManager) -> None:
        self._catalogs = catalogs
        self._system: dict[str, Entry] = {}
        self._temporary: dict[Path, Entry] = {}
        self._permanent: dict[Path, Entry] = {}

    def __bool__(self) -> bool:
        return bool(self._system or self._temporary or self._permanent)

    def _path(self, parts: tuple[str, ...]) -> Path:
        catalog, database, name = self._catalogs.qualified(parts)
        return catalog, database, name.lower()

    def find(self, parts: tuple[str, ...]) -> UserFunction | None:
        """The user's function of that name. A built-in function goes before those of catalogs, as in Flink."""
        if len(parts) > 3:
            return None
        if len(parts) == 1:
            system = self._system.get(parts[0].lower())
            if system is not None:
                return _loaded(system)
            name = parts[0].upper()
            if find_built_in(name) is not None or name in KNOWN_AGGREGATES or name in _SPECIAL:
                return None
        path = self._path(parts)
        found = self._temporary.get(path) or self._permanent.get(path)
        return None if found is None else _loaded(found)

    def create(self, parts: tuple[str, ...], function: Entry, temporary: bool, if_not_exists: bool = False) -> None:
        """Gives a function a name in a catalog."""
        path = self._path(parts)
        place = self._temporary if temporary else self._permanent
        if path in place:
            if if_not_exists:
                return
            raise CatalogError(f"There is a {'temporary ' if temporary else ''}function {'.'.join(path)} already.")
        place[path] = function

    def create_system(self, name: str, function: Entry, if_not_exists: bool = False) -> None:
        """Gives a function a name that is the same in all catalogs."""
        if name.lower() in self._system:
            if if_not_exists:
                return
            raise CatalogError(f"There is a temporary system function {name} already.")
        self._system[name.lower()] = function

    def described(self, parts: tuple[str, ...]) -> tuple[str, Entry] | None:
        """The user's function of that name, and whether it is a temporary system, a temporary or a permanent one."""
        system = self._system.get(parts[-1].lower()) if len(parts) == 1 else None
        if system is not None:
            return "system", system
        path = self._path(parts)
        if path in self._temporary:
            return "temporary", self._temporary[path]
        return ("permanent", self._permanent[path]) if path in self._permanent else None

    def is_system(self, parts: tuple[str, ...]) -> bool:
        """Whether a system function has that name, which is the same in all catalogs."""
        return len(parts) == 1 and parts[0].lower() in self._system

    def replace(self, parts: tuple[str, ...], function: Entry, if_exists: bool) -> None:
        """Gives the name of a function of a catalog to another one."""
        path = self._path(parts)
        if path in self._permanent:
            self._permanent[path] = function
        elif not if_exists:
            hint = " It is temporary: drop it, and create another one." if path in self._temporary else ""
            raise CatalogError(f"There is no function {'.'.join(path)}.{hint}")

    def drop(self, parts: tuple[str, ...], temporary: bool, if_exists: bool) -> bool:
        """Forgets a function of a catalog; False if there is none."""
        path = self._path(parts)
        place = self._temporary if temporary else self._permanent
        if place.pop(path, None) is not None:
            return True
        if if_exists:
            return False
        hint = " It is temporary: DROP TEMPORARY FUNCTION drops it." if path in self._temporary else ""
        raise CatalogError(f"There is no {'temporary ' if temporary else ''}function {'.'.join(path)}.{hint}")

    def drop_system(self, name: str, if_exists: bool) -> bool:
        """Forgets a system function; False if there is none."""
        if self._system.pop(name.lower(), None) is not None:
            return True
        if if_exists:
            return False
        raise CatalogError(f"There is no temporary system function {name}.")

    def names(self) -> list[str]:
        """The users' functions that can be called by their bare names here."""
        here = (self._catalogs.current_catalog, self._catalogs.current_database)
        own = [path[2] for path in (*self._temporary, *self._permanent) if path[:2] == here]
        return sorted({*self._system, *own})


def _loaded(entry: Entry) -> UserFunction:
    return entry.load() if isinstance(entry, PythonFunction) else entry
