"""Sinks into databases, under the names that PyFlink gives to JDBC. No Java is involved.

The address says which database it is: PostgreSQL, MariaDB or MySQL, SQLite. Three flavours: a statement that is run at
least once for each record, an upsert, whose repetition changes nothing, and exactly once: through transactions that are
prepared by the tasks and committed by the driver, or written ahead, with a mark in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common.secret import Secret
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.connectors.jdbc.address import AddressReference, DatabaseAddress, has_password, shown
from firesteel.connectors.jdbc.dialect import Dialect, dialect_of
from firesteel.connectors.jdbc.statements import check_keys, marked
from firesteel.connectors.jdbc.writing import RowWriter, Target
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ProgramError, short_repr

__all__ = ["JdbcConnectionOptions", "JdbcExactlyOnceOptions", "JdbcExecutionOptions", "JdbcSink"]


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Where the database is. The text of the options never has the password.

    A password may be a text, a :class:`~firesteel.common.Secret`, or a function that gives one. Of the latter two the
    workers look it up themselves, whenever they connect, and it is stored nowhere. The same holds for an address, which
    may have a password in it.

    >>> options = (
    ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...     .with_url("jdbc:postgresql://localhost:5432/shop")
    ...     .with_user_name("ada")
    ...     .with_password(Secret.from_environment("SHOP_PASSWORD"))
    ...     .build()
    ... )
    >>> options
    JdbcConnectionOptions(jdbc:postgresql://localhost:5432/shop)
    """

    url: str | Secret | Callable[[], str]
    driver_name: str | None = None
    user_name: str | None = None
    password: str | Secret | Callable[[], str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # From here on they are secrets, wherever the options go.
        if not isinstance(self.url, str) or has_password(self.url):
            object.__setattr__(self, "url", Secret.of(self.url))
        if self.password is not None:
            object.__setattr__(self, "password", Secret.of(self.password))

    def __repr__(self) -> str:
        if isinstance(self.url, Secret) and self.url.is_reference:
            # It is looked up where it is used, not here.
            return f"JdbcConnectionOptions({self.url!r})"
        return f"JdbcConnectionOptions({shown(self.get_db_url())})"

    def get_db_url(self) -> str:
        """The address as it was given, or as it is known in this process."""
        return self.url if isinstance(self.url, str) else Secret.of(self.url).reveal()

    def get_driver_name(self) -> str | None:
        """The name of the Java class, which has no effect here."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """Who asks; None: whoever the address or the environment says."""
        return self.user_name

    def get_password(self) -> str | None:
        """The password, in full, as it is known in this process."""
        return Secret.of(self.password).reveal() if self.password is not None else None

    class JdbcConnectionOptionsBuilder:
        """Makes :class:`JdbcConnectionOptions`."""

        def __init__(self) -> None:
            self._options = JdbcConnectionOptions("")

        def with_url(self, url: str | Secret | Callable[[], str]) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """``jdbc:postgresql://host:port/database``, ``jdbc:mysql://…``, ``jdbc:mariadb://…``, ``jdbc:sqlite:path``,
            and what JDBC allows behind it; or where to find that."""
            return self._with(url=url)

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Accepted, without effect: the address says which database it is."""
            return self._with(driver_name=driver_name)

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Who asks."""
            return self._with(user_name=user_name)

        def with_password(
            self, password: str | Secret | Callable[[], str]
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The password, or where it is to be found. It never appears in a log or an error."""
            return self._with(password=password)

        def _with(self, **changes: Any) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._options = replace(self._options, **changes)
            return self

        def build(self) -> JdbcConnectionOptions:
            """The options, if they can be understood."""
            if not self._options.url:
                raise ProgramError(
                    "JdbcConnectionOptions need an address: with_url('jdbc:postgresql://host/database')."
                )
            self._options.address()
            return self._options

    def address(self) -> DatabaseAddress:
        """The address, understood; one that is to be found elsewhere is understood when it is used."""
        password = Secret.of(self.password) if self.password is not None else None
        if isinstance(self.url, Secret) and self.url.is_reference:
            return AddressReference(self.url, self.user_name, password)
        return self.dialect().parse(self.get_db_url(), self.user_name, password)

    def dialect(self) -> Dialect:
        """Which database it is, as far as the address is known in this process."""
        return dialect_of(self.get_db_url())


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """In what portions rows are sent, and how often again if that fails.

    >>> JdbcExecutionOptions.builder().with_batch_size(100).build()
    JdbcExecutionOptions(batch_interval_ms=0, batch_size=100, max_retries=3)
    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        """How long rows wait for others; 0: until there are enough. None waits longer than its micro-batch."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """How many rows are sent together; 0: all of a micro-batch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """How often what failed for a reason that may pass (a lost connection, a deadlock) is tried again."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """5000 rows, no interval, 3 retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """A builder that starts with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Makes :class:`JdbcExecutionOptions`."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """How many rows are sent together."""
            return self._with("batch_size", size)

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """How long rows wait for others."""
            return self._with("batch_interval_ms", interval_ms)

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """How often a portion is tried again."""
            return self._with("max_retries", max_retries)

        def _with(self, name: str, value: int) -> JdbcExecutionOptions.Builder:
            if value < 0:
                raise ProgramError(f"{name} must be 0 or more, got {value}.")
            self._options = replace(self._options, **{name: value})
            return self

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return self._options


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """How prepared transactions are committed.

    >>> JdbcExactlyOnceOptions.builder().with_max_commit_attempts(5).build().get_max_commit_attempts()
    5
    """

    max_commit_attempts: int = 3

    def get_max_commit_attempts(self) -> int:
        """How often a commit is tried before the job fails; after its restart it is tried again."""
        return self.max_commit_attempts

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """3 attempts."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.Builder:
        """A builder that starts with the defaults."""
        return JdbcExactlyOnceOptions.Builder()

    class Builder:
        """Makes :class:`JdbcExactlyOnceOptions`."""

        def __init__(self) -> None:
            self._options = JdbcExactlyOnceOptions()

        def with_max_commit_attempts(self, max_commit_attempts: int) -> JdbcExactlyOnceOptions.Builder:
            """How often a commit is tried before the job fails."""
            if max_commit_attempts < 1:
                raise ProgramError(f"max_commit_attempts must be 1 or more, got {max_commit_attempts}.")
            self._options = replace(self._options, max_commit_attempts=max_commit_attempts)
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """The options."""
            return self._options


@dataclass(frozen=True)
class _Rows:
    """What is written where. Which database that is may be known only where it is written."""

    type_info: RowTypeInfo | TupleTypeInfo
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions
    sql: str = ""
    table: str = ""
    keys: tuple[str, ...] = ()
    """For an upsert, in place of ``sql``."""

    def checked(self) -> _Rows:
        _checked_type(self.type_info)
        if not isinstance(self.connection, JdbcConnectionOptions):
            raise ProgramError(
                f"jdbc_connection_options must be JdbcConnectionOptions, got {short_repr(self.connection, 80)}."
            )
        if not (isinstance(self.connection.url, Secret) and self.connection.url.is_reference):
            self.target()
        elif self.table:
            check_keys(self.table, self._columns(), self.keys)
        else:
            self._check_marks(marked(self.sql, lambda number: "?")[1])
        return self

    def _columns(self) -> list[str]:
        assert isinstance(self.type_info, RowTypeInfo)
        return self.type_info.get_field_names()

    def target(self) -> Target:
        dialect, options = self.connection.dialect(), self.execution
        sql = dialect.upsert(self.table, self._columns(), self.keys) if self.table else self.sql
        statement, marks = dialect.statement(sql)
        self._check_marks(marks)
        return Target(
            dialect,
            self.connection.address(),
            statement,
            self.type_info,
            options.batch_size,
            options.batch_interval_ms,
            options.max_retries,
        )

    def _check_marks(self, marks: int) -> None:
        fields = len(self.type_info.get_field_types())
        if marks != fields:
            raise ProgramError(
                f"The statement has {marks} question marks for the {fields} fields of {self.type_info}; "
                f"it needs one for each: {self.sql}"
            )


class JdbcSink(Sink, SinkFunction):
    """Rows into a table. Made by :meth:`sink`, :meth:`upsert_sink` or :meth:`exactly_once_sink`.

    ``add_sink`` takes it, as in PyFlink, and so does ``sink_to``.
    """

    def __init__(self, rows: _Rows, exactly_once: JdbcExactlyOnceOptions | None = None) -> None:
        self._rows = rows.checked()
        self._exactly_once = exactly_once

    @property
    def _target(self) -> Target:
        return self._rows.target()

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo | TupleTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Runs a statement for each record, at least once: after a failure those since the last checkpoint come again.

        ``sql`` has a question mark for each field of ``type_info``, in its order.
        """
        execution = jdbc_execution_options or JdbcExecutionOptions()
        return JdbcSink(_Rows(type_info, jdbc_connection_options, execution, sql))

    @staticmethod
    def upsert_sink(
        table: str,
        key_fields: Sequence[str],
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Inserts each record, or updates the row with its key. That is idempotent, so the table ends up exact.

        The columns are the fields of ``type_info``. The table needs a unique or primary key on ``key_fields``.
        """
        _checked_type(type_info)
        execution = jdbc_execution_options or JdbcExecutionOptions()
        return JdbcSink(_Rows(type_info, jdbc_connection_options, execution, table=table, keys=tuple(key_fields)))

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo | TupleTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Runs a statement for each record exactly once: in a transaction that is committed when its batch is complete.

        PostgreSQL's ``max_prepared_transactions`` must allow one for each subtask. MariaDB, MySQL and SQLite get a
        table in which transactions leave their mark.
        """
        execution = jdbc_execution_options or JdbcExecutionOptions()
        options = jdbc_exactly_once_options or JdbcExactlyOnceOptions()
        return JdbcSink(_Rows(type_info, jdbc_connection_options, execution, sql), options)

    def _once(self, options: JdbcExactlyOnceOptions) -> Sink:
        target = self._target
        return target.dialect.exactly_once(target, options.max_commit_attempts)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self._exactly_once is not None:
            return self._once(self._exactly_once).create_writer(context)
        return RowWriter(self._target, f"firesteel {context.job_name()}"[:63])

    def create_committer(self, context: CommitterContext) -> Committer | None:
        if self._exactly_once is None:
            return None
        return self._once(self._exactly_once).create_committer(context)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Not for a JdbcSink: its writers take the records."""
        raise ProgramError("A JdbcSink is not a function to call: give it to add_sink() or sink_to().")


def _checked_type(type_info: Any) -> None:
    if not isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        raise ProgramError(
            "type_info must be Types.ROW, Types.ROW_NAMED or Types.TUPLE of the record's fields, "
            f"got {short_repr(type_info)}."
        )
