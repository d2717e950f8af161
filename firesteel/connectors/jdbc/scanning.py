"""Tables and queries as sources: what each batch reads, and how it is read.

A table with a column to part it by is read in ranges of that column's values: ``column > start AND column <= end``. The
position of a part is the last value that was read, so a batch that is repeated reads the same rows, as long as nobody
changes them. A query is one piece: it is read as a whole, or not yet.
"""

from __future__ import annotations

import datetime
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo, Types
from firesteel.common.types import Row, make_rows
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.dialect import Dialect
from firesteel.connectors.jdbc.session import Session
from firesteel.connectors.source import CHUNK_RECORDS, Position, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.errors import ConnectorError, FailureKind, InputError, short_repr

__all__ = ["Connection", "QueryEnumerator", "RowReader", "Scan", "TableEnumerator", "converted_rows"]

Parameters = tuple[Any, ...]


@dataclass(frozen=True)
class Connection:
    """Which database, found out where it is asked."""

    address: DatabaseAddress
    dialect: Callable[[], Dialect]
    retries: int = 3

    def session(self) -> Session:
        return self.dialect().session(self.address, "firesteel source")


@dataclass(frozen=True)
class Scan:
    """What a reader runs for a range."""

    sql: str
    """With question marks, for a whole query."""
    parameters: tuple[Any, ...] = ()
    table: str = ""
    columns: tuple[str, ...] = ()
    column: str = ""
    """The column that a table is parted by."""

    def statement(self, dialect: Dialect, start: Any, end: Any) -> tuple[str, Parameters]:
        if self.sql:
            return dialect.statement(self.sql)[0], self.parameters
        names = ", ".join(dialect.quoted(name) for name in self.columns)
        sql = f"SELECT {names} FROM {dialect.quoted(self.table)}"
        if not self.column:
            return dialect.statement(sql)[0], ()
        condition, parameters = between(dialect, self.column, start, end)
        sql += f" WHERE {condition} ORDER BY {dialect.quoted(self.column)}"
        return dialect.statement(sql)[0], parameters


def between(dialect: Dialect, column: str, start: Any, end: Any) -> tuple[str, Parameters]:
    """The condition for values behind ``start``, up to and including ``end``; None is no limit."""
    name = dialect.quoted(column)
    wanted = [(f"{name} > ?", start), (f"{name} <= ?", end)]
    given = [(text, value) for text, value in wanted if value is not None]
    if not given:
        return f"{name} IS NOT NULL", ()
    return " AND ".join(text for text, _ in given), tuple(value for _, value in given)


class _Enumerator(SplitEnumerator[Scan]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._live: Session | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}

    def stop(self) -> None:
        if self._live is not None:
            self._live.drop()
            self._live = None

    def _ask(self, sql: str, parameters: Parameters, doing: str) -> list[tuple[Any, ...]]:
        session = self._live = self._live or self._connection.session()
        statement = self._connection.dialect().statement(sql)[0]
        return session.again(lambda: session.execute(statement, *parameters), doing, self._connection.retries)


class QueryEnumerator(_Enumerator):
    """Queries that are read once, each as a whole. The position is how many of them were read."""

    bounded = True
    splittable = False

    def __init__(self, connection: Connection, scans: list[Scan]) -> None:
        super().__init__(connection)
        self._scans = scans

    def initial(self) -> Position:
        return 0

    def latest(self, position: int, max_records: int) -> Position:
        # How many rows they have is not known before: all that is left is one batch.
        return len(self._scans)

    def ended(self, position: int) -> bool:
        return position >= len(self._scans)

    def count(self, start: int, end: int) -> int:
        return end - start

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[Scan]]]:
        shares: list[list[SplitRange[Scan]]] = [[] for _ in range(parallelism)]
        for number in range(start, end):
            shares[number % parallelism].append(SplitRange(self._scans[number], None, None))
        return shares


class TableEnumerator(_Enumerator):
    """A table in parts, or one that grows. The position has of each part the last value that was read, the value that
    it ends with, and how many rows were read.

    ``parts`` is the number of parts; 0 is for a table that grows, which is one part without an end.
    """

    splittable = False

    def __init__(
        self, connection: Connection, scan: Scan, parts: int, start: Any, interval: float, settle: float
    ) -> None:
        super().__init__(connection)
        self._scan, self._parts, self._start = scan, parts, start
        self._interval, self._settle = interval, settle
        self.bounded = parts > 0
        self._asked = -math.inf
        self._exact: str | None = None
        self._seen: deque[tuple[float, Any]] = deque()
        """The greatest values of a column, and when each was seen first, that have not settled yet."""
        self._ripe: Any = None
        """The last of them that has."""

    def initial(self) -> Position:
        return None if self.bounded else [[self._start, None, 0]]

    def latest(self, position: list[list[Any]] | None, max_records: int) -> Position:
        if position is None:
            position = self._cut()
        if not self.bounded:
            return self._grown(position, max_records)
        unread = sum(at != end for at, end, _ in position)
        share = max(1, max_records // max(1, unread))
        return [part if part[0] == part[1] else self._moved(part, share) for part in position]

    def _moved(self, part: list[Any], records: int) -> list[Any]:
        at, end, rows = part
        last, count = self._limit(at, end, records)
        return [last, end, rows + count]

    def _cut(self) -> list[list[Any]]:
        """The parts of the table as it is now."""
        dialect, column = self._connection.dialect(), self._scan.column
        name, table = dialect.quoted(column), dialect.quoted(self._scan.table)
        exact = self._column()
        sql = f"SELECT MIN({name}){exact}, MAX({name}){exact}, COUNT(*) - COUNT({name}) FROM {table}"
        ((low, high, missing),) = self._ask(sql, (), f"a look at {self._scan.table}")
        if missing:
            # No range of values has them: they would be left out, and nobody would know.
            raise ConnectorError(
                f"Table {self._scan.table!r} has {missing} rows without a value (NULL) in {column!r}, by which it is "
                "read in parts. Choose a column that is NOT NULL, or read it with JdbcSource.query(…).",
                kind=FailureKind.PERMANENT,
            )
        if high is None:
            return []
        low, high = _json_value(low, column), _json_value(high, column)
        if isinstance(low, str) != isinstance(high, str):
            # SQLite has any values in any column.
            raise ConnectorError(
                f"Table {self._scan.table!r} has texts among the numbers in {column!r}, by which it is read in parts, "
                f"from {low!r} to {short_repr(high, 80)}. Choose a column whose values are of one type, or read it "
                "with JdbcSource.query(…).",
                kind=FailureKind.PERMANENT,
            )
        if not isinstance(low, int | float):
            # Only numbers can be cut into even parts.
            return [[None, high, 0]]
        whole = isinstance(low, int) and isinstance(high, int)
        width = high - low
        cuts = [low + (width * n // self._parts if whole else width * n / self._parts) for n in range(1, self._parts)]
        borders = [None, *sorted({cut for cut in cuts if low <= cut < high}), high]
        return [[start, end, 0] for start, end in itertools.pairwise(borders)]

    def _column(self) -> str:
        """Looks at the column. Returns what makes its values exact: drivers give those of single precision rounded, and
        a range up to such a value may lack rows."""
        if self._exact is None:
            dialect, column = self._connection.dialect(), self._scan.column
            sql = f"SELECT {dialect.quoted(column)} FROM {dialect.quoted(self._scan.table)} WHERE 1 = 0"
            session = self._live = self._live or self._connection.session()
            kind = session.again(
                lambda: session.column_type(sql), f"a look at {self._scan.table}", self._connection.retries
            )
            if kind in _WITHOUT_ORDER:
                raise _no_position(column, kind)
            self._exact = " * 1e0" if kind in _SINGLE_PRECISION else ""
        return self._exact

    def _limit(self, start: Any, end: Any, records: int) -> tuple[Any, int]:
        """The last value of so many rows, and how many there are. Rows with the same value stay together."""
        dialect = self._connection.dialect()
        condition, parameters = between(dialect, self._scan.column, start, end)
        name, table = dialect.quoted(self._scan.column), dialect.quoted(self._scan.table)
        inner = f"SELECT {name} FROM {table} WHERE {condition} ORDER BY {name} LIMIT {int(records)}"
        sql = f"SELECT MAX({name}){self._column()}, COUNT(*) FROM ({inner}) rows_"
        ((last, count),) = self._ask(sql, parameters, f"a look at {self._scan.table}")
        if last is None:
            return (start if end is None else end), 0
        if count < records and end is not None:
            return end, count
        return _json_value(last, self._scan.column), count

    def _grown(self, position: list[list[Any]], max_records: int) -> Position:
        at, _, rows = position[0]
        now = time.monotonic()
        if now - self._asked < self._interval:
            return position
        until = self._settled(at, now) if self._settle else None
        newest, count = (at, 0) if self._settle and until is None else self._limit(at, until, max_records)
        if not count:
            # Also where all that has settled lies before the position: it never goes back.
            self._asked = now
            return position
        return [[newest, None, rows + count]]

    def _settled(self, at: Any, now: float) -> Any:
        """The greatest value that was there ``settle`` seconds ago, if that is known: rows with smaller ones may have
        come since. It has nothing to do with how many rows a batch takes, so that a backlog is read at full speed."""
        dialect = self._connection.dialect()
        condition, parameters = between(dialect, self._scan.column, at, None)
        name, table = dialect.quoted(self._scan.column), dialect.quoted(self._scan.table)
        sql = f"SELECT MAX({name}){self._column()} FROM {table} WHERE {condition}"
        ((newest,),) = self._ask(sql, parameters, f"a look at {self._scan.table}")
        if newest is not None:
            newest = _json_value(newest, self._scan.column)
            if not self._seen or self._seen[-1][1] != newest:
                self._seen.append((now, newest))
        while self._seen and now - self._seen[0][0] >= self._settle:
            self._ripe = self._seen.popleft()[1]
        return self._ripe

    def ended(self, position: list[list[Any]] | None) -> bool:
        return self.bounded and position is not None and all(at == end for at, end, _ in position)

    def count(self, start: Any, end: Any) -> int:
        return sum(int(rows) for _, _, rows in end or []) - sum(int(rows) for _, _, rows in start or [])

    def _ranges(self, start: Any, end: Any) -> Iterator[tuple[int, Any, Any]]:
        for number, (high, limit, _) in enumerate(end or []):
            # Parts that are new begin behind the one before.
            low = start[number][0] if start else (end[number - 1][1] if number and limit is not None else None)
            if low != high:
                yield number, low, high

    def plan(self, start: Any, end: Any, parallelism: int) -> list[list[SplitRange[Scan]]]:
        shares: list[list[SplitRange[Scan]]] = [[] for _ in range(parallelism)]
        for number, low, high in self._ranges(start, end):
            shares[number % parallelism].append(SplitRange(self._scan, low, high, str(number)))
        return shares

    def splits(self, position: Any, parallelism: int) -> list[list[str]] | None:
        names: list[list[str]] = [[] for _ in range(parallelism)]
        for number, (at, end, _) in enumerate(position or []):
            if at != end:
                names[number % parallelism].append(str(number))
        return names


class RowReader(SourceReader[Scan, Row]):
    """Rows of ranges and queries, with the declared names and types."""

    def __init__(self, connection: Connection, declared: RowTypeInfo, timestamp: Callable[[Row], int] | None) -> None:
        self._connection, self._declared, self._timestamp = connection, declared, timestamp
        self.produces = declared
        self._live: Session | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}

    def read(self, split: Scan, start: Position, end: Position) -> Iterator[Records[Row]]:
        session = self._live = self._live or self._connection.session()
        statement, parameters = split.statement(self._connection.dialect(), start, end)
        names = tuple(self._declared.get_field_names())
        converters = [_converter(kind) for kind in self._declared.get_field_types()]
        plain = not any(converters)
        expected = [_SURE.get(repr(kind), frozenset()) for kind in self._declared.get_field_types()]
        fits, convert = self._declared.checker() or (lambda row: True), self._declared.converter()
        timestamp = self._timestamp
        # A query is begun again after a failure that may pass, but not in the middle.
        pieces = session.again(
            lambda: _begun(session.stream(statement, parameters, CHUNK_RECORDS)),
            f"the query {statement!r}",
            self._connection.retries,
        )
        try:
            for piece in pieces:
                if len(piece[0]) != len(names):
                    raise InputError(
                        f"The query {statement!r} gives {len(piece[0])} columns, and {self._declared} has "
                        f"{len(names)} fields."
                    )
                if plain and _surely_fits(piece, expected):
                    rows = make_rows(names, map(list, piece))
                else:
                    rows = make_rows(names, [_converted(values, converters) for values in piece])
                    refused = next((row for row in rows if not fits(row)), None)
                    if refused is not None:
                        raise InputError(f"{self._declared.explain(refused)}, in a row of the query {statement!r}.")
                    rows = rows if convert is None else list(map(convert, rows))
                yield Records(rows, None if timestamp is None else [timestamp(row) for row in rows])
        except session.errors as error:
            session.drop()
            raise session.as_connector_error(error, f"the query {statement!r}") from None

    def close(self) -> None:
        if self._live is not None:
            self._live.drop()
            self._live = None


def _begun(pieces: Iterator[Any]) -> Iterator[Any]:
    first = next(pieces, None)

    def all_of_it() -> Iterator[Any]:
        if first is not None:
            yield first
            yield from pieces

    return all_of_it()


_SINGLE_PRECISION = frozenset(("float4", "FLOAT"))
_WITHOUT_ORDER = frozenset(("bool", "bytea", "json", "jsonb", "uuid", "xml"))
"""Types of PostgreSQL that have no least and no greatest value."""

_SURE: dict[str, frozenset[type]] = {
    repr(Types.STRING()): frozenset((str, type(None))),
    repr(Types.LONG()): frozenset((int, type(None))),
    repr(Types.DOUBLE()): frozenset((float, type(None))),
}
"""Types whose values need no closer look than :func:`_surely_fits` takes."""


def _surely_fits(piece: list[tuple[Any, ...]], expected: list[frozenset[type]]) -> bool:
    """Whether all values of all columns have the right classes: that is found out column by column, many times faster
    than row by row."""
    columns = zip(*piece, strict=True)
    return all(
        # MySQL has unsigned numbers that are larger than a LONG.
        kinds.issuperset(map(type, column)) and (int not in kinds or max(filter(None, column), default=0) < 1 << 63)
        for kinds, column in zip(expected, columns, strict=True)
    )


def _converted(values: tuple[Any, ...], converters: list[Callable[[Any], Any] | None]) -> list[Any]:
    both = zip(values, converters, strict=True)
    return [value if convert is None or value is None else convert(value) for value, convert in both]


def converted_rows(rows: list[tuple[Any, ...]], declared: RowTypeInfo) -> list[list[Any]]:
    """Rows of a driver with the values of their declared types."""
    converters = [_converter(kind) for kind in declared.get_field_types()]
    return [_converted(values, converters) for values in rows]


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of the declared type of what a driver gives, where that may be something else."""
    converters: dict[str, Callable[[Any], Any]] = {
        repr(Types.BOOLEAN()): bool,
        repr(Types.FLOAT()): float,
        repr(Types.DOUBLE()): float,
        repr(Types.BIG_DEC()): lambda value: value if isinstance(value, Decimal) else Decimal(str(value)),
        repr(Types.SQL_DATE()): _parsed(datetime.date),
        repr(Types.SQL_TIME()): _time,
        repr(Types.SQL_TIMESTAMP()): _parsed(datetime.datetime),
        repr(Types.INSTANT()): _instant,
    }
    return converters.get(repr(kind))


def _parsed(kind: Any) -> Callable[[Any], Any]:
    return lambda value: kind.fromisoformat(value) if isinstance(value, str) else value


def _time(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        # MySQL's times are spans.
        return (datetime.datetime.min + value).time()
    return datetime.time.fromisoformat(value) if isinstance(value, str) else value


def _instant(value: Any) -> Any:
    moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    if isinstance(moment, datetime.datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        micros = (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)
        return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)
    return moment


def _json_value(value: Any, column: str) -> Any:
    """A column's value as a position."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, float | Decimal) and (math.isnan(value) or (isinstance(value, Decimal) and math.isinf(value))):
        # What is behind NaN and up to NaN, nobody could say; and a decimal of infinity is no number in a position.
        raise ConnectorError(
            f"Column {column!r}, by which a table is read, has the value {value}, by which no range can end. "
            "Choose another column, or read the table with JdbcSource.query(…).",
            kind=FailureKind.PERMANENT,
        )
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, int | float | str):
        return value
    raise _no_position(column, type(value).__name__)


def _no_position(column: str, kind: str) -> ConnectorError:
    return ConnectorError(
        f"Column {column!r} has values of {kind}. A table is read by a column of numbers, texts, dates or timestamps; "
        "without one, with JdbcSource.query(…).",
        kind=FailureKind.PERMANENT,
    )
