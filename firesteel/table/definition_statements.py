"""Statements about functions and modules: what they are, and others in their place."""

from __future__ import annotations

from firesteel.table.catalog.functions import FunctionCatalog, PythonFunction
from firesteel.table.catalog.manager import CatalogError
from firesteel.table.functions.aggregates import KNOWN_AGGREGATES
from firesteel.table.functions.registry import find as find_built_in
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.sql import statements
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["MODULES", "alter_function", "check_modules", "described_function", "python_function"]

MODULES = ("core",)


def python_function(statement: statements.CreateFunction, text: str) -> PythonFunction:
    """The function that a statement defines."""
    if statement.language != "PYTHON":
        message = f"Functions in {statement.language} cannot run here: AS 'module.function' LANGUAGE PYTHON is there."
        raise NotSupportedError(message, text, statement.span)
    return PythonFunction(statement.identifier)


def alter_function(statement: statements.AlterFunction, functions: FunctionCatalog, text: str) -> None:
    """``ALTER FUNCTION f AS 'module.other' LANGUAGE PYTHON``."""
    changed = statement.changed
    if changed.temporary:
        message = "Temporary functions are not altered, as in Flink: drop it, and create another one."
        raise SqlValidationError(message, text, statement.span)
    functions.replace(changed.name.parts, python_function(changed, text), statement.if_exists)


def _is_built_in(name: str) -> bool:
    return name in KNOWN_AGGREGATES or find_built_in(name) is not None


def described_function(statement: statements.Describe, functions: FunctionCatalog) -> list[tuple[str, str]]:
    """``DESCRIBE FUNCTION f``."""
    parts = statement.name.parts
    found = functions.described(parts)
    if found is None:
        if len(parts) == 1 and _is_built_in(parts[0].upper()):
            return [("is system function", "true"), ("is temporary", "false")]
        known = functions.names()
        raise CatalogError(f"There is no function {statement.name}.{near_names(parts[-1], known)}")
    kind, function = found
    loaded: UserFunction | None = function if isinstance(function, UserFunction) else None
    rows = [
        ("is system function", str(kind == "system").lower()),
        ("is temporary", str(kind != "permanent").lower()),
        ("class name", function.identifier if isinstance(function, PythonFunction) else function.name),
        ("function language", "PYTHON"),
        ("resource uris", "[]"),
    ]
    if statement.extended:
        loaded = loaded or (function.load() if isinstance(function, PythonFunction) else None)
        assert loaded is not None
        rows += [("kind", loaded.kind.upper()), ("is deterministic", str(loaded.deterministic).lower())]
    return rows


def check_modules(statement: statements.UseModules, text: str) -> None:
    """``USE MODULES core``: there is no other one."""
    for name in statement.names:
        if name not in MODULES or statement.names.count(name) > 1:
            message = f"USE MODULES takes each module once, and there is {', '.join(MODULES)} alone, got {name}."
            raise SqlValidationError(message, text, statement.span)
