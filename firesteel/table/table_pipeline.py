"""A table and where its rows go, before it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.insertions import Insertion
from firesteel.table.table_descriptor import TableDescriptor
from firesteel.table.table_result import TableResult

if TYPE_CHECKING:
    from firesteel.table.catalog_api import ObjectIdentifier
    from firesteel.table.table import Table

__all__ = ["TablePipeline"]


class TablePipeline:
    """Made by ``Table.insert_into``; run by itself, or with others in a statement set."""

    def __init__(self, target: str | TableDescriptor, table: Table, overwrite: bool = False) -> None:
        self._target, self._table, self._overwrite = target, table, overwrite

    def execute(self) -> TableResult:
        """Runs it."""
        return self._table.execute_insert(self._target, self._overwrite)

    def explain(self, *extra_details: Any) -> str:
        """The plan as text."""
        plan = self._table._plan
        return self._table._env._explain([plan], extra_details, [Insertion(self._target, plan)])

    def print_explain(self, *extra_details: Any) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """The table that rows go to; None for one that a descriptor describes."""
        if isinstance(self._target, TableDescriptor):
            return None
        return self._table._env._identifier(self._target)

    def __str__(self) -> str:
        return f"TablePipeline{{{self.get_sink_identifier() or 'an anonymous table'}}}"
