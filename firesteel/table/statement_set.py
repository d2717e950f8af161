"""Several INSERTs as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError
from firesteel.table.insertions import Insertion
from firesteel.table.table_result import TableResult

if TYPE_CHECKING:
    from firesteel.table.table import Table
    from firesteel.table.table_descriptor import TableDescriptor
    from firesteel.table.table_environment import TableEnvironment
    from firesteel.table.table_pipeline import TablePipeline

__all__ = ["StatementSet"]


class StatementSet:
    """Gathers INSERTs and runs them as one job, in which what they have in common is computed once."""

    def __init__(self, env: TableEnvironment) -> None:
        self._env = env
        self._inserts: list[Insertion] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Adds an INSERT statement."""
        self._inserts.append(self._env._insertion(stmt))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Adds the rows of a table, for a table of the catalog or of a descriptor."""
        self._inserts.append(Insertion(target_path_or_descriptor, table._plan, overwrite))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Adds what ``Table.insert_into`` made."""
        return self.add_insert(table_pipeline._target, table_pipeline._table, table_pipeline._overwrite)

    def explain(self, *extra_details: Any) -> str:
        """The plans as text."""
        return self._env._explain([each.plan for each in self._inserts], extra_details, self._inserts)

    def print_explain(self, *extra_details: Any) -> None:
        """Prints the plans."""
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Runs them, and forgets them."""
        if not self._inserts:
            raise ProgramError("The statement set is empty: add_insert_sql() or add_insert() first.")
        return self._env._insert(self._taken())

    def attach_as_datastream(self) -> None:
        """Makes them part of the stream program around the tables, whose ``execute()`` runs them, and forgets them."""
        self._env._attach(self._taken())

    def _taken(self) -> list[Insertion]:
        inserts, self._inserts = self._inserts, []
        return inserts
