"""INSERT statements as programs: the job manager runs each as a job of its own, with the tables, views and settings of
its session."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.common.configuration import Configuration
from firesteel.errors import ProgramError
from firesteel.table.sql import statements
from firesteel.table.table_environment import TableEnvironment

__all__ = ["SessionScript", "program_of", "run_statements"]

LONGEST = 1 << 20
"""Characters of all statements of a session that a job needs."""
_KEPT = (
    statements.CreateTable,
    statements.CreateView,
    statements.CreateDatabase,
    statements.CreateCatalog,
    statements.CreateFunction,
    statements.Drop,
    statements.AlterTable,
    statements.AlterView,
    statements.AlterDatabase,
    statements.AlterFunction,
    statements.Use,
    statements.Reset,
)


class SessionScript:
    """The statements that made a session what it is.

    >>> from firesteel.table.sql.parser import parse
    >>> script = SessionScript()
    >>> for text in ("SET 'a' = '1'", "SELECT 1", "CREATE VIEW one AS SELECT 1", "SET 'a' = '2'"):
    ...     script.note(parse(text), text)
    >>> script.texts()
    ['CREATE VIEW one AS SELECT 1', "SET 'a' = '2'"]
    """

    def __init__(self) -> None:
        self._noted: list[tuple[str | None, str]] = []

    def note(self, statement: statements.Statement, text: str) -> None:
        """Takes a statement that has run, if later ones depend on it."""
        if isinstance(statement, statements.SetOption) and statement.key is not None:
            # What it was before does not matter any more.
            self._noted = [one for one in self._noted if one[0] != statement.key]
            self._noted.append((statement.key, text))
        elif isinstance(statement, _KEPT):
            self._noted.append((None, text))

    def texts(self) -> list[str]:
        return [text for _, text in self._noted]


def program_of(texts: Sequence[str]) -> str:
    """A Python program that runs statements; the last one is the job.

    >>> print(program_of(["SET 'parallelism.default' = '1'", "INSERT INTO t VALUES (1)"]))
    # SQL, as it was typed.
    from firesteel.table.client.submitted_script import run_statements
    <BLANKLINE>
    run_statements(
        [
            "SET 'parallelism.default' = '1'",
            'INSERT INTO t VALUES (1)',
        ]
    )
    <BLANKLINE>
    """
    if sum(map(len, texts)) > LONGEST:
        raise ProgramError(
            f"The statements of this session have more than {LONGEST:,} characters together, and a job needs all of "
            "those that made tables, views and settings. Begin a new session."
        )
    lines = "".join(f"        {text!r},\n" for text in texts)
    head = "# SQL, as it was typed.\nfrom firesteel.table.client.submitted_script import run_statements\n"
    return f"{head}\nrun_statements(\n    [\n{lines}    ]\n)\n"


def run_statements(texts: Sequence[str]) -> None:
    """Runs statements one after the other in an environment of their own, and waits for the job of the last one."""
    env = TableEnvironment.create(Configuration())._of_session()
    for text in texts[:-1]:
        env.execute_sql(text)
    env.execute_sql(texts[-1]).wait()
