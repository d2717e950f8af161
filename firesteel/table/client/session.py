"""Runs statements one after the other, and shows what they give."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from typing import TextIO

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.errors import FailureKind, FiresteelError, ProgramError
from firesteel.table.client.scripts import split
from firesteel.table.client.views import ChangeView, ResultView, TableView
from firesteel.table.result_kind import ResultKind
from firesteel.table.sql.errors import near_names
from firesteel.table.sql.statement_secrets import masked_statement
from firesteel.table.table_environment import TableEnvironment
from firesteel.table.table_result import TableResult

__all__ = ["HELP", "MAX_ROWS", "RESULT_MODE", "ResultMode", "SqlSession"]

RESULT_MODE = "sql-client.execution.result-mode"
MAX_ROWS = "sql-client.execution.max-table-result.rows"
_DEFAULT_ROWS = 1_000_000
_SYNC = "table.dml-sync"

HELP = """\
SELECT, VALUES, WITH … ;     runs a query; Ctrl-C (or q, where it fills the screen) ends it
INSERT INTO … ;              starts a job that goes on beside you
EXECUTE STATEMENT SET …      several INSERTs as one job
CREATE, DROP, ALTER, USE     tables, views, functions, databases, catalogs
SHOW, DESCRIBE, EXPLAIN      what there is, and how it would run
SHOW JOBS;                   the jobs of this session
STOP JOB '<id>';             ends one of them
SET 'key' = 'value';         a setting; SET; shows all, RESET 'key'; forgets one
  'sql-client.execution.result-mode' = 'table' | 'changelog' | 'tableau'
HELP;  CLEAR;  QUIT;         this text; an empty screen; the end
"""


class ResultMode(enum.Enum):
    """How results of queries are shown."""

    TABLE = "table"
    """The rows as they are now, over the whole screen."""
    CHANGELOG = "changelog"
    """The changes, over the whole screen."""
    TABLEAU = "tableau"
    """The changes, line by line."""


Screen = Callable[[TableResult, ResultView], None]


class SqlSession:
    """Statements share settings, names and jobs.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> session = SqlSession(TableEnvironment.create(EnvironmentSettings.in_streaming_mode()))
    >>> session.run("CREATE VIEW one AS SELECT 1 AS n; SHOW VIEWS;")
    OK
    +-----------+
    | view name |
    +-----------+
    |       one |
    +-----------+
    1 row in set
    True
    """

    def __init__(self, env: TableEnvironment, out: TextIO | None = None, screen: Screen | None = None) -> None:
        self.env = env._of_session()
        self._out = out
        self._screen = screen
        self.jobs: list[tuple[str, JobClient]] = []
        """What INSERT statements have started, by the beginning of their text."""

    @property
    def out(self) -> TextIO:
        return self._out or sys.stdout

    def run(self, text: str) -> bool:
        """Runs statements with semicolons between them; the last one may be without. False after QUIT.

        The first error ends it.
        """
        return all(self.run_one(statement.text) for statement in split(text).all)

    def run_file(self, text: str, name: str) -> bool:
        """Runs a file's statements. An error says in which line the statement begins."""
        script = split(text if text.rstrip().endswith(";") else f"{text}\n;")
        if script.rest:
            # Most often a string or a comment without an end: the parser says so.
            self.run_one(script.rest)
        for statement in script.statements:
            try:
                if not self.run_one(statement.text):
                    return False
            except FiresteelError as error:
                raise ScriptError(f"{name}, statement in line {statement.line}: {error}") from error
        return True

    def run_one(self, statement: str) -> bool:
        """Runs one statement. False after QUIT."""
        words = statement.upper().split()
        if words in (["QUIT"], ["EXIT"]):
            return False
        if words == ["HELP"]:
            self.out.write(HELP)
        elif words == ["CLEAR"]:
            self.out.write("\x1b[2J\x1b[H")
        elif words == ["SHOW", "JOBS"]:
            self._show_jobs()
        elif words[:2] == ["STOP", "JOB"]:
            self._stop_job(statement)
        else:
            self._show(statement, self.env.execute_sql(statement))
        self.out.flush()
        return True

    def _show(self, statement: str, result: TableResult) -> None:
        client = None if result.is_query else result.get_job_client()
        if client is not None:
            self._started(statement, client)
        elif result.is_query:
            self._show_rows(result)
        elif result.get_result_kind() is ResultKind.SUCCESS:
            self.out.write("OK\n")
        else:
            result.print(self.out)

    def _started(self, statement: str, client: JobClient) -> None:
        self.jobs.append((" ".join(masked_statement(statement).split())[:60], client))
        self.out.write(f"Job ID: {client.get_job_id()}\n")
        self.out.flush()
        if self._settings.get_boolean(_SYNC, False):
            self._wait_for(client)

    def _wait_for(self, client: JobClient) -> None:
        try:
            client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel().result()
            raise

    def wait(self) -> None:
        """Waits for the jobs of INSERT statements."""
        for _, client in self.jobs:
            self._wait_for(client)

    def _show_rows(self, result: TableResult) -> None:
        mode = self.result_mode
        try:
            if mode is ResultMode.TABLEAU or self._screen is None:
                result.print(self.out)
            else:
                names, limit = result.get_resolved_schema().get_column_names(), self._max_rows
                view = TableView(names, limit) if mode is ResultMode.TABLE else ChangeView(names, limit)
                self._screen(result, view)
        finally:
            result.close()

    @property
    def _settings(self) -> Configuration:
        return self.env.get_config().get_configuration()

    @property
    def result_mode(self) -> ResultMode:
        """What the setting says; where there is no screen, line by line."""
        given = self._settings.get_string(RESULT_MODE, "table" if self._screen is not None else "tableau")
        try:
            return ResultMode(given.lower())
        except ValueError:
            known = [mode.value for mode in ResultMode]
            raise ProgramError(
                f"{RESULT_MODE} should be {', '.join(known[:-1])} or {known[-1]}, got {given!r}."
                f"{near_names(given, known)}"
            ) from None

    @property
    def _max_rows(self) -> int:
        return max(1, self._settings.get_integer(MAX_ROWS, _DEFAULT_ROWS))

    def _show_jobs(self) -> None:
        for text, client in self.jobs:
            self.out.write(f"{client.get_job_id()}  {client.get_job_status().result().name:<10} {text}\n")
        if not self.jobs:
            self.out.write("There are no jobs.\n")

    def _stop_job(self, statement: str) -> None:
        rest = statement.split(None, 2)
        wanted = rest[2].split()[0].strip("'\"") if len(rest) > 2 else ""
        known = {str(client.get_job_id()): client for _, client in self.jobs}
        if wanted not in known:
            raise ProgramError(f"There is no job {wanted!r}.{near_names(wanted, known)} SHOW JOBS; lists them.")
        known[wanted].cancel().result()
        self.out.write("OK\n")


class ScriptError(ProgramError):
    """A statement of a file failed."""

    kind = FailureKind.PERMANENT
