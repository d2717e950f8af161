"""Methods of expressions about arrays, maps and rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression_methods.calls import NOWHERE, HoldsNode, method_of, node_of, property_of
from firesteel.table.sql.syntax import FieldAccess, ItemAccess, Node

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = ["CollectionMethods", "FlattenedRow"]


@dataclass(frozen=True)
class FlattenedRow(Node):
    """The fields of a row in its place."""

    operand: Node


class CollectionMethods(HoldsNode):
    """Of expressions that have elements or fields.

    >>> from firesteel.table.expressions import col
    >>> col("a").array_append(1)
    <Expression ARRAY_APPEND(a, 1)>
    """

    cardinality = property_of("CARDINALITY")
    element = property_of("ELEMENT")
    map_keys = property_of("MAP_KEYS")
    map_values = property_of("MAP_VALUES")
    map_entries = property_of("MAP_ENTRIES")
    array_distinct = method_of("ARRAY_DISTINCT")
    array_reverse = method_of("ARRAY_REVERSE")
    array_max = method_of("ARRAY_MAX")
    array_min = method_of("ARRAY_MIN")
    array_contains = method_of("ARRAY_CONTAINS", "needle")
    array_position = method_of("ARRAY_POSITION", "needle")
    array_append = method_of("ARRAY_APPEND", "addition")
    array_prepend = method_of("ARRAY_PREPEND", "addition")
    array_remove = method_of("ARRAY_REMOVE", "needle")
    array_concat = method_of("ARRAY_CONCAT", "*arrays")
    array_join = method_of("ARRAY_JOIN", "delimiter", "null_replacement=")
    array_slice = method_of("ARRAY_SLICE", "start_offset", "end_offset=")
    array_sort = method_of("ARRAY_SORT", "ascending_order=", "null_first=")
    array_union = method_of("ARRAY_UNION", "array")
    array_except = method_of("ARRAY_EXCEPT", "array")
    array_intersect = method_of("ARRAY_INTERSECT", "array")
    map_union = method_of("MAP_UNION", "*maps")

    def at(self, index: Any) -> Expression:
        """An element of an array, from one on, or of a map."""
        return self._made(ItemAccess(self._node, node_of(index), span=NOWHERE))

    def get(self, name_or_index: str | int) -> Expression:
        """A field of a row, by its name or by its place, which begins with 0."""
        if isinstance(name_or_index, bool) or not isinstance(name_or_index, str | int):
            raise ProgramError(f"get() takes the name or the place of a field, got {short_repr(name_or_index, 60)}.")
        return self._made(FieldAccess(self._node, name_or_index, span=NOWHERE))

    def __getattr__(self, name: str) -> Expression:
        """A field of a row, as ``column.name``."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return self.get(name)

    def __getitem__(self, index: Any) -> Expression:
        """An element, as ``column[1]`` or ``column["key"]``."""
        return self.at(index)

    __iter__ = None
    """Without it Python would ask for one element after the other, for ever."""

    @property
    def flatten(self) -> Expression:
        """The fields of a row, each as a column."""
        return self._made(FlattenedRow(self._node, span=NOWHERE))
