"""The columns that names can mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal
from firesteel.table.logical.plan import Plan
from firesteel.table.sql.errors import near_names
from firesteel.table.types.data_types import DataType, IntType, RowType

__all__ = ["Scope", "UnknownNameError", "field_of"]


class UnknownNameError(Exception):
    """A name that means nothing, or two things. The resolver adds the place."""


@dataclass(frozen=True)
class _Column:
    qualifier: str | None
    name: str
    index: int
    type: DataType
    hidden: bool = False
    """Found only with the name of its table: USING has another column for it."""


class Scope:
    """The columns of what FROM names, each with the name of its table."""

    def __init__(self, columns: Sequence[_Column]) -> None:
        self.columns = list(columns)

    @staticmethod
    def of(plan: Plan, qualifier: str | None) -> Scope:
        """The columns of one relation."""
        pairs = zip(plan.names, plan.types, strict=True)
        return Scope([_Column(qualifier, name, index, kind) for index, (name, kind) in enumerate(pairs)])

    def beside(self, other: Scope, width: int) -> Scope:
        """These columns, and others behind ``width`` of them."""
        moved = [replace(each, index=each.index + width) for each in other.columns]
        return Scope([*self.columns, *moved])

    def retyped(self, kinds: Sequence[DataType]) -> Scope:
        """The same columns with the types of a plan: an outer join makes NULLs."""
        return Scope([replace(each, type=kinds[each.index]) for each in self.columns])

    def merged(self, common: Sequence[str], place: Mapping[int, int], kinds: Sequence[DataType]) -> Scope:
        """The scope of USING: the common columns first and once, then the others. ``place`` says where the columns
        went."""
        first = [_Column(None, name, index, kinds[index]) for index, name in enumerate(common)]
        others = [
            replace(
                each,
                index=place[each.index],
                type=kinds[place[each.index]],
                hidden=each.hidden or each.name in common,
            )
            for each in self.columns
        ]
        return Scope([*first, *others])

    @property
    def visible(self) -> list[str]:
        """The names that stand for a column without that of a table."""
        return [each.name for each in self.columns if not each.hidden]

    def star(self, qualifier: tuple[str, ...]) -> list[tuple[str, Expression]]:
        """All columns, those of one table, or the fields of a row."""
        wanted = qualifier[-1] if qualifier else None
        found = [each for each in self.columns if (not each.hidden if wanted is None else each.qualifier == wanted)]
        if wanted is not None and (not found or len(qualifier) > 1):
            row = self._row(qualifier)
            if row is not None:
                return row
        if not found and wanted is not None:
            known = dict.fromkeys(each.qualifier for each in self.columns if each.qualifier)
            raise UnknownNameError(f"There is no table {wanted} in FROM.{near_names(wanted, known)}")
        return [(each.name, InputRef(each.index, each.type)) for each in found]

    def written(self, qualifier: tuple[str, ...], columns: Sequence[tuple[str, Expression]]) -> list[tuple[str, ...]]:
        """What stands for each of the columns of a star."""
        tables = {each.index: each.qualifier for each in self.columns if not each.hidden or qualifier}
        found = []
        for name, column in columns:
            table = tables.get(column.index) if isinstance(column, InputRef) else None
            row = () if isinstance(column, InputRef) else qualifier
            found.append((*row, name) if table is None else (table, name))
        return found

    def _row(self, parts: tuple[str, ...]) -> list[tuple[str, Expression]] | None:
        try:
            column = self.find(parts)
        except UnknownNameError:
            return None
        kind = column.type
        return [(name, field_of(column, name)) for name in kind.field_names()] if isinstance(kind, RowType) else None

    def find(self, parts: tuple[str, ...]) -> Expression:
        """A column, or a field inside one: ``a``, ``t.a``, ``t.a.b``."""
        for skipped in (1, 0):
            # With the name of a table in front first: Flink prefers it.
            if len(parts) <= skipped:
                continue
            qualifier = parts[0] if skipped else None
            matching = [
                each
                for each in self.columns
                if each.name == parts[skipped]
                and (not each.hidden if qualifier is None else each.qualifier == qualifier)
            ]
            if len(matching) > 1:
                tables = " and ".join(str(each.qualifier) for each in matching)
                raise UnknownNameError(f"Column {parts[skipped]} is in {tables}: write which of them is meant.")
            if matching:
                found: Expression = InputRef(matching[0].index, matching[0].type)
                for name in parts[skipped + 1 :]:
                    found = field_of(found, name)
                return found
        raise self._unknown(parts)

    def _unknown(self, parts: tuple[str, ...]) -> UnknownNameError:
        names = dict.fromkeys(each.name for each in self.columns)
        qualifiers = {each.qualifier for each in self.columns if each.qualifier}
        if len(parts) > 1 and parts[0] in qualifiers:
            own = [each.name for each in self.columns if each.qualifier == parts[0]]
            return UnknownNameError(
                f"There is no column {parts[1]} in {parts[0]}.{near_names(parts[1], own)}{_listed(own)}"
            )
        if len(parts) > 1:
            known = f"It has {', '.join(sorted(qualifiers))}."
            if not qualifiers:
                known = f"What stands there has no name: (SELECT ...) AS {parts[0]} gives it one."
            return UnknownNameError(f"There is no table {parts[0]} in FROM.{near_names(parts[0], qualifiers)} {known}")
        return UnknownNameError(f"There is no column {parts[0]}.{near_names(parts[0], names)}{_listed(list(names))}")


def _listed(names: list[str]) -> str:
    if not names:
        return ""
    return f" The columns are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}."


def field_of(row: Expression, name: str | int) -> Expression:
    """A field of a row, by its name or by its place, which begins with 0."""
    kind = row.type
    if not isinstance(kind, RowType):
        raise UnknownNameError(f"{kind} has no fields, so no {name}.")
    for index, each in enumerate(kind.fields):
        if name in (each.name, index):
            result = each.data_type.with_nullability(each.data_type.is_nullable or kind.is_nullable)
            return Call("FIELD", (row, _index(index)), result)
    if isinstance(name, int):
        raise UnknownNameError(f"The row has no field {name}: its fields are 0 to {len(kind) - 1}.")
    raise UnknownNameError(f"The row has no field {name}.{near_names(name, kind.field_names())}")


def _index(index: int) -> Expression:
    return Literal(index, IntType(is_nullable=False))
