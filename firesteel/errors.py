"""Every exception Firesteel raises, and the tools that put the user's own line into them.

The hierarchy::

    FiresteelError
    ├── ProgramError              the program as built cannot run
    │   ├── TypeMismatchError     a value does not fit its declared type
    │   ├── UnstableKeyError      a key that cannot be hashed, or hashes differently next time
    │   └── SerializationError    a function or a record that cannot travel to another process
    ├── ConfigurationError        a setting that cannot be understood
    ├── SetupError                the machine lacks something: no Java, a port in use
    ├── CheckpointError           a checkpoint folder that the job cannot go on from
    │   └── SavepointError        a savepoint that cannot be taken, read or begun from
    ├── InputError                what a source reads was changed under the job, or is not what it should be
    ├── ConnectorError            a system outside that cannot be reached, or refuses what it is given
    │   └── BackPressureError     it asks to be left alone for a while
    ├── JobExecutionError         a job started and failed
    ├── JobCommandError           a job was asked for what it does not know, or cannot do
    │   └── JobNotFoundError      there is no such job
    ├── JobManagerError           the job manager cannot be reached, or refuses what it is asked for
    └── JobCancelledError         a job was cancelled while somebody waited for it
        └── JobSuspendedError     a job was stopped so that a later start goes on from its checkpoint

Each class states its kind: whether the same would happen again (permanent), so that a restart is of no use, or may
pass. An instance may be of another kind than its class: a checkpoint folder that cannot be written because the disk is
full is a CheckpointError that may pass.

Exceptions cross process boundaries (worker, driver, REST), so each survives pickling with all its attributes:
extra attributes are keyword arguments with defaults and live in ``__dict__``.
"""

from __future__ import annotations

import enum
import errno
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
    "FULL_TRACE",
    "BackPressureError",
    "CheckpointError",
    "ConfigurationError",
    "ConnectorError",
    "FailureKind",
    "FiresteelError",
    "InputError",
    "JobCancelledError",
    "JobCommandError",
    "JobExecutionError",
    "JobManagerError",
    "JobNotFoundError",
    "JobSuspendedError",
    "Location",
    "ProgramError",
    "SavepointError",
    "SerializationError",
    "SetupError",
    "TypeMismatchError",
    "UnstableKeyError",
    "caller_location",
    "in_a_line",
    "kind_of",
    "kind_of_file_error",
    "short_repr",
    "user_frames",
]


FULL_TRACE = "FIRESTEEL_FULL_TRACE"
"""The environment variable that asks for whole traces."""


class FailureKind(enum.Enum):
    """What a restart can do about a failure."""

    PERMANENT = "permanent"
    """The same would happen again: the job ends at once, whatever its restart strategy."""
    PASSING = "passing"
    """Another attempt may end otherwise: the restart strategy decides."""


class FiresteelError(Exception):
    """The root: ``except FiresteelError`` catches everything Firesteel raises on purpose.

    >>> CheckpointError("damaged").kind.value, CheckpointError("disk full", kind=FailureKind.PASSING).kind.value
    ('permanent', 'passing')
    """

    kind: FailureKind = FailureKind.PASSING
    """Whether a restart could help. Every class states its own."""

    def __init__(self, *args: object, kind: FailureKind | None = None) -> None:
        super().__init__(*args)
        if kind is not None:
            self.kind = kind

    def _render_traceback_(self) -> list[str]:
        """What notebooks (IPython) show instead of a traceback: the user's own frame and the text."""
        if self.__cause__ is not None or os.environ.get(FULL_TRACE):
            return "".join(traceback.format_exception(self)).splitlines()
        shown = traceback.format_list(user_frames(self)[-1:]) + traceback.format_exception_only(self)
        return "".join(shown).splitlines()


class ProgramError(FiresteelError):
    """The program as built cannot run: bad arguments, no sinks, a call in the wrong state."""

    kind = FailureKind.PERMANENT


class TypeMismatchError(ProgramError):
    """A value does not fit the type that was declared for it."""

    kind = FailureKind.PERMANENT


class UnstableKeyError(ProgramError):
    """A key cannot be hashed, or would land on another subtask after a restart."""

    kind = FailureKind.PERMANENT


class SerializationError(ProgramError):
    """A user function or value cannot be pickled and so cannot reach a worker."""

    kind = FailureKind.PERMANENT


class ConfigurationError(FiresteelError):
    """A setting has a value that cannot be understood."""

    kind = FailureKind.PERMANENT


class SetupError(FiresteelError):
    """The machine lacks something a job needs, such as Java or a free port."""

    kind = FailureKind.PERMANENT


class CheckpointError(FiresteelError):
    """A checkpoint folder belongs to another job, is damaged, or cannot be written."""

    kind = FailureKind.PERMANENT


class SavepointError(CheckpointError):
    """A savepoint cannot be taken, read or begun from."""

    kind = FailureKind.PERMANENT


class InputError(FiresteelError):
    """What a source reads was changed under the job, is gone, or is not what it should be, as text that cannot be
    decoded. It would be the same in another attempt."""

    kind = FailureKind.PERMANENT


class ConnectorError(FiresteelError):
    """A system outside, such as a database, cannot be reached or refuses what it is given."""

    kind = FailureKind.PASSING


class BackPressureError(ConnectorError):
    """A system outside takes or gives nothing for a while: too many requests, a queue that is full.

    A :class:`~firesteel.datastream.connectors.BatchSink` and a
    :class:`~firesteel.datastream.connectors.PollingSource` may raise it, and are called again after that time.

    >>> BackPressureError("429 Too Many Requests", retry_after=30).retry_after
    30
    """

    kind = FailureKind.PASSING

    def __init__(self, *args: object, retry_after: float = 1.0, kind: FailureKind | None = None) -> None:
        super().__init__(*args, kind=kind)
        self.retry_after = retry_after
        """Seconds."""


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

    kind = FailureKind.PASSING

    def __init__(
        self,
        message: str = "The job failed.",
        *,
        operator: str | None = None,
        built_at: Location | None = None,
        element: str | None = None,
        subtask: int | None = None,
        raised_at: str | None = None,
        cause_text: str | None = None,
        cause_class: str | None = None,
        kind: FailureKind | None = None,
    ) -> None:
        super().__init__(message, kind=kind)
        self.operator = operator
        self.built_at = built_at
        self.element = element
        self.subtask = subtask
        self.raised_at = raised_at
        """The user's line that failed: file, line number, function and the line itself."""
        self.cause_text = cause_text
        """The whole trace of what was raised, wherever that was."""
        self.cause_class = cause_class
        """The class of what was raised, such as ``builtins.ValueError`` or ``firesteel.errors.TypeMismatchError``."""


class JobCommandError(FiresteelError):
    """A job does not know the command that it was given, or has ended and can do no more."""

    kind = FailureKind.PERMANENT


class JobNotFoundError(JobCommandError):
    """There is no such job, or its name could mean several."""

    kind = FailureKind.PERMANENT


class JobManagerError(FiresteelError):
    """The job manager cannot be reached, or refuses what it is asked for."""

    kind = FailureKind.PASSING


class JobCancelledError(FiresteelError):
    """A job was cancelled while somebody waited for its result."""

    kind = FailureKind.PERMANENT


def kind_of(error: BaseException) -> FailureKind:
    """Whether a restart could help against an exception. What a user's function raises may pass, as in Flink.

    >>> kind_of(ValueError("bad record")).value, kind_of(ProgramError("no sinks")).value
    ('passing', 'permanent')
    """
    if isinstance(error, FiresteelError):
        return error.kind
    # An interrupt or an exit is no failure that a restart is meant for.
    return FailureKind.PASSING if isinstance(error, Exception) else FailureKind.PERMANENT


_WRONG_PLACE = frozenset(
    (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EROFS, errno.ELOOP)
)


def kind_of_file_error(error: OSError) -> FailureKind:
    """Whether it may pass that a file of ours cannot be read or written: a full disk does, a missing right does not.

    >>> kind_of_file_error(OSError(errno.ENOSPC, "disk full")).value
    'passing'
    >>> kind_of_file_error(PermissionError(errno.EACCES, "not yours")).value
    'permanent'
    """
    return FailureKind.PERMANENT if error.errno in _WRONG_PLACE else FailureKind.PASSING


class JobSuspendedError(JobCancelledError):
    """A job was stopped by a signal, or with its program, while somebody waited for its result."""

    kind = FailureKind.PERMANENT


# Frames of generated code (see ``common.type_system.codegen``) carry file names that start so.
_GENERATED = "<firesteel"

# Third parties that stand between the user's code and ours. They count only where an installation would put
# them, so that a user's own ~/pandas/job.py keeps its frames.
_ENGINE_FRAME = re.compile(
    r"(?:site-packages|dist-packages|\.zip|[/\\]python)[/\\](?:pyspark|py4j|pyarrow|pandas|cloudpickle|tenacity)[/\\]"
    # Tenacity hands on what it got as a future does.
    r"|[/\\]python3\.\d+[/\\]concurrent[/\\]futures[/\\]"
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


def in_a_line(error: BaseException, limit: int = 500) -> str:
    """An exception's text without line breaks, for a log.

    >>> in_a_line(ValueError("bad\\n  record")), in_a_line(KeyboardInterrupt())
    ('bad record', 'KeyboardInterrupt')
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
