"""Where a Spark writer puts a batch, and how one that comes again is recognised.

*Files.* 1. Spark writes the batch to a folder ``_firesteel/<sink>-<batch>`` of the target, which readers do not see.
2. A file says that it is complete. *Crash before it:* it is written anew. 3. Its files are moved to the target, under
names with the number of the batch. 4. The number is written down. *Crash before it:* what is not moved yet is moved.
5. The folder is removed.

*JDBC.* 1. Spark writes the batch to a table of the sink's own. 2. One transaction copies its rows to the target and
writes down the number of the batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firesteel.common.secret import without_url_secrets
from firesteel.connectors.jdbc.address import has_password, shown
from firesteel.connectors.spark.errors import as_connector_error
from firesteel.connectors.spark.session import revealed, spark_session
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["FilesTarget", "FunctionTarget", "JdbcTarget", "SparkBatch", "Target"]

MARKERS = "firesteel_batches"


class SparkBatch(NamedTuple):
    """Which batch of which sink. One that comes again has the same rows, and is equal to the first.

    >>> SparkBatch("fs-0f7c416c9d3734e1", 12)
    SparkBatch(sink='fs-0f7c416c9d3734e1', number=12)
    """

    sink: str
    """A name that this sink of this job has over all restarts, and no other one has."""
    number: int
    """Greater than that of every batch before."""


class Target(ABC):
    """Writes batches, each once."""

    @abstractmethod
    def write(self, frame: Any, batch: SparkBatch) -> None:
        """Writes the rows of a batch, unless they are there already."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """The attempt is over."""


class FunctionTarget(Target):
    """What a user's function makes of it."""

    def __init__(self, function: Callable[[Any, SparkBatch], None]) -> None:
        self._function = function

    def write(self, frame: Any, batch: SparkBatch) -> None:
        self._function(frame, batch)

    def __str__(self) -> str:
        return getattr(self._function, "__name__", "a function")


class FilesTarget(Target):
    """A folder of files in one of Spark's formats, on any file system that Spark reaches."""

    def __init__(self, file_format: str, path: str, options: Mapping[str, Any], partition_by: Sequence[str]) -> None:
        self._format, self._path = file_format, path.rstrip("/")
        self._options, self._partition_by = dict(options), list(partition_by)

    def __str__(self) -> str:
        return without_url_secrets(self._path)

    def write(self, frame: Any, batch: SparkBatch) -> None:
        try:
            self._write(frame, batch)
        except ConnectorError:
            raise
        except Exception as error:
            raise as_connector_error(error, f"write to {self}", self._options.values()) from None

    def _write(self, frame: Any, batch: SparkBatch) -> None:
        session = spark_session()
        files = _Hadoop(session, self._path)
        own = f"{self._path}/_firesteel"
        draft, marker = f"{own}/{batch.sink}-{batch.number}", f"{own}/{batch.sink}"
        if files.exists(marker) and int(files.read(marker)) >= batch.number:
            files.delete(draft)
            return
        complete = f"{draft}/_complete"
        if not files.exists(complete):
            writer = frame.write.format(self._format).options(**revealed(self._options)).mode("overwrite")
            if self._partition_by:
                writer = writer.partitionBy(*self._partition_by)
            writer.save(draft)
            files.write(complete, b"")
        for path in files.under(draft):
            folder, _, name = path.rpartition("/")
            if not name.startswith(("_", ".")):
                there = f"{self._path}{folder.removeprefix(draft)}"
                files.move(path, f"{there}/part-{batch.number:08d}-{batch.sink[3:11]}-{name.removeprefix('part-')}")
        files.write(marker, str(batch.number).encode())
        files.delete(draft)


class _Hadoop:
    """The file system of a path, as Spark has it."""

    def __init__(self, session: Any, path: str) -> None:
        self._jvm = session._jvm
        self._system = self._path(path).getFileSystem(session._jsc.hadoopConfiguration())
        self._root = (
            self._path(path).makeQualified(self._system.getUri(), self._system.getWorkingDirectory()).toString()
        )
        self._given = path

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """As a whole: a file with the right name is complete."""
        draft = f"{path}.draft"
        stream = self._system.create(self._path(draft), True)
        try:
            stream.write(bytearray(content), 0, len(content))
            stream.hsync()
        finally:
            stream.close()
        if self.exists(path):
            self.delete(path)
        self.move(draft, path)

    def move(self, path: str, there: str) -> None:
        self._system.mkdirs(self._path(there).getParent())
        if not self._system.rename(self._path(path), self._path(there)) and not self.exists(there):
            raise ConnectorError(f"{path} could not be renamed to {there}.")

    def delete(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def under(self, folder: str) -> Iterator[str]:
        """All files of a folder and those inside it, named as the folder is."""
        found = self._system.listFiles(self._path(folder), True)
        paths = []
        while found.hasNext():
            paths.append(found.next().getPath().toString())
        return (f"{self._given}{path.removeprefix(self._root)}" for path in sorted(paths))


class JdbcTarget(Target):
    """A table of any database for which Spark has a JDBC driver."""

    def __init__(self, url: str, table: str, properties: Mapping[str, Any]) -> None:
        self._url, self._table, self._properties = url, table, dict(properties)

    def __str__(self) -> str:
        return f"{self._table} of {shown(self._url) if has_password(self._url) else self._url}"

    def write(self, frame: Any, batch: SparkBatch) -> None:
        try:
            self._write(frame, batch)
        except ConnectorError:
            raise
        except Exception as error:
            raise self._failure(error, f"write to {self}") from None

    def _failure(self, error: Exception, doing: str, unknown: FailureKind = FailureKind.PASSING) -> ConnectorError:
        return as_connector_error(error, doing, [self._url, *self._properties.values()], unknown)

    def _write(self, frame: Any, batch: SparkBatch) -> None:
        properties = revealed(self._properties)
        database = _Database(spark_session(), self._url, properties)
        try:
            last = self._last(database, batch.sink)
            if last >= batch.number:
                return
            there = self._columns(database)
            mark = hashlib.blake2b(f"{batch.sink} {self._table}".encode(), digest_size=6).hexdigest()
            staged = f"firesteel_{mark}"
            frame.write.jdbc(self._url, staged, mode="overwrite", properties=properties)
            columns = [database.quoted(self._found(name, there)) for name in frame.columns]
            chosen = [database.quoted(name) for name in frame.columns]
            copy = f"INSERT INTO {self._table} ({', '.join(columns)}) SELECT {', '.join(chosen)} FROM {staged}"
            # Nothing, if somebody else who was thought dead was faster.
            place = f"sink = '{batch.sink}' AND batch = {last}"
            remember = f"UPDATE {MARKERS} SET batch = {batch.number} WHERE {place}"
            if not database.transaction([copy, remember]):
                raise ConnectorError(f"Another driver writes to {self._table} for the same sink.")
            with contextlib.suppress(Exception):
                database.run(f"DROP TABLE {staged}")
        finally:
            database.close()

    def _columns(self, database: _Database) -> list[str]:
        try:
            return database.columns(self._table)
        except Exception as error:
            raise self._failure(error, f"find the table {self} (it must exist)", FailureKind.PERMANENT) from None

    def _found(self, name: str, there: list[str]) -> str:
        """What a column of the DataFrame is called in the table."""
        for one in there:
            if one.lower() == name.lower():
                return one
        raise ConnectorError(
            f"The table {self} has no column {name!r}. It has {', '.join(there)}.", kind=FailureKind.PERMANENT
        )

    def _last(self, database: _Database, sink: str) -> int:
        """The number of the last batch that is there. A sink that has none yet gets a row at once: then every batch is
        noted by an update, which tells whether somebody else was faster."""
        query = f"SELECT batch FROM {MARKERS} WHERE sink = '{sink}'"
        try:
            last = database.number(query)
        except Exception as error:
            if self._failure(error, "look", FailureKind.PERMANENT).kind is FailureKind.PASSING:
                raise
            database.run(f"CREATE TABLE {MARKERS} (sink VARCHAR(64) NOT NULL PRIMARY KEY, batch BIGINT NOT NULL)")
            last = None
        if last is None:
            last = -1
            database.run(f"INSERT INTO {MARKERS} (sink, batch) VALUES ('{sink}', {last})")
        return last


class _Database:
    """A connection of the JVM's."""

    def __init__(self, session: Any, url: str, properties: Mapping[str, str]) -> None:
        jvm = session._jvm
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
        given = jvm.java.util.Properties()
        for key, value in properties.items():
            given.setProperty(key, value)
        driver = properties.get("driver") or jvm.java.sql.DriverManager.getDriver(url).getClass().getName()
        jdbc.DriverRegistry.register(driver)
        self._dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url)
        self._connection = jvm.java.sql.DriverManager.getConnection(url, given)

    def quoted(self, name: str) -> str:
        return str(self._dialect.quoteIdentifier(name))

    def run(self, statement: str) -> int:
        made = self._connection.createStatement()
        try:
            return int(made.executeUpdate(statement))
        finally:
            made.close()

    def number(self, query: str) -> int | None:
        made = self._connection.createStatement()
        try:
            found = made.executeQuery(query)
            return int(found.getLong(1)) if found.next() else None
        finally:
            made.close()

    def columns(self, table: str) -> list[str]:
        made = self._connection.createStatement()
        try:
            described = made.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()
            return [str(described.getColumnName(n)) for n in range(1, described.getColumnCount() + 1)]
        finally:
            made.close()

    def transaction(self, statements: Sequence[str]) -> bool:
        """All or nothing. False where the last one changed nothing."""
        self._connection.setAutoCommit(False)
        try:
            changed = [self.run(statement) for statement in statements]
            if not changed[-1]:
                self._connection.rollback()
                return False
            self._connection.commit()
            return True
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            self._connection.setAutoCommit(True)

    def close(self) -> None:
        self._connection.close()


_NAME = re.compile(r"[\w.\"`\[\]$]+")


def checked_table(table: str) -> bool:
    """Whether a text can be the name of a table."""
    return _NAME.fullmatch(table) is not None
