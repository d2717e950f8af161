"""Statements about functions, catalogs and modules: what they are, and others in their place."""

from __future__ import annotations

from firesteel.table.catalog.functions import FunctionCatalog, PythonFunction
from firesteel.table.catalog.manager import CatalogError, CatalogManager
from firesteel.table.declarations import shown_options
from firesteel.table.functions.registry import find as find_built_in
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.sql import statements
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["MODULES", "alter_function", "check_modules", "described_function", "python_function", "shown_catalog"]

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


def described_function(statement: statements.Describe, functions: FunctionCatalog) -> list[tuple[str, str]]:
    """``DESCRIBE FUNCTION f``."""
    parts = statement.name.parts
    found = functions.described(parts)
    if found is None:
        if len(parts) == 1 and find_built_in(parts[0].upper()) is not None:
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


def shown_catalog(statement: statements.Show, catalogs: CatalogManager) -> str:
    """``SHOW CREATE CATALOG c``."""
    assert statement.name is not None
    name = statement.name.parts[-1]
    if name not in catalogs.catalogs:
        raise CatalogError(f"There is no catalog {name}.{near_names(name, catalogs.catalogs)}")
    definition = catalogs.definitions.get(name)
    if definition is None:
        raise CatalogError(f"No statement made the catalog {name}: SHOW CREATE CATALOG shows those of CREATE CATALOG.")
    comment = "" if definition.comment is None else f"COMMENT {_quoted(definition.comment)}\n"
    options = shown_options(definition.options)
    listed = ",\n".join(f"  {_quoted(key)} = {_quoted(value)}" for key, value in sorted(options.items()))
    return f"CREATE CATALOG `{name}`\n{comment}WITH (\n{listed}\n)\n"


def check_modules(statement: statements.UseModules, text: str) -> None:
    """``USE MODULES core``: there is no other one."""
    for name in statement.names:
        if name not in MODULES or statement.names.count(name) > 1:
            message = f"USE MODULES takes each module once, and there is {', '.join(MODULES)} alone, got {name}."
            raise SqlValidationError(message, text, statement.span)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
