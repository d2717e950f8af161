"""INSERT INTO: from a plan into a table of the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.errors import FailureKind
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable
from firesteel.table.functions.binding import cast_to
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.physical.connectors import sink_of
from firesteel.table.physical.planner import Planner
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.sql.statements import OnConflict
from firesteel.table.table_config import TableConfig
from firesteel.table.types.data_types import (
    ArrayType,
    BigIntType,
    BinaryType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = ["MisfitError", "fitted_columns", "fitted_for", "write_to"]


class MisfitError(SqlValidationError):
    """The columns of a query are not those of the table that they go to."""

    kind = FailureKind.PERMANENT
    place: int | None = None
    """Which of the table's columns it is; None where their number is wrong."""


def write_to(
    table: CatalogObject,
    path: str,
    plan: Plan,
    planner: Planner,
    config: TableConfig,
    on_conflict: OnConflict | None = None,
) -> None:
    """Adds the sink of a table to the planner's environment."""
    declared, fitted = fitted_for(table, path, plan)
    sink_of(declared, path, fitted, planner, config, on_conflict)


def fitted_for(table: CatalogObject, path: str, plan: Plan) -> tuple[DeclaredTable, Plan]:
    """The table, which takes rows, and the plan with its columns."""
    if not isinstance(table, DeclaredTable):
        raise SqlValidationError(f"{path} is a view: rows go into tables.")
    writable = table.writable
    names, kinds = [column.name for column in writable], [column.type for column in writable]
    return table, fitted_columns(plan, names, kinds, path)


def fitted_columns(plan: Plan, names: Sequence[str], kinds: Sequence[DataType], target: str) -> Plan:
    """The plan with these names and types, place by place. Nothing is narrowed."""
    if len(names) != len(plan.names):
        raise MisfitError(
            f"{target} has {len(names)} columns ({', '.join(names)}), "
            f"the query {len(plan.names)} ({', '.join(plan.names)})."
        )
    expressions: list[Expression] = []
    for place, (column, kind, name) in enumerate(zip(plan.refs(), kinds, names, strict=True)):
        if not _storable(column.type, kind):
            error = MisfitError(f"Column {name} of {target} is {kind}, the query gives {column.type}. Cast it.")
            error.place = place
            raise error
        expressions.append(cast_to(column, kind))
    return Project(plan, tuple(expressions), tuple(names))


def _storable(source: DataType, target: DataType) -> bool:
    """Whether values go into a column as they are: numbers into wider ones, never into narrower ones, as in Flink."""
    if isinstance(source, NullType) or source.not_null() == target.not_null():
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _storable(source.element_type, target.element_type)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _storable(source.key_type, target.key_type) and _storable(source.value_type, target.value_type)
    if isinstance(source, MultisetType) and isinstance(target, MultisetType):
        return _storable(source.element_type, target.element_type)
    if isinstance(source, RowType) and isinstance(target, RowType):
        pairs = zip(source.field_types(), target.field_types(), strict=False)
        return len(source.fields) == len(target.fields) and all(_storable(one, other) for one, other in pairs)
    if isinstance(source, IntegralType) and isinstance(target, IntegralType):
        return _WIDTHS.index(type(source)) <= _WIDTHS.index(type(target))
    return isinstance(source, _STORABLE.get(type(target), ()))


_WIDTHS = [TinyIntType, SmallIntType, IntType, BigIntType]
_STORABLE: dict[type[DataType], tuple[type[DataType], ...]] = {
    FloatType: (IntegralType, FloatType, DecimalType),
    DoubleType: (NumericType,),
    DecimalType: (NumericType,),
    CharType: (CharType,),
    VarCharType: (CharType, VarCharType),
    BinaryType: (BinaryType,),
    VarBinaryType: (BinaryType, VarBinaryType),
    DateType: (DateType, TimestampType),
    TimeType: (TimeType, TimestampType),
    TimestampType: (TimestampType, LocalZonedTimestampType),
    LocalZonedTimestampType: (TimestampType, LocalZonedTimestampType),
    YearMonthIntervalType: (YearMonthIntervalType,),
    DayTimeIntervalType: (DayTimeIntervalType,),
}
