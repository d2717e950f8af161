"""INSERT INTO: from a plan into a table of the catalog."""

from __future__ import annotations

from firesteel.table.catalog.tables import CatalogObject, DeclaredTable
from firesteel.table.functions.binding import cast_to
from firesteel.table.functions.casts import can_cast
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.physical.connectors import sink_of
from firesteel.table.physical.planner import Planner
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import DataType, NumericType
from firesteel.table.types.derivation import common_type, is_text

__all__ = ["fitted_for", "write_to"]


def write_to(table: CatalogObject, path: str, plan: Plan, planner: Planner, time_zone: str) -> None:
    """Adds the sink of a table to the planner's environment."""
    declared, fitted = fitted_for(table, path, plan)
    sink_of(declared, path, fitted, planner, time_zone)


def fitted_for(table: CatalogObject, path: str, plan: Plan) -> tuple[DeclaredTable, Plan]:
    """The table, which takes rows, and the plan with its columns."""
    if not isinstance(table, DeclaredTable):
        raise SqlValidationError(f"{path} is a view: rows go into tables.")
    writable = table.writable
    names, kinds = [column.name for column in writable], [column.type for column in writable]
    if len(names) != len(plan.names):
        raise SqlValidationError(
            f"{path} has {len(names)} columns ({', '.join(names)}), "
            f"the query {len(plan.names)} ({', '.join(plan.names)})."
        )
    expressions: list[Expression] = []
    for column, kind, name in zip(plan.refs(), kinds, names, strict=True):
        if not _storable(column.type, kind):
            raise SqlValidationError(f"Column {name} of {path} is {kind}, the query gives {column.type}. Cast it.")
        expressions.append(cast_to(column, kind))
    return table, Project(plan, tuple(expressions), tuple(names))


def _storable(source: DataType, target: DataType) -> bool:
    if source.not_null() == target.not_null() or (is_text(source) and is_text(target)):
        return True
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return True
    return common_type([source, target]) is not None and can_cast(source, target)
