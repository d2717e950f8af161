"""Every exception Firesteel raises, and the tools that put the user's own line into them.

The hierarchy::

    FiresteelError
    ├── ProgramError              the program as built cannot run
    │   ├── TypeMismatchError     a value does not fit its declared type
    │   ├── UnstableKeyError      a key that cannot be hashed, or hashes differently next time
    │   └── SerializationError    a function that cannot travel to a worker
    ├── ConfigurationError        a setting that cannot be understood
    ├── SetupError                the machine lacks something: no Java, a port in use
    ├── CheckpointError           a checkpoint folder that the job cannot go on from
    │   └── SavepointError        a savepoint that cannot be taken, read or begun from
    ├── ConnectorError            a system outside that cannot be reached, or refuses what it is given
    ├── JobExecutionError         a job started and failed
    └── JobCancelledError         a job was cancelled while somebody waited for it

Exceptions cross process boundaries (worker, driver, REST), so each survives pickling with all its attributes:
extra attributes are keyword arguments with defaults and live in ``__dict__``.
"""

from __future__ import annotations

import functools
import os
import re
import reprlib
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CheckpointError",
    "ConfigurationError",
    "ConnectorError",
    "FiresteelError",
    "JobCancelledError",
    "JobExecutionError",
    "Location",
    "ProgramError",
    "SavepointError",
    "SerializationError",
    "SetupError",
    "TypeMismatchError",
    "UnstableKeyError",
    "caller_location",
    "short_repr",
    "user_frames",
]


class FiresteelError(Exception):
    """The root: ``except FiresteelError`` catches everything Firesteel raises on purpose."""


class ProgramError(FiresteelError):
    """The program as built cannot run: bad arguments, no sinks, a call in the wrong state."""


class TypeMismatchError(ProgramError):
    """A value does not fit the type that was declared for it."""


class UnstableKeyError(ProgramError):
    """A key cannot be hashed, or would land on another subtask after a restart."""


class SerializationError(ProgramError):
    """A user function or value cannot be pickled and so cannot reach a worker."""


class ConfigurationError(FiresteelError):
    """A setting has a value that cannot be understood."""


class SetupError(FiresteelError):
    """The machine lacks something a job needs, such as Java or a free port."""


class CheckpointError(FiresteelError):
    """A checkpoint folder belongs to another job, is damaged, or cannot be written."""


class SavepointError(CheckpointError):
    """A savepoint cannot be taken, read or begun from."""


class ConnectorError(FiresteelError):
    """A system outside, such as a database, cannot be reached or refuses what it is given."""


@dataclass(frozen=True)
class Location:
    """A place in the user's source.

    >>> str(Location("job.py", 12, "main"))
    'job.py:12'
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class JobExecutionError(FiresteelError):
    """A job failed. What is known about the failure stands in attributes.

    >>> error = JobExecutionError("division by zero", operator="Map", built_at=Location("job.py", 7, "main"))
    >>> error.operator, str(error.built_at)
    ('Map', 'job.py:7')
    """

    def __init__(
        self,
        message: str = "The job failed.",
        *,
        operator: str | None = None,
        built_at: Location | None = None,
        element: str | None = None,
        cause_text: str | None = None,
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.built_at = built_at
        self.element = element
        self.cause_text = cause_text


class JobCancelledError(FiresteelError):
    """A job was cancelled while somebody waited for its result."""


# Frames of generated code (see ``common._types.codegen``) carry file names that start so.
_GENERATED = "<firesteel"

# Third parties that stand between the user's code and ours. They count only where an installation would put
# them, so that a user's own ~/pandas/job.py keeps its frames.
_ENGINE_FRAME = re.compile(
    r"(?:site-packages|dist-packages|\.zip|[/\\]python)[/\\](?:pyspark|py4j|pyarrow|pandas|cloudpickle)[/\\]"
)


@functools.cache
def _package_prefixes(package: str) -> tuple[str, ...]:
    """The directories of an imported package, each with a trailing separator."""
    if package == "firesteel":
        return (os.path.dirname(os.path.abspath(__file__)) + os.sep,)
    module = sys.modules.get(package)
    paths: Iterable[str] = getattr(module, "__path__", ())
    return tuple(os.path.abspath(path) + os.sep for path in paths)


def caller_location(skip_package: str = "firesteel") -> Location:
    """The innermost frame outside ``skip_package``: the user's line that led here.

    Called by every builder method, so it looks at code objects only and never at source text.

    >>> caller_location().function
    '<module>'
    """
    prefixes = _package_prefixes(skip_package)
    frame = sys._getframe(1)
    while True:
        name = frame.f_code.co_filename
        outside = not name.startswith(prefixes) and not name.startswith(_GENERATED)
        if outside or frame.f_back is None:
            # With no frame outside (the package run as a program) the outermost one is the best answer.
            return Location(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back


def user_frames(exc: BaseException) -> list[traceback.FrameSummary]:
    """The frames of an exception's traceback that are the user's, outermost first.

    >>> try:
    ...     int("x")
    ... except ValueError as error:
    ...     [frame.name for frame in user_frames(error)]
    ['<module>']
    """
    prefixes = (*_package_prefixes("firesteel"), _GENERATED, "<frozen ")
    return [
        frame
        for frame in traceback.extract_tb(exc.__traceback__)
        if not frame.filename.startswith(prefixes) and not _ENGINE_FRAME.search(frame.filename)
    ]


class _ShortRepr(reprlib.Repr):
    """reprlib that names the failure of a broken ``__repr__`` instead of a memory address."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxstring = self.maxother = self.maxlong = limit
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = self.maxarray = 12

    def repr_instance(self, x: Any, level: int) -> str:
        try:
            text = repr(x)
        except Exception as error:
            return f"<{type(x).__name__}, whose __repr__ raised {type(error).__name__}>"
        return text if len(text) <= self.maxother else text[: self.maxother - 1] + "…"


def short_repr(value: Any, limit: int = 200) -> str:
    """A repr of at most ``limit`` characters that never raises.

    >>> short_repr("abc"), short_repr(list(range(1000)), limit=16)
    ("'abc'", '[0, 1, 2, 3, 4,…')
    """
    try:
        text = _ShortRepr(limit).repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"
