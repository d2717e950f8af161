"""The prompt: several lines, history, completion."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from firesteel import __version__
from firesteel.errors import FiresteelError
from firesteel.table.client.screen import show_on_screen
from firesteel.table.client.scripts import split
from firesteel.table.client.session import MAX_ROWS, RESULT_MODE, SqlSession
from firesteel.table.functions.registry import names as function_names
from firesteel.table.table_environment import TableEnvironment

__all__ = ["SqlCompleter", "SqlShell", "is_complete"]

_WORDS = (  # noqa: SIM905 - a word on each line would be a page
    "ALL ALTER AND AS ASC BETWEEN BY CASE CAST CATALOG CATALOGS CREATE CROSS CUMULATE DATABASE DATABASES "
    "DESC DESCRIBE DESCRIPTOR DISTINCT DROP ELSE END ENFORCED EXECUTE EXISTS EXPLAIN FALSE FOR FROM FULL "
    "FUNCTION FUNCTIONS GROUP HAVING HELP HOP IF IN INNER INSERT INTERVAL INTO IS JOBS JOIN KEY LEFT LIKE "
    "LIMIT NOT NULL ON OR ORDER OUTER OVER PARTITION PRIMARY QUIT RESET RIGHT SELECT SESSION SET SHOW "
    "STATEMENT TABLE TABLES TEMPORARY THEN TRUE TUMBLE UNION USE VALUES VIEW VIEWS WATERMARK WHEN WHERE "
    "WITH"
).split()
_KEYS = (RESULT_MODE, MAX_ROWS, "parallelism.default", "pipeline.name", "table.dml-sync", "table.local-time-zone")
_WORD = re.compile(r"[\w$.\-]+\Z")
_PROGRESS = "firesteel.progress"
_BARE = ("QUIT", "EXIT", "HELP", "CLEAR")


def is_complete(text: str) -> bool:
    """Whether Enter runs it: a semicolon ends it, or it is a command of the client.

    >>> is_complete("SELECT 1"), is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete("quit")
    (False, True, False, True)
    """
    if not text.strip() or text.strip().upper() in _BARE:
        return True
    script = split(text)
    return bool(script.statements) and not script.rest


class SqlCompleter(Completer):
    """Words of SQL, names of tables and their columns, functions, keys of settings."""

    def __init__(self, env: TableEnvironment) -> None:
        self._env = env
        self._functions = [name for name in function_names() if name[0].isalpha()]

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = _WORD.search(document.text_before_cursor)
        if found is None:
            return
        word = found[0].rpartition(".")[2] if "'" not in document.current_line_before_cursor else found[0]
        for candidate in self._candidates(document):
            if candidate.upper().startswith(word.upper()) and candidate != word:
                yield Completion(candidate, -len(word))

    def _candidates(self, document: Document) -> list[str]:
        before = document.text_before_cursor
        if before.count("'") % 2:
            return list(_KEYS) if before.lstrip().upper().startswith(("SET", "RESET")) else []
        tables = self._env.list_tables()
        columns = [
            name for table in tables if table in before or table in document.text for name in self._columns(table)
        ]
        return [*dict.fromkeys([*columns, *tables, *_WORDS, *self._functions])]

    def _columns(self, table: str) -> list[str]:
        try:
            return self._env.from_path(f"`{table}`").get_schema().get_field_names()
        except FiresteelError:
            return []


class SqlShell:
    """Reads statements at a prompt and runs them until QUIT or Ctrl-D."""

    def __init__(self, env: TableEnvironment, history: History | None = None, **terminal: Any) -> None:
        # A job's own line would be drawn over what is typed.
        settings = env.get_config().get_configuration()
        settings.set_string(_PROGRESS, settings.get_string(_PROGRESS, "false"))
        self.session = SqlSession(env, screen=show_on_screen)
        self._prompt: PromptSession[str] = PromptSession(
            history=_history() if history is None else history,
            completer=SqlCompleter(env),
            complete_while_typing=False,
            multiline=Condition(lambda: not is_complete(self._prompt.default_buffer.text)),
            prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
            bottom_toolbar=self._toolbar,
            **terminal,
        )

    def _toolbar(self) -> str:
        env = self.session.env
        running = sum(not client.get_job_status().result().is_terminal_state() for _, client in self.session.jobs)
        jobs = f", {running} job{'' if running == 1 else 's'} running" if running else ""
        return f" {env.get_current_catalog()}.{env.get_current_database()}{jobs}   ; runs, Tab completes, HELP; helps"

    def run(self) -> int:
        """Until the user has had enough. Jobs that still run are ended."""
        print(f"Firesteel {__version__} SQL. A semicolon ends a statement; HELP; lists what there is, QUIT; ends.")
        while True:
            try:
                text = self._prompt.prompt("SQL> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            try:
                if not self.session.run(text):
                    break
            except FiresteelError as error:
                print(error, file=sys.stderr)
            except KeyboardInterrupt:
                print("The query was ended.")
        self._end_jobs()
        return 0

    def _end_jobs(self) -> None:
        for text, client in self.session.jobs:
            if not client.get_job_status().result().is_terminal_state():
                print(f"Ending job {client.get_job_id()}: {text}")
                client.cancel().result()


def _history() -> History:
    path = platformdirs.user_state_path("firesteel", appauthor=False) / "sql-history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Statements may hold passwords: nobody else reads them.
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
        with path.open("ab"):
            return FileHistory(str(path))
    except OSError as error:
        print(f"What you type is not kept: {error}", file=sys.stderr)
        return InMemoryHistory()
