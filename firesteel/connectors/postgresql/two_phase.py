"""Exactly once through two-phase commit: tasks prepare transactions, the driver commits them.

1. **Begin** (task, at a batch's first record). The transaction's name is made of what is the same when the batch comes
   again: the sink's prefix, the subtask, the batch's time. If a transaction of that name is prepared, an earlier try of
   this task died after preparing it, and it holds the same rows. It is taken over, or this try would wait for its
   locks for ever.
2. **Write** (task). Rows go into the open transaction, portion by portion. Locks of others are waited for, but not for
   ever: rows that another subtask has prepared stay locked until the batch is complete.
   *Crash here:* the server rolls back when the connection ends.
3. **Prepare** (task). ``PREPARE TRANSACTION``: from here on it survives crashes, of the server too. The driver gets its
   name and its number.
4. **Commit** (driver, when the batch is logged). ``COMMIT PREPARED``. One that is not there any more was committed
   before a crash; the server is asked whether its number says so.
5. **Recover** (driver, before tasks begin). What bears the sink's prefix and is not to be committed is rolled back.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from firesteel.connectors.jdbc import session
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.writing import Target, TransactionWriting
from firesteel.connectors.postgresql.driver import LOCKED, NO_SUCH_TRANSACTION, Session, as_connector_error
from firesteel.connectors.postgresql.loading import load_driver
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.durable.names import stored_as
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["PreparedTransaction", "TransactionCommitter", "TransactionWriter", "TwoPhaseSink"]

_NAME_TAKEN = "42710"
_BUSY = "55000"
"""What COMMIT PREPARED and ROLLBACK PREPARED get while another connection, which may be lost, does the same."""

Result = TypeVar("Result")

_PREPARED = (
    "SELECT gid, transaction::text::bigint, txid_snapshot_xmax(txid_current_snapshot()) FROM pg_prepared_xacts "
    "WHERE database = current_database() AND starts_with(gid, $1)"
)


@dataclass(frozen=True)
class PreparedTransaction:
    """What the driver commits."""

    gid: str
    number: int
    """The transaction's number, which no other ever has: names come again, numbers do not."""


@stored_as("prepared_transaction")
def _prepared_transaction(gid: str, number: int) -> PreparedTransaction:
    return PreparedTransaction(gid, number)


def _reduce(transaction: PreparedTransaction) -> tuple[Any, ...]:
    return _prepared_transaction, (transaction.gid, transaction.number)


# The driver logs it until it is committed.
copyreg.pickle(PreparedTransaction, _reduce)


def _prepared(session: Session, prefix: str) -> list[PreparedTransaction]:
    """The transactions that are prepared under names with this prefix."""
    found = session.execute(_PREPARED, prefix)
    return [PreparedTransaction(gid, _whole(short, newest)) for gid, short, newest in found]


def _whole(short: int, newest: int) -> int:
    """A transaction's whole number from its last 32 bits and a number of about the same time.

    >>> hex(_whole(0xFFFFFFF0, 0x2_0000_0010)), hex(_whole(5, 0x1_FFFFFFF0)), hex(_whole(5, 0x2_0000_0010))
    ('0x1fffffff0', '0x200000005', '0x200000005')
    """
    number = (newest & ~0xFFFFFFFF) | short
    if number - newest > 1 << 31:
        return number - (1 << 32)
    return number + (1 << 32) if newest - number > 1 << 31 else number


class TwoPhaseSink(Sink):
    """Writers and their committer."""

    def __init__(self, target: Target, commit_attempts: int) -> None:
        self._target, self._commit_attempts = target, commit_attempts

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return TransactionWriter(self._target, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        return TransactionCommitter(self._target.address, context, self._commit_attempts)


class TransactionWriter(TransactionWriting):
    """Transactions of PostgreSQL, known by their name and their number."""

    def __init__(self, target: Target, context: WriterContext) -> None:
        super().__init__(target, context)
        assert isinstance(self._session, Session)
        self._session: Session

    def _begin(self, name: str) -> None:
        def begin() -> int:
            self._session.execute("BEGIN")
            limit = f"{max(1, round(session.LOCK_SECONDS * 1000))}ms"
            # Without it, a row that another subtask has prepared would be waited for without end.
            found = self._session.execute("SELECT txid_current(), set_config('lock_timeout', $1, true)", limit)
            return int(found[0][0])

        earlier = self._again(lambda: self._find(name), "a look for prepared transactions")
        self._taken_over = earlier is not None
        self._open = earlier or PreparedTransaction(name, self._again(begin, "a new transaction"))

    def _again(self, action: Callable[[], Result], doing: str) -> Result:
        return self._session.again(action, doing, self._target.retries)

    def _find(self, gid: str) -> PreparedTransaction | None:
        return next((one for one in _prepared(self._session, gid) if one.gid == gid), None)

    def send(self) -> None:
        self._check()
        try:
            self._send_to_transaction()
        except load_driver().Error as error:
            # Not tried again: with the connection went what was sent before.
            raise self._refused(error) from None
        self._sent()

    def _is_locked(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == LOCKED

    def _has_conflicting_transaction(self) -> bool:
        return bool(_prepared(self._session, self._sink_prefix))

    def _check(self) -> None:
        """Without an open transaction rows would be committed one by one, and ``PREPARE`` would say yes to nothing."""
        if not self._session.in_transaction:
            raise ConnectorError(
                f"The connection to PostgreSQL at {self._target.address} was lost, and the batch's transaction with it."
            )

    def prepare_commit(self) -> list[Any]:
        transaction, self._open = self._open, None
        if transaction is None:
            return []
        if not self._taken_over:
            transaction = self._prepare(transaction)
        return [transaction]

    def _prepare(self, transaction: PreparedTransaction) -> PreparedTransaction:
        self._check()
        try:
            self._session.execute_with("PREPARE TRANSACTION {}", transaction.gid)
        except load_driver().Error as error:
            if error.sqlstate == _NAME_TAKEN:
                # Another try of this task, thought dead, was faster. It wrote the same.
                earlier = self._again(lambda: self._find(transaction.gid), "a look for it")
                if earlier is not None:
                    return earlier
            # Its name may have been free again by then.
            kind = FailureKind.PASSING if error.sqlstate == _NAME_TAKEN else None
            raise as_connector_error(error, self._target.address, "PREPARE TRANSACTION", kind=kind) from None
        return transaction


class TransactionCommitter(Committer):
    """Commits what the tasks prepared."""

    def __init__(self, address: DatabaseAddress, context: CommitterContext, attempts: int) -> None:
        self._session = Session(address, f"firesteel {context.job_name()}"[:63])
        self._prefix = f"{context.name_prefix()}-"
        self._retries = attempts - 1

    def commit(self, committables: list[Any]) -> None:
        there = set(self._prepared())
        for transaction in committables:
            commit = partial(self._commit, transaction, transaction in there)
            self._again(commit, f"COMMIT PREPARED of {transaction.gid}")

    def _commit(self, transaction: PreparedTransaction, there: bool) -> None:
        # By name alone it might be a later one, of a task that was thought dead: the numbers must agree.
        if there and self._end("COMMIT", transaction):
            return
        status = self._session.execute("SELECT txid_status($1)", transaction.number)[0][0]
        if status not in ("committed", None):  # None: long ago, and then it was committed
            raise ConnectorError(
                f"The prepared transaction {transaction.gid} at {self._session.address} was not committed and is gone "
                f"(it is {status}). Somebody else has rolled it back, and its rows are lost.",
                kind=FailureKind.PERMANENT if status == "aborted" else FailureKind.PASSING,
            )

    def _end(self, how: str, transaction: PreparedTransaction) -> bool:
        """Whether there was such a transaction to end."""
        try:
            self._session.execute_with(f"{how} PREPARED {{}}", transaction.gid)
        except load_driver().Error as error:
            if error.sqlstate == _BUSY:
                doing = f"{how} PREPARED of {transaction.gid}"
                raise as_connector_error(error, self._session.address, doing, kind=FailureKind.PASSING) from None
            if error.sqlstate != NO_SUCH_TRANSACTION:
                raise
            return False
        return True

    def abort(self, committables: list[Any]) -> None:
        there = set(self._prepared())
        for transaction in committables:
            if transaction in there:
                self._roll_back(transaction)

    def recover(self, pending: list[Any]) -> None:
        kept = set(pending)
        for transaction in self._prepared():
            if transaction not in kept:
                self._roll_back(transaction)

    def _roll_back(self, transaction: PreparedTransaction) -> None:
        self._again(lambda: self._end("ROLLBACK", transaction), f"ROLLBACK PREPARED of {transaction.gid}")

    def _prepared(self) -> list[PreparedTransaction]:
        return self._again(lambda: _prepared(self._session, self._prefix), "a look for prepared transactions")

    def _again(self, action: Callable[[], Result], doing: str) -> Result:
        return self._session.again(action, doing, self._retries)

    def close(self) -> None:
        self._session.drop()
