"""Statements as operations that run in the background: begun, looked at, fetched in pages, cancelled.

This is a session of the job manager's page, and of clients of Flink's SQL gateway:

* One thread runs the statements in the order in which they came. A query is begun there; its rows come while the next
  statements run.
* INSERT is handed to whoever runs jobs (:class:`SessionJobs`), with the statements that made the session's tables,
  views and settings. With ``table.dml-sync`` the statement lasts as long as its job. In batch mode it is run here, to
  its end.
* Errors keep their place in the statement. Passwords that stood in any statement are in no text that leaves.
"""

from __future__ import annotations

import enum
import queue
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firesteel.errors import FiresteelError, JobNotFoundError, ProgramError, in_a_line
from firesteel.table.client.gateway_values import PLAIN_TEXT, columns_of, listed_rows, rows_of
from firesteel.table.client.result_pages import ResultPages
from firesteel.table.client.scripts import ScriptStatement, split
from firesteel.table.client.submitted_script import SessionScript
from firesteel.table.sql import statements
from firesteel.table.sql.errors import SqlError, SqlParseError
from firesteel.table.sql.parser import parse
from firesteel.table.sql.statement_secrets import MASK, masked_statement, secrets_of, shown_settings
from firesteel.table.statement_execution import StatementExecutor, listed, ok, table_of
from firesteel.table.table_environment import TableEnvironment
from firesteel.table.table_result import TableResult

__all__ = ["OperationStatus", "SessionJobs", "SqlOperations"]

MOST_OPERATIONS = 200
"""So many are remembered. The oldest that do nothing any more are forgotten."""
MOST_QUERIES = 5
"""So many queries of a session run at the same time."""
SHORTEST_SECRET = 4
"""A shorter one would make stars of half of a text."""


SECONDS_BETWEEN_LOOKS = 0.2
"""At a job that a statement waits for (``table.dml-sync``)."""


class OperationStatus(enum.Enum):
    """With Flink's names."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    """It has run; the rows of a query may still come."""
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class SessionJobs(Protocol):
    """What a session asks of whoever runs jobs."""

    def submit(self, name: str, statements: Sequence[str], secrets: Sequence[str]) -> str:
        """Runs the last statement as a job, after the others. Returns the job's id."""

    def listed(self) -> list[tuple[str, str, str]]:
        """Id, name and status of each job."""

    def cancel(self, job_id: str) -> None:
        """Ends a job."""


@dataclass
class _Operation:
    statement: str = field(repr=False)
    script: object
    """Statements of one script: after one that failed the others do not run."""
    status: OperationStatus = OperationStatus.PENDING
    result: TableResult | None = None
    pages: ResultPages | None = None
    job: str | None = None
    failure: BaseException | None = None
    skipped: bool = False
    """Whether it did not run because one before it failed."""

    @property
    def queries(self) -> bool:
        """Whether rows come."""
        return self.pages is not None and not self.pages.over


class SqlOperations:
    """One session.

    >>> from firesteel.table import EnvironmentSettings
    >>> session = SqlOperations(TableEnvironment.create(EnvironmentSettings.in_streaming_mode()), jobs=None)
    >>> handle = session.execute("SHOW CATALOGS")
    >>> session.wait(handle)
    <OperationStatus.FINISHED: 'FINISHED'>
    >>> session.fetch(handle, 0)["results"]["data"]
    [{'kind': 'INSERT', 'fields': ['default_catalog']}]
    >>> session.close()
    """

    def __init__(self, env: TableEnvironment, jobs: SessionJobs | None) -> None:
        self._env, self._jobs = env._of_session(), jobs
        self._script = SessionScript()
        self._secrets: set[str] = set()
        self._operations: dict[str, _Operation] = {}
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)
        self._closing = False
        self._work: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_all, name="firesteel-sql", daemon=True)
        self._thread.start()

    # Beginning

    def execute(self, statement: str) -> str:
        """Begins one statement; returns its handle."""
        return self._begin([ScriptStatement(statement.strip().removesuffix(";"), 1)])[0]

    def execute_script(self, text: str) -> list[dict[str, Any]]:
        """Begins statements with semicolons between them. Returns handle, place and text of each."""
        found = split(text).all
        handles = self._begin(found)
        return [
            {"operationHandle": handle, "line": one.line, "column": one.column, "statement": masked_statement(one.text)}
            for handle, one in zip(handles, found, strict=True)
        ]

    def _begin(self, found: Sequence[ScriptStatement]) -> list[str]:
        if len(found) > MOST_OPERATIONS // 2:
            raise ProgramError(f"At most {MOST_OPERATIONS // 2} statements are run at a time, got {len(found)}.")
        script, handles = object(), []
        with self._lock:
            for one in found:
                # Before anything can fail: errors show the line.
                self._secrets.update(secret for secret in secrets_of(one.text) if len(secret) >= SHORTEST_SECRET)
                handle = str(uuid.uuid4())
                self._operations[handle] = operation = _Operation(one.text, script)
                self._work.put(operation)
                handles.append(handle)
            self._forget_old()
        return handles

    def _forget_old(self) -> None:
        idle = [
            handle
            for handle, one in self._operations.items()
            if one.status not in (OperationStatus.PENDING, OperationStatus.RUNNING) and not one.queries
        ]
        for handle in idle[: max(0, len(self._operations) - MOST_OPERATIONS)]:
            del self._operations[handle]

    # Running

    def _run_all(self) -> None:
        failed: object = None
        while (operation := self._work.get()) is not None:
            if operation.script is failed:
                operation.skipped = True
                self._move(operation, OperationStatus.CANCELED)
            if not self._move(operation, OperationStatus.RUNNING):
                continue
            try:
                self._run(operation)
            except BaseException as error:
                failed, operation.failure = operation.script, error
                self._move(operation, OperationStatus.ERROR)

    def _move(self, operation: _Operation, status: OperationStatus) -> bool:
        """False where it was cancelled before."""
        with self._moved:
            if operation.status is OperationStatus.CANCELED:
                return False
            operation.status = status
            self._moved.notify_all()
            return True

    def _run(self, operation: _Operation) -> None:
        text = operation.statement
        command = self._command(text)
        statement = None if command is not None else parse(text)
        if command is not None:
            operation.result = command
        elif self._is_a_job(statement):
            operation.job = self._submitted(statement, text)
            if self._env.get_config().get_configuration().get_boolean("table.dml-sync", False):
                self._wait_for_job(operation)
            operation.result = listed("job id", [operation.job])
        else:
            if isinstance(statement, statements.QueryStatement):
                self._check_queries()
            operation.result = self._env.execute_sql(text)
            assert statement is not None
            self._script.note(statement, text)
            if not self._env._streaming:
                operation.result.wait()
        if operation.result.is_query:
            operation.pages = ResultPages()
        if not self._move(operation, OperationStatus.FINISHED):
            operation.result.close()
            if operation.job is not None and self._jobs is not None and not self._closing:
                self._jobs.cancel(operation.job)
        elif operation.pages is not None:
            arguments = (operation.result.batches(),)
            threading.Thread(
                target=operation.pages.put_all, args=arguments, name="firesteel-sql-rows", daemon=True
            ).start()

    def _wait_for_job(self, operation: _Operation) -> None:
        """Until its job has ended, or nobody waits for it any more."""
        assert self._jobs is not None
        while operation.status is not OperationStatus.CANCELED:
            states = {job: state for job, _, state in self._jobs.listed()}
            state = states.get(str(operation.job))
            if state == "FINISHED":
                return
            if state in (None, "FAILED", "CANCELED"):
                why = {None: "is not there any more", "FAILED": "has failed", "CANCELED": "was cancelled"}[state]
                raise ProgramError(f"Job {operation.job} {why}, for which the statement waited (table.dml-sync).")
            with self._moved:
                self._moved.wait_for(lambda: operation.status is OperationStatus.CANCELED, SECONDS_BETWEEN_LOOKS)

    def _check_queries(self) -> None:
        with self._lock:
            running = sum(one.queries for one in self._operations.values())
        if running >= MOST_QUERIES:
            raise ProgramError(f"{running} queries of this session run already: stop one of them.")

    def _is_a_job(self, statement: statements.Statement | None) -> bool:
        if self._jobs is None or not self._env._streaming:
            return False
        if isinstance(statement, statements.CreateTable):
            return statement.query is not None
        return isinstance(statement, statements.Insert | statements.StatementSetStatement)

    def _submitted(self, statement: statements.Statement | None, text: str) -> str:
        if isinstance(statement, statements.CreateTable):
            return self._created(statement, text)
        # Says where something is wrong; the process that plans the job could not.
        self._env.explain_sql(text)
        target = f"-into-{statement.target.parts[-1]}" if isinstance(statement, statements.Insert) else "s"
        return self._as_a_job(f"insert{target}", text)

    def _created(self, statement: statements.CreateTable, text: str) -> str:
        """CREATE TABLE AS: the table is made here, too."""
        declared = StatementExecutor(self._env, text).declare(statement)
        try:
            job = self._as_a_job(f"create-{statement.name.parts[-1]}", text)
        except BaseException:
            self._env.drop_table(".".join(f"`{part}`" for part in statement.name.parts))
            raise
        # Not the statement itself: the next job would write the rows again.
        self._script.note(statement, declared)
        return job

    def _as_a_job(self, name: str, text: str) -> str:
        assert self._jobs is not None
        return self._jobs.submit(name, [*self._script.texts(), text], sorted(self._secrets))

    def _command(self, text: str) -> TableResult | None:
        """What is no SQL but said to the client."""
        words = text.upper().split()
        if self._jobs is None:
            return None
        if words == ["SHOW", "JOBS"]:
            return table_of(["job id", "job name", "status"], self._jobs.listed())
        if words[:2] == ["STOP", "JOB"]:
            given = text.split()[2:]
            if len(given) != 1:
                raise ProgramError("STOP JOB '<id>' takes the id of one job; SHOW JOBS lists them.")
            self._jobs.cancel(given[0].strip("'\""))
            return ok()
        return None

    # Looking

    def _operation(self, handle: str) -> _Operation:
        with self._lock:
            found = self._operations.get(handle)
        if found is None:
            raise JobNotFoundError(f"This session has no operation {handle[:60]!r}.")
        return found

    def status(self, handle: str) -> OperationStatus:
        """How far a statement is. A query whose rows ended with an error has failed."""
        operation = self._operation(handle)
        failed = operation.pages is not None and operation.pages.failure is not None
        return OperationStatus.ERROR if failed else operation.status

    def wait(self, handle: str, seconds: float | None = None) -> OperationStatus:
        """Waits until a statement has run."""
        operation = self._operation(handle)
        waiting = (OperationStatus.PENDING, OperationStatus.RUNNING)
        with self._moved:
            self._moved.wait_for(lambda: operation.status not in waiting, seconds)
        return self.status(handle)

    def fetch(self, handle: str, token: int, row_format: str = PLAIN_TEXT) -> dict[str, Any]:
        """A page of the result: ``NOT_READY`` until there is one, ``PAYLOAD`` with rows or without, at last ``EOS``.
        What the statement failed with is raised."""
        operation = self._operation(handle)
        if operation.failure is not None:
            raise operation.failure
        if operation.status is OperationStatus.CANCELED:
            why = "was not run, because one before it failed" if operation.skipped else "was cancelled"
            raise ProgramError(f"The statement {why}.")
        if operation.status is not OperationStatus.FINISHED:
            return {"resultType": "NOT_READY"}
        assert operation.result is not None
        rows, last = self._rows(operation, token, row_format)
        result = operation.result
        return {
            "resultType": "EOS" if last else "PAYLOAD",
            "isQueryResult": result.is_query,
            **({} if operation.job is None else {"jobID": operation.job}),
            "resultKind": result.get_result_kind().name,
            "results": {
                "columns": columns_of(result.get_table_schema().to_row_data_type()),
                "rowFormat": row_format,
                "data": rows,
            },
        }

    @staticmethod
    def _rows(operation: _Operation, token: int, row_format: str) -> tuple[list[dict[str, Any]], bool]:
        result = operation.result
        assert result is not None
        if operation.pages is None:
            if token > 1:
                raise ProgramError(f"The next page is 1, not {token}.")
            return (listed_rows(result, row_format), False) if token == 0 else ([], True)
        page = operation.pages.fetch(token)
        return [row for batch in page.batches for row in rows_of(result, batch, row_format)], page.last

    def described(self, error: BaseException) -> dict[str, Any]:
        """What went wrong, for somebody to see: a message, and its place in the statement if that is known."""
        ours = isinstance(error, FiresteelError)
        text = self.masked(str(error) if ours else f"{type(error).__name__}: {in_a_line(error)}")
        found: dict[str, Any] = {"text": text, "message": text}
        if isinstance(error, SqlError) and error.span is not None:
            length = max(1, error.span.end - error.span.start)
            found |= {"message": self.masked(error.message), "line": error.line, "column": error.column}
            found |= {"length": length, "incomplete": _ends_too_early(error)}
        return found

    def masked(self, text: str) -> str:
        """A text without the passwords that stood in this session's statements."""
        with self._lock:
            known = sorted(self._secrets, key=len, reverse=True)
        for secret in known:
            text = text.replace(secret, MASK)
        return text

    @property
    def settings(self) -> dict[str, str]:
        """The session's settings, as they may be shown."""
        known = {key: str(value) for key, value in self._env.get_config().get_configuration().to_dict().items()}
        return shown_settings(known)

    # Ending

    def cancel(self, handle: str) -> OperationStatus:
        """Ends a statement: one that waits does not run, a query ends."""
        operation = self._operation(handle)
        with self._moved:
            ended = operation.status in (OperationStatus.ERROR, OperationStatus.CANCELED)
            finished = operation.status is OperationStatus.FINISHED and not operation.queries
            if not ended and not finished:
                operation.status = OperationStatus.CANCELED
                self._moved.notify_all()
        self._end_query(operation)
        return self.status(handle)

    def forget(self, handle: str) -> None:
        """Ends a statement, and forgets its result."""
        self.cancel(handle)
        with self._lock:
            self._operations.pop(handle, None)

    @staticmethod
    def _end_query(operation: _Operation) -> None:
        if operation.pages is None or operation.result is None:
            return
        operation.pages.close()
        # It returns when the job has ended, which takes as long as its batch does.
        threading.Thread(target=operation.result.close, name="firesteel-sql-end", daemon=True).start()

    def close(self) -> None:
        """Ends all of it. Jobs of INSERT statements go on."""
        self._closing = True
        with self._lock:
            handles = list(self._operations)
        for handle in handles:
            self.cancel(handle)
        self._work.put(None)


def _ends_too_early(error: SqlError) -> bool:
    """Whether more has to follow, such as the END of a statement set."""
    if not isinstance(error, SqlParseError) or error.span is None or error.text is None:
        return False
    return not error.text[error.span.start :].strip()
