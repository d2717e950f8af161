"""A failure of the user's code, reported so that its last lines are the user's own.

The failure happens in a Python worker and surfaces in the driver behind pages of JVM trace. It crosses as one line of
JSON inside the exception's text, which survives every wrapping on the way. The JSON says of which class the exception
was and of which kind, so that the driver knows whether a restart could help. What fails outside the user's operators
(reading state, planning a batch) crosses in the same way, see :func:`carried`.
"""

from __future__ import annotations

import contextlib
import json
import re
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from firesteel import errors
from firesteel.errors import (
    FailureKind,
    FiresteelError,
    JobExecutionError,
    Location,
    kind_of,
    short_repr,
    user_frames,
)

__all__ = ["NO_ELEMENT", "Failure", "OperatorFailure", "carried", "describe", "find_failure"]

_MARK = "firesteel-failure"
_PATTERN = re.compile(rf"<{_MARK}>(.*?)</{_MARK}>", re.DOTALL)


@dataclass(frozen=True)
class Failure:
    """What is known of a failure in an operator, or (with an empty name) outside of all operators."""

    operator: str
    built_at: str
    error: str
    """The exception as Python prints its last line."""
    kind: str = FailureKind.PASSING.value
    cause_class: str = ""
    """The exception's class, with its module."""
    raised_at: str | None = None
    source_line: str | None = None
    element: str | None = None
    subtask: int = 0
    trace: str = ""

    def render(self) -> str:
        if not self.operator:
            return f"The job failed: {self.error}"
        lines = [f"Operator {self.operator!r} failed in subtask {self.subtask}."]
        lines.append(f"  operator  {self.operator}, built at {self.built_at}")
        if self.raised_at:
            lines.append(f"  raised    at {self._user_line}")
        if self.element is not None:
            lines.append(f"  element   {self.element}")
        lines.append(f"  {self.error}")
        return "\n".join(lines)

    @property
    def _user_line(self) -> str | None:
        return f"{self.raised_at}: {self.source_line}" if self.raised_at and self.source_line else self.raised_at

    def to_error(self) -> FiresteelError:
        """What the driver raises: of an operator a JobExecutionError; otherwise, if it was an error of Firesteel's,
        one of the same class."""
        kind = FailureKind(self.kind)
        module, _, name = self.cause_class.rpartition(".")
        if not self.operator and module == errors.__name__ and name in errors.__all__:
            own: FiresteelError = getattr(errors, name)(self.error.partition(": ")[2] or self.error, kind=kind)
            return own
        file, _, line = self.built_at.rpartition(":")
        location = Location(file, int(line), "") if line.isdigit() else None
        return JobExecutionError(
            self.render(),
            operator=self.operator,
            built_at=location,
            element=self.element,
            subtask=self.subtask if self.operator else None,
            raised_at=self._user_line,
            cause_text=self.trace,
            cause_class=self.cause_class or None,
            kind=kind,
        )


class OperatorFailure(FiresteelError):
    """Raised in a worker; its text carries the :class:`Failure`."""

    kind = FailureKind.PASSING

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        # "<" must not appear in the JSON, or an element's repr could end the mark early.
        text = json.dumps(asdict(failure)).replace("<", "\\u003c")
        super().__init__(f"{failure.render()}\n<{_MARK}>{text}</{_MARK}>", kind=FailureKind(failure.kind))

    def __reduce__(self) -> tuple[type[OperatorFailure], tuple[Failure]]:
        return OperatorFailure, (self.failure,)


NO_ELEMENT = object()
"""In place of an element, where a failure is none of an element's."""


def describe(
    error: BaseException,
    operator: str,
    built_at: Location,
    subtask: int,
    element: object = NO_ELEMENT,
    kind: FailureKind | None = None,
) -> OperatorFailure:
    """The failure of an operator from the exception that the user's code raised. ``kind`` is for an exception that
    means more at the place where it was caught than its class says."""
    frames = user_frames(error)
    last = frames[-1] if frames else None
    return OperatorFailure(
        Failure(
            operator=operator,
            built_at=str(built_at),
            error="".join(traceback.format_exception_only(error)).strip(),
            raised_at=f"{last.filename}:{last.lineno} in {last.name}" if last else None,
            source_line=last.line if last else None,
            element=None if element is NO_ELEMENT else short_repr(element),
            subtask=subtask,
            trace="".join(traceback.format_exception(error)),
            kind=(kind or kind_of(error)).value,
            cause_class=_class_name(error),
        )
    )


def _class_name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


@contextlib.contextmanager
def carried() -> Iterator[None]:
    """At the border of a process: what leaves it carries its kind and its class with it.

    >>> try:
    ...     with carried():
    ...         raise errors.CheckpointError("damaged")
    ... except OperatorFailure as failure:
    ...     print(repr(find_failure(str(failure)).to_error()))
    CheckpointError('damaged')
    """
    try:
        yield
    except OperatorFailure:
        raise
    except Exception as error:
        raise OperatorFailure(
            Failure(
                operator="",
                built_at="",
                error="".join(traceback.format_exception_only(error)).strip(),
                trace="".join(traceback.format_exception(error)),
                kind=kind_of(error).value,
                cause_class=_class_name(error),
            )
        ) from error


def find_failure(text: str) -> Failure | None:
    """The failure that an exception's text carries, if any.

    >>> from firesteel.errors import Location
    >>> failure = describe(ValueError("bad <x>"), "Map", Location("job.py", 3, "main"), 0, element="x")
    >>> find_failure("JVM says: " + str(failure) + " at org.apache...").error
    'ValueError: bad <x>'
    """
    found = _PATTERN.search(text)
    return Failure(**json.loads(found.group(1))) if found else None
