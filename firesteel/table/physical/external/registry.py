"""All connectors by name."""

from __future__ import annotations

from firesteel.common.typeinfo import Types
from firesteel.connectors.table.blackhole import BlackholeSink
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.connector import Changes, Connector, Writing
from firesteel.table.physical.external.datagen import DATAGEN
from firesteel.table.physical.external.filesystem import FILESYSTEM
from firesteel.table.physical.external.jdbc import JDBC
from firesteel.table.physical.external.kafka import KAFKA, UPSERT_KAFKA
from firesteel.table.physical.row_text import RowsAsText
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["CONNECTORS", "connector_of"]


def _printed(writing: Writing) -> None:
    lines = writing.stream.transform("RowsAsText", RowsAsText(writing.types), Types.STRING())
    printed = lines.print(writing.options.text("print-identifier")).name(f"{writing.options.path}: print")
    if not lines.transformation.parallel:
        # Changes of one subtask are printed in their order.
        printed.set_parallelism(1)


def _dropped(writing: Writing) -> None:
    writing.add(BlackholeSink())


CONNECTORS: dict[str, Connector] = {
    "datagen": DATAGEN,
    "print": Connector(
        ("print-identifier", "standard-error", "sink.parallelism"),
        write=_printed,
        takes=lambda table, options: Changes.GIVEN,
    ),
    "blackhole": Connector((), write=_dropped, takes=lambda table, options: Changes.GIVEN),
    "filesystem": FILESYSTEM,
    "kafka": KAFKA,
    "upsert-kafka": UPSERT_KAFKA,
    "jdbc": JDBC,
}


def connector_of(table: DeclaredTable, path: str, doing: str) -> Connector:
    """The connector of a table. ``doing`` is read or write."""
    name = table.options.get("connector")
    if name is None and "connector.type" in table.options:
        raise SqlValidationError(
            f"Table {path} has options of Flink before version 1.11, such as 'connector.type'. Write WITH ('connector' "
            "= 'filesystem', 'path' = '...', 'format' = 'csv') instead."
        )
    if name is None:
        raise SqlValidationError(f"Table {path} has no connector: WITH ('connector' = '...') is missing.")
    able = [each for each, one in CONNECTORS.items() if getattr(one, doing) is not None]
    if name not in able:
        verb = "reading from" if doing == "read" else "writing to"
        if name in CONNECTORS:
            raise SqlValidationError(f"Table {path}: there is no {verb} connector {name!r}.")
        raise NotSupportedError(
            f"Not supported yet: {verb} connector {name!r} (table {path}).{near_names(name, able)} "
            f"There are {', '.join(able)}."
        )
    return CONNECTORS[name]
