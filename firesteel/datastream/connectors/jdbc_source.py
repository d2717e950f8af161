"""Tables and queries of databases as sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.jdbc.scanning import Connection, QueryEnumerator, RowReader, Scan, TableEnumerator
from firesteel.connectors.jdbc.statements import marked
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
from firesteel.errors import ProgramError, short_repr

__all__ = ["JdbcSource"]


class JdbcSource(Source[Scan, Row]):
    """Rows of a database. Made by :meth:`table`, :meth:`query` or :meth:`growing_table`.

    >>> import sqlite3, tempfile
    >>> from firesteel.common import Types, WatermarkStrategy
    >>> from firesteel.testing import memory_environment
    >>> path = tempfile.mktemp()
    >>> with sqlite3.connect(path) as connection:
    ...     _ = connection.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)")
    ...     _ = connection.executemany("INSERT INTO words (word) VALUES (?)", [("to",), ("be",)])
    >>> row_type = Types.ROW_NAMED(["id", "word"], [Types.LONG(), Types.STRING()])
    >>> source = JdbcSource.table("words", row_type, JdbcConnectionOptions(f"jdbc:sqlite:{path}"), "id", 4)
    >>> stream = memory_environment().from_source(source, WatermarkStrategy.no_watermarks(), "words")
    >>> with stream.execute_and_collect() as rows:
    ...     [row.word for row in rows]
    ['to', 'be']
    """

    def __init__(
        self,
        enumerator: Callable[[Connection], SplitEnumerator[Scan]],
        connection: JdbcConnectionOptions,
        type_info: RowTypeInfo,
        timestamp: Callable[[Row], int] | None,
    ) -> None:
        if not isinstance(type_info, RowTypeInfo):
            raise ProgramError(f"type_info must be Types.ROW_NAMED of the columns, got {short_repr(type_info)}.")
        if not isinstance(connection, JdbcConnectionOptions):
            raise ProgramError(
                f"jdbc_connection_options must be JdbcConnectionOptions, got {short_repr(connection, 80)}."
            )
        self._connection = Connection(connection.address(), connection.dialect)
        self._enumerator, self._type_info, self._timestamp = enumerator, type_info, timestamp

    @staticmethod
    def table(
        table: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        partition_column: str | None = None,
        partitions: int = 1,
        *,
        timestamp: Callable[[Row], int] | None = None,
    ) -> JdbcSource:
        """The rows that a table has when the job begins. The columns are the fields of ``type_info``.

        With a ``partition_column`` it is read in that many parts side by side, and in pieces: some rows a batch. The
        column should have an index, and a value in each row: NULL and NaN are refused. Without it the whole table is
        one batch.
        """
        if partitions < 1:
            raise ProgramError(f"partitions must be 1 or more, got {partitions}.")
        _checked_names(type_info)
        columns = tuple(type_info.get_field_names())
        make: Callable[[Connection], SplitEnumerator[Scan]]
        if partition_column is None:
            if partitions > 1:
                raise ProgramError("A table is read in parts by the values of a column: name the partition_column.")
            make = _WholeTable(table, columns)
        else:
            scan = Scan("", (), table, columns, partition_column)
            make = _Parts(scan, partitions, None, 0.0, 0.0)
        return JdbcSource(make, jdbc_connection_options, type_info, timestamp)

    @staticmethod
    def query(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        parameters: Sequence[Sequence[Any]] = ((),),
        *,
        timestamp: Callable[[Row], int] | None = None,
    ) -> JdbcSource:
        """The rows of a query, once for each tuple of ``parameters``, which take the places of its question marks; the
        tuples are read side by side."""
        _checked_names(type_info)
        marks = marked(sql, lambda number: "?")[1]
        for given in parameters:
            if len(given) != marks:
                raise ProgramError(
                    f"The query has {marks} question marks, and parameters are {short_repr(given)}: {sql}"
                )
        scans = [Scan(sql, tuple(given)) for given in parameters]
        return JdbcSource(_Queries(scans), jdbc_connection_options, type_info, timestamp)

    @staticmethod
    def growing_table(
        table: str,
        column: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        *,
        start: Any = None,
        interval: float = 1.0,
        settle: float = 0.0,
        timestamp: Callable[[Row], int] | None = None,
    ) -> JdbcSource:
        """Rows as they are added to a table, by a column whose values only grow: a number from a sequence, the time of
        the insertion. It begins behind the value ``start``, or with the first row, and asks every ``interval`` seconds.

        Where several transactions insert at the same time, one with a smaller value may be committed after one with a
        greater value. With ``settle`` values are read only that many seconds after they were first seen.
        """
        _checked_names(type_info)
        if interval <= 0 or settle < 0:
            raise ProgramError(f"interval must be more than 0 and settle not less, got {interval} and {settle}.")
        scan = Scan("", (), table, tuple(type_info.get_field_names()), column)
        make = _Parts(scan, 0, start, interval, settle)
        return JdbcSource(make, jdbc_connection_options, type_info, timestamp)

    def create_enumerator(self) -> SplitEnumerator[Scan]:
        return self._enumerator(self._connection)

    def create_reader(self) -> SourceReader[Scan, Row]:
        return RowReader(self._connection, self._type_info, self._timestamp)

    def get_produced_type(self) -> TypeInformation | None:
        return self._type_info


def _checked_names(type_info: Any) -> None:
    if not isinstance(type_info, RowTypeInfo):
        raise ProgramError(f"type_info must be Types.ROW_NAMED of the columns, got {short_repr(type_info)}.")


class _Queries:
    def __init__(self, scans: list[Scan]) -> None:
        self._scans = scans

    def __call__(self, connection: Connection) -> SplitEnumerator[Scan]:
        return QueryEnumerator(connection, self._scans)


class _WholeTable:
    def __init__(self, table: str, columns: tuple[str, ...]) -> None:
        self._table, self._columns = table, columns

    def __call__(self, connection: Connection) -> SplitEnumerator[Scan]:
        return QueryEnumerator(connection, [Scan("", (), self._table, self._columns)])


class _Parts:
    def __init__(self, scan: Scan, parts: int, start: Any, interval: float, settle: float) -> None:
        self._given = (scan, parts, start, interval, settle)

    def __call__(self, connection: Connection) -> SplitEnumerator[Scan]:
        return TableEnumerator(connection, *self._given)
