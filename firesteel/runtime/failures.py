"""A failure of the user's code, told so that its last lines are the user's own.

The failure happens in a Python worker and surfaces in the driver behind pages of JVM trace. It crosses as one line of
JSON inside the exception's text, which survives every wrapping on the way.
"""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import asdict, dataclass

from firesteel.errors import FiresteelError, JobExecutionError, Location, short_repr, user_frames

__all__ = ["Failure", "OperatorFailure", "find_failure"]

_MARK = "firesteel-failure"
_PATTERN = re.compile(rf"<{_MARK}>(.*?)</{_MARK}>", re.DOTALL)


@dataclass(frozen=True)
class Failure:
    """What is known of a failure in an operator."""

    operator: str
    built_at: str
    error: str
    """The exception as Python prints its last line."""
    raised_at: str | None = None
    source_line: str | None = None
    element: str | None = None
    subtask: int = 0
    trace: str = ""

    def render(self) -> str:
        lines = [f"Operator {self.operator!r} failed in subtask {self.subtask}."]
        lines.append(f"  operator  {self.operator}, built at {self.built_at}")
        if self.raised_at:
            lines.append(f"  raised    at {self.raised_at}" + (f": {self.source_line}" if self.source_line else ""))
        if self.element is not None:
            lines.append(f"  element   {self.element}")
        lines.append(f"  {self.error}")
        return "\n".join(lines)

    def to_error(self) -> JobExecutionError:
        file, _, line = self.built_at.rpartition(":")
        location = Location(file, int(line), "") if line.isdigit() else None
        return JobExecutionError(
            self.render(),
            operator=self.operator,
            built_at=location,
            element=self.element,
            cause_text=self.trace,
        )


class OperatorFailure(FiresteelError):
    """Raised in a worker; its text carries the :class:`Failure`."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        # "<" must not appear in the JSON, or an element's repr could end the mark early.
        text = json.dumps(asdict(failure)).replace("<", "\\u003c")
        super().__init__(f"{failure.render()}\n<{_MARK}>{text}</{_MARK}>")

    def __reduce__(self) -> tuple[type[OperatorFailure], tuple[Failure]]:
        return OperatorFailure, (self.failure,)


_NO_ELEMENT = object()


def describe(
    error: BaseException, operator: str, built_at: Location, subtask: int, element: object = _NO_ELEMENT
) -> OperatorFailure:
    """The failure of an operator from the exception that the user's code raised."""
    frames = user_frames(error)
    last = frames[-1] if frames else None
    return OperatorFailure(
        Failure(
            operator=operator,
            built_at=str(built_at),
            error="".join(traceback.format_exception_only(error)).strip(),
            raised_at=f"{last.filename}:{last.lineno} in {last.name}" if last else None,
            source_line=last.line if last else None,
            element=None if element is _NO_ELEMENT else short_repr(element),
            subtask=subtask,
            trace="".join(traceback.format_exception(error)),
        )
    )


def find_failure(text: str) -> Failure | None:
    """The failure that an exception's text carries, if any.

    >>> from firesteel.errors import Location
    >>> failure = describe(ValueError("bad <x>"), "Map", Location("job.py", 3, "main"), 0, element="x")
    >>> find_failure("JVM says: " + str(failure) + " at org.apache...").error
    'ValueError: bad <x>'
    """
    found = _PATTERN.search(text)
    return Failure(**json.loads(found.group(1))) if found else None
