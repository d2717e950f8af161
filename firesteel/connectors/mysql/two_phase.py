"""Exactly once in MariaDB and MySQL through XA: tasks prepare transactions, the driver commits them.

1. **Set up** (driver). A table takes the marks of transactions.
2. **Begin** (task, at a batch's first record). ``XA START`` under a name made of what is the same when the batch comes
   again: the sink's prefix, the subtask, the batch's time. If a transaction of that name is prepared, an earlier try of
   this task died after preparing it, and it holds the same rows. It is taken over, or this try would wait for its
   locks.
3. **Mark** (task). Its first row goes to the table of marks, with its name for a key: of two transactions with one name
   at most one can ever be committed.
4. **Write** (task). Locks of others are waited for, but not for ever: rows that another subtask has prepared stay
   locked until the batch is complete. *Crash here:* the server rolls back when the connection ends.
5. **Prepare** (task). ``XA PREPARE``: from here on it survives crashes, of the server too. Then the connection ends:
   MariaDB lets nobody else commit what belongs to a session.
6. **Commit** (driver, when the batch is logged). ``XA COMMIT``. Of one that is not there any more the mark says whether
   it was committed. Marks of batches before are deleted: nobody will ask for them again.
7. **Recover** (driver, before tasks begin). What bears the sink's prefix and is not to be committed is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.writing import Target, TransactionWriting
from firesteel.connectors.mysql.driver import DUPLICATE_KEY, LOCKED, NO_SUCH_TRANSACTION, Session, code_of
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["MARKS", "XaCommitter", "XaSink", "XaWriter"]

MARKS = "firesteel_transactions"
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {MARKS} (name VARCHAR(80) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY) "
    "ENGINE = InnoDB"
)
_NAME_TAKEN = 1440
"""XAER_DUPID."""

_PORTION = "firesteel_portion"

DETACHING_SECONDS = 10.0
"""How long the end of a session that has prepared something may take."""

Result = TypeVar("Result")


class XaSink(Sink):
    """Writers and their committer. A committable is the name of a transaction."""

    def __init__(self, target: Target, commit_attempts: int) -> None:
        self._target, self._commit_attempts = target, commit_attempts

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return XaWriter(self._target, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        return XaCommitter(self._target.address, context, self._commit_attempts)


def _prepared(session: Session, prefix: str) -> set[str]:
    """The names of the transactions that are prepared and begin with this."""
    names = [row[3] for row in session.execute("XA RECOVER")]
    # Others may use any bytes for a name.
    found = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]
    return {name for name in found if name.startswith(prefix)}


class XaWriter(TransactionWriting):
    """Transactions of XA, named as they are."""

    _session: Session

    def _begin(self, name: str) -> None:
        def begin() -> bool:
            if name in _prepared(self._session, name):
                return True
            try:
                self._session.execute(f"XA START '{name}'")
                self._session.execute(f"INSERT INTO {MARKS} VALUES (%s)", name)
            except self._session.errors as error:
                self._session.drop()
                if code_of(error) in (_NAME_TAKEN, DUPLICATE_KEY):
                    # Another try of this task, thought dead, was faster.
                    raise self._session.as_connector_error(
                        error, f"XA START of {name}", kind=FailureKind.PASSING
                    ) from None
                raise
            return False

        self._taken_over = self._session.again(begin, "a new transaction of XA", self._target.retries)
        self._open = name

    def send(self) -> None:
        self._check()
        try:
            self._send_to_transaction()
        except ConnectorError:
            self._session.drop()
            raise
        except self._session.errors as error:
            # Not tried again: with the connection went what was sent before.
            self._session.drop()
            raise self._refused(error) from None
        self._sent()

    def _together(self) -> None:
        self._session.execute(f"SAVEPOINT {_PORTION}")
        try:
            self._session.executemany(self._target.statement, self._rows)
        except self._session.errors as error:
            if self._is_locked(error):
                # Of the rows, those before the one that is locked are changed already.
                self._session.execute(f"ROLLBACK TO SAVEPOINT {_PORTION}")
            raise

    def _is_locked(self, error: Exception) -> bool:
        return code_of(error) == LOCKED

    def _has_conflicting_transaction(self) -> bool:
        return bool(_prepared(self._session, self._sink_prefix))

    def _check(self) -> None:
        """A connection that is made anew has no transaction: its rows would be committed one by one."""
        if not self._session.is_open:
            raise ConnectorError(
                f"The connection to {self._session.server} at {self._target.address} was lost, and the batch's "
                "transaction with it."
            )

    def prepare_commit(self) -> list[Any]:
        name, self._open = self._open, None
        if name is None:
            return []
        if not self._taken_over:
            self._check()
            try:
                self._session.execute(f"XA END '{name}'")
                self._session.execute(f"XA PREPARE '{name}'")
            except self._session.errors as error:
                raise self._session.as_connector_error(error, f"XA PREPARE of {name}") from None
        self._session.drop()
        return [name]


class XaCommitter(Committer):
    """Commits what the tasks prepared."""

    def __init__(self, address: DatabaseAddress, context: CommitterContext, attempts: int) -> None:
        self._session = Session(address, f"firesteel {context.job_name()}"[:63])
        self._prefix = f"{context.name_prefix()}-"
        self._retries = attempts - 1
        self._again(lambda: self._session.execute(_CREATE), f"CREATE TABLE {MARKS}")

    def commit(self, committables: list[Any]) -> None:
        self.recover_and_commit(committables)
        self._again(partial(self._forget, committables), "the deletion of old marks")

    def recover_and_commit(self, committables: list[Any]) -> None:
        # Other batches may be asked for again, too: their marks stay until the next recovery, or the next batch.
        for name in committables:
            self._again(partial(self._commit, name), f"XA COMMIT of {name}")

    def _forget(self, kept: list[Any]) -> None:
        found = self._session.execute(f"SELECT name FROM {MARKS} WHERE name LIKE '{self._prefix}%'")
        old = [row for row in found if row[0] not in kept]
        if old:
            self._session.executemany(f"DELETE FROM {MARKS} WHERE name = %s", old)

    def _commit(self, name: str) -> None:
        if self._marked(name) or self._end("COMMIT", name) or self._marked(name):
            return
        raise ConnectorError(
            f"The prepared transaction {name} at {self._session.address} was not committed and is gone. Somebody else "
            "has rolled it back, and its rows are lost.",
            kind=FailureKind.PERMANENT,
        )

    def _marked(self, name: str) -> bool:
        """Whether a transaction of this name was committed."""
        return bool(self._session.execute(f"SELECT 1 FROM {MARKS} WHERE name = %s", name))

    def _end(self, how: str, name: str) -> bool:
        """Whether there was such a transaction to end."""
        until = time.monotonic() + DETACHING_SECONDS
        while True:
            try:
                self._session.execute(f"XA {how} '{name}'")
                return True
            except self._session.errors as error:
                if code_of(error) != NO_SUCH_TRANSACTION:
                    raise
                if name not in _prepared(self._session, name):
                    return False
                # It still belongs to the session that prepared it, whose end the server has not noticed yet.
                if time.monotonic() > until:
                    doing = f"XA {how} of {name}, which belongs to a session that does not end"
                    raise self._session.as_connector_error(error, doing, kind=FailureKind.PASSING) from None
            time.sleep(0.002)

    def abort(self, committables: list[Any]) -> None:
        for name in committables:
            self._roll_back(name)

    def recover(self, pending: list[Any]) -> None:
        for name in self._again(lambda: _prepared(self._session, self._prefix), "XA RECOVER") - set(pending):
            self._roll_back(name)
        self._again(partial(self._forget, pending), "the deletion of old marks")

    def _roll_back(self, name: str) -> None:
        self._again(lambda: self._end("ROLLBACK", name), f"XA ROLLBACK of {name}")

    def _again(self, action: Callable[[], Result], doing: str) -> Result:
        return self._session.again(action, doing, self._retries)

    def close(self) -> None:
        self._session.drop()
