"""Rows of a query that meet in one primary key of the table that they go to."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.physical.external.connector import Changes
from firesteel.table.physical.upsert_keys import upsert_keys
from firesteel.table.physical.upserts import upsert_key
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.sql.statements import OnConflict

__all__ = ["resolution"]

REQUIRED = "table.exec.sink.require-on-conflict"
MATERIALIZE = "table.exec.sink.upsert-materialize"


class _Materialize(Enum):
    AUTO = "AUTO"
    NONE = "NONE"
    FORCE = "FORCE"


def resolution(
    table: DeclaredTable,
    path: str,
    plan: Plan,
    takes: Changes,
    inserts_only: bool,
    chosen: OnConflict | None,
    configuration: Configuration,
) -> OnConflict | None:
    """How rows of the table's key are put together before they are written; None: they go as they come. ``chosen`` is
    what the statement says, ``inserts_only`` whether the query takes nothing back."""
    if chosen is not None:
        _check_chosen(table, path, plan, takes, inserts_only, chosen)
    by_key = takes is Changes.UPSERT or (takes is Changes.GIVEN and bool(table.primary_key))
    materialize = _materialize(configuration)
    if not by_key or materialize is _Materialize.NONE:
        return None
    if materialize is _Materialize.FORCE:
        return chosen or OnConflict.DEDUPLICATE
    if inserts_only and chosen in (None, OnConflict.DEDUPLICATE):
        # A later row takes the place of an earlier one of its key: nothing has to be known of those before.
        return None
    names = [column.name for column in table.writable]
    primary = frozenset(map(names.index, table.primary_key))
    keys = upsert_keys(plan)
    if any(key <= primary for key in keys):
        # Behind a filter the last change of a key may be -U alone, which a table that overwrites does not see.
        plain = takes is Changes.GIVEN or upsert_key(plan) == primary
        return None if plain else OnConflict.DEDUPLICATE
    if chosen is None and configuration.get_boolean(REQUIRED, True) and any(_scans(plan)):
        shown = min((sorted(key) for key in keys), key=len, default=[])
        known = f"by ({', '.join(names[at] for at in shown)})" if shown else "by no key that is known"
        raise SqlValidationError(
            f"Table {path} has the primary key ({', '.join(table.primary_key)}), and the query changes its rows "
            f"{known}: several rows may meet in one key. Say what becomes of them: ON CONFLICT DO DEDUPLICATE (the "
            "last one stays; all are kept in state), ON CONFLICT DO NOTHING (the first one stays) or ON CONFLICT DO "
            f"ERROR (the job fails). {REQUIRED} = false takes DEDUPLICATE everywhere."
        )
    return chosen or OnConflict.DEDUPLICATE


def _check_chosen(
    table: DeclaredTable, path: str, plan: Plan, takes: Changes, inserts_only: bool, chosen: OnConflict
) -> None:
    reason = ""
    if takes is Changes.INSERT:
        reason = "takes insertions only"
    elif takes is Changes.GIVEN and inserts_only:
        reason = "gets insertions only from this query"
    elif takes is Changes.ALL:
        reason = "takes all changes, with the rows that were there before"
    if reason:
        raise SqlValidationError(
            f"ON CONFLICT is for tables that take changes by key: {path} (connector "
            f"{table.options.get('connector')!r}) {reason}. Leave it out."
        )
    if chosen is OnConflict.DEDUPLICATE:
        return
    without = sorted({".".join(scan.path) for scan in _scans(plan) if not scan.rowtimes and scan.watermark is None})
    if without:
        raise SqlValidationError(
            f"ON CONFLICT DO {chosen.value} decides about rows when a watermark comes, and these have none: "
            f"{', '.join(without)}. Declare one (WATERMARK FOR ... AS ...), or use ON CONFLICT DO DEDUPLICATE."
        )


def _materialize(configuration: Configuration) -> _Materialize:
    given = configuration.get_string(MATERIALIZE, "AUTO")
    try:
        return _Materialize(given.upper())
    except ValueError:
        raise ConfigurationError(
            f"{MATERIALIZE} is AUTO (rows are put together by key where the query changes them by another one), NONE "
            f"or FORCE, got {given!r}."
        ) from None


def _scans(plan: Plan) -> Iterator[Scan]:
    """The tables that a query reads. Rows that stand in it come from none."""
    if isinstance(plan, Scan):
        yield plan
    for below in plan.inputs:
        yield from _scans(below)
