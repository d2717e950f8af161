"""CREATE, ALTER, DESCRIBE and SHOW CREATE CATALOG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firesteel.table.catalog.manager import CatalogDefinition, CatalogError, CatalogManager, Database
from firesteel.table.declarations import shown_options
from firesteel.table.sql import statements
from firesteel.table.sql.errors import near_names

__all__ = ["alter_catalog", "create_catalog", "described_catalog", "shown_catalog"]

_TYPE, _KIND = "type", "generic_in_memory"
_FIRST = "default-database"


def create_catalog(catalogs: CatalogManager, name: str, made: CatalogDefinition, if_not_exists: bool = False) -> None:
    """``CREATE CATALOG c WITH ('type' = 'generic_in_memory')``."""
    if name in catalogs.catalogs:
        if if_not_exists:
            return
        raise CatalogError(f"There is a catalog {name} already.")
    if made.options.get(_TYPE) != _KIND:
        given = repr(made.options[_TYPE]) if _TYPE in made.options else "no type"
        raise CatalogError(f"Not supported: a catalog with {given}. WITH ('{_TYPE}' = '{_KIND}') makes one in memory.")
    _check_keys(made.options)
    catalogs.catalogs[name] = {made.options.get(_FIRST, "default"): Database()}
    catalogs.definitions[name] = made


def alter_catalog(catalogs: CatalogManager, statement: statements.AlterCatalog) -> None:
    """``ALTER CATALOG c SET``, ``RESET`` or ``COMMENT``."""
    name = statement.name.parts[-1]
    made = _definition(catalogs, name)
    options = {key: value for key, value in made.options.items() if key not in statement.keys} | dict(statement.options)
    if options.get(_TYPE) != made.options[_TYPE]:
        raise CatalogError(f"A catalog keeps its '{_TYPE}'.")
    _check_keys({**options, **dict.fromkeys(statement.keys, "")})
    comment = made.comment if statement.comment is None else statement.comment
    catalogs.definitions[name] = replace(made, options=options, comment=comment)
    catalogs.catalogs[name].setdefault(options.get(_FIRST, "default"), Database())


def _check_keys(options: Mapping[str, str]) -> None:
    for key in options:
        if key not in (_TYPE, _FIRST):
            raise CatalogError(f"A catalog in memory has no option '{key}'.{near_names(key, (_TYPE, _FIRST))}")


def described_catalog(catalogs: CatalogManager, statement: statements.Describe) -> list[tuple[str, str]]:
    """``DESCRIBE CATALOG EXTENDED c``."""
    name = statement.name.parts[-1]
    made = _definition(catalogs, name)
    rows = [("name", name), ("type", made.options[_TYPE]), ("comment", made.comment or "")]
    if statement.extended:
        shown = sorted(shown_options(made.options).items())
        rows += [(f"option:{key}", value) for key, value in shown if key != _TYPE]
    return rows


def shown_catalog(catalogs: CatalogManager, statement: statements.Show) -> str:
    """``SHOW CREATE CATALOG c``."""
    assert statement.name is not None
    name = statement.name.parts[-1]
    made = _definition(catalogs, name)
    comment = "" if made.comment is None else f"COMMENT {_quoted(made.comment)}\n"
    shown = sorted(shown_options(made.options).items())
    listed = ",\n".join(f"  {_quoted(key)} = {_quoted(value)}" for key, value in shown)
    return f"CREATE CATALOG `{name}`\n{comment}WITH (\n{listed}\n)\n"


def _definition(catalogs: CatalogManager, name: str) -> CatalogDefinition:
    if name not in catalogs.catalogs:
        raise CatalogError(f"There is no catalog {name}.{near_names(name, catalogs.catalogs)}")
    found = catalogs.definitions.get(name)
    if found is None:
        raise CatalogError(f"{name} was not made by CREATE CATALOG, which would say what it is.")
    return found


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
