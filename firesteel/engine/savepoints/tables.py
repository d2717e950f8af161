"""The file beside a manifest that says how state is shown as tables: of queries, whose states are tuples without names.

Jobs begin with a savepoint whether it has the file or not.
"""

from __future__ import annotations

from firesteel.durable.state_tables import OperatorTables, tables_from_json, tables_to_json
from firesteel.engine.savepoints.places import Place
from firesteel.errors import SavepointError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import TransformSpec

__all__ = ["FILE", "Tables", "read_tables", "tables_of", "write_tables"]

FILE = "tables.json"

Tables = dict[str, OperatorTables]
"""By the uid of their operator."""


def tables_of(graph: JobGraph) -> Tables:
    """What the operators of a job say of their states."""
    found = {}
    for node in graph.graph.nodes.values():
        if isinstance(node.spec, TransformSpec) and node.spec.tables is not None:
            found[node.uid] = node.spec.tables
    return found


def write_tables(target: Place, tables: Tables) -> None:
    """Writes the file, if there is something to say."""
    if tables:
        target.make()
        target.inside(FILE).write(tables_to_json(tables).encode())


def read_tables(place: Place) -> Tables:
    """What a savepoint says of its states: nothing, if it was taken of no query, or by a version that did not."""
    file = place.inside(FILE)
    if not file.exists():
        return {}
    try:
        return tables_from_json(file.read().decode())
    except ValueError as error:
        raise SavepointError(
            f"{file.address} cannot be read: {error}. A job can begin with the savepoint all the same; delete the file "
            "to read states as they are stored."
        ) from error
