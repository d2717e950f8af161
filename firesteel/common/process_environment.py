"""Environment variables by which one process of Firesteel instructs another.

Each is meant for one process, and not for those that it starts in turn: a program that a job starts must not take over
the job's id, and the log level of a job's workers is not that of another program. So:

* Whoever starts a process makes its environment with :func:`environment_of_child`.
* The started process takes what is meant for it with :func:`take`, and nobody finds it afterwards.
* What a process finds by itself in the environment of the one that starts it, as Spark's JVM does, is there only
  while it starts (:func:`exported`).
* The settings of ``firesteel run`` and of the job manager are kept outside of the environment
  (:func:`submission_settings`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

__all__ = [
    "DRIVER",
    "JOB_MANAGER",
    "JVM_FLAGS",
    "LOG_LEVEL",
    "MAKE_ARCHIVE",
    "SEPARATOR",
    "SETTINGS",
    "SQL_SESSION",
    "WARM_DRIVER",
    "environment_of_child",
    "exported",
    "submission_settings",
    "submitted_with",
    "take",
]

DRIVER = "FIRESTEEL_DRIVER"
"""What a driver or a planner of the job manager has to do."""
JOB_MANAGER = "FIRESTEEL_JOB_MANAGER"
"""The settings of a job manager that is started in the background."""
JVM_FLAGS = "FIRESTEEL_JVM_FLAGS"
"""Options of Spark's JVM."""
LOG_LEVEL = "FIRESTEEL_LOG_LEVEL"
"""The driver's log level, for its workers."""
MAKE_ARCHIVE = "FIRESTEEL_MAKE_ARCHIVE"
"""The file that the trial job of ``firesteel warmup`` writes."""
SETTINGS = "FIRESTEEL_SETTINGS"
"""Settings of a submission: they win over config.yaml."""
SEPARATOR = "\x1f"
"""Stands between two settings."""
SQL_SESSION = "FIRESTEEL_SQL_SESSION"
"""The descriptor by which a process with an SQL session is talked to."""
WARM_DRIVER = "FIRESTEEL_WARM_DRIVER"
"""The descriptor by which a driver that was started ahead learns what to do."""

_FOR_ONE_PROCESS = (DRIVER, JOB_MANAGER, JVM_FLAGS, LOG_LEVEL, MAKE_ARCHIVE, SETTINGS, SQL_SESSION, WARM_DRIVER)

_submitted: tuple[int, list[str]] = (0, [])
"""The settings that a program was submitted with, and the process that runs it: forks of it are others."""


def environment_of_child(**variables: str) -> dict[str, str]:
    """This process's environment without what was meant for it alone, and with some variables besides.

    >>> os.environ[LOG_LEVEL] = "10"
    >>> LOG_LEVEL in environment_of_child(), environment_of_child(FIRESTEEL_DRIVER="{}")[DRIVER]
    (False, '{}')
    >>> take(LOG_LEVEL), take(LOG_LEVEL)
    ('10', '')
    """
    return {key: value for key, value in os.environ.items() if key not in _FOR_ONE_PROCESS} | variables


def take(name: str) -> str:
    """The value of a variable that is meant for this process, which is removed; empty if it is not set."""
    return os.environ.pop(name, "")


@contextlib.contextmanager
def exported(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Sets variables, or removes those with None, for as long as it lasts."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def submission_settings() -> list[str]:
    """``key=value``, the later ones win: from the environment, and of the submission."""
    process, submitted = _submitted
    inherited = os.environ.get(SETTINGS, "").split(SEPARATOR)
    return [setting for setting in [*inherited, *(submitted if process == os.getpid() else ())] if setting]


@contextlib.contextmanager
def submitted_with(settings: str) -> Iterator[None]:
    """For as long as it lasts, a program in this process has these settings besides those in the environment, and the
    processes that it starts have neither.

    >>> with exported({SETTINGS: "a=1"}), submitted_with("b=2"):
    ...     submission_settings(), SETTINGS in os.environ
    (['a=1', 'b=2'], False)
    """
    global _submitted
    before = _submitted
    _submitted = os.getpid(), [*submission_settings(), *settings.split(SEPARATOR)]
    try:
        with exported({SETTINGS: None}):
            yield
    finally:
        _submitted = before
