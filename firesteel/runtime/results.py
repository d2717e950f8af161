"""Results that a function should not have returned: reported in terms of the function, not of our loop.

Nothing here is called for a record. A failure is looked at once it has happened, and of the results of a chunk only
the last one is looked at.
"""

from __future__ import annotations

import os
from typing import Any

from firesteel import errors
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import ProgramError, short_repr

__all__ = ["SUSPICIOUS", "explained", "suspicion"]

_OURS = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep
SUSPICIOUS = frozenset((str, tuple))
"""The classes of results that are worth a look."""

_RESULT_VARIABLE = "produced"
"""What operators call the variable with a function's results."""


def explained(error: BaseException) -> BaseException:
    """What to report of an exception: the same, or, if our loop could not go through what a function returned, that.

    >>> try:
    ...     explained(int("x"))
    ... except ValueError as error:
    ...     explained(error) is error
    True
    """
    trace = error.__traceback__
    if type(error) is not TypeError or trace is None or not str(error).endswith("object is not iterable"):
        return error
    while trace.tb_next is not None:
        trace = trace.tb_next
    variables = trace.tb_frame.f_locals
    if not trace.tb_frame.f_code.co_filename.startswith(_OURS) or _RESULT_VARIABLE not in variables:
        return error
    produced = variables[_RESULT_VARIABLE]
    if _is_iterable(produced):
        # It failed on the way through it, in C code that the function gave us, such as map(sum, numbers).
        return error
    return ProgramError(
        f"The function returned {type(produced).__name__} {short_repr(produced, 80)}. It must return its results as an "
        "iterable, such as a list, or yield each of them, or return None for no result. Write 'yield x' instead of "
        "'return x', or 'return [x]'."
    )


def _is_iterable(produced: Any) -> bool:
    try:
        iter(produced)
    except TypeError:
        return False
    return True


def suspicion(produced: Any) -> str | None:
    """What is odd about results that can be gone through but were hardly meant so. A tuple that begins with an
    OutputTag is an error.

    >>> suspicion("word")
    "a str: each of its characters becomes a record. For one record write 'yield' instead of 'return'"
    >>> suspicion((1, 2)), suspicion(["word", 1])
    (None, None)
    """
    if produced.__class__ is str:
        return "a str: each of its characters becomes a record. For one record write 'yield' instead of 'return'"
    if produced.__class__ is tuple and produced:
        if isinstance(produced[0], OutputTag):
            raise ProgramError(
                f"The function returned {short_repr(produced, 80)}. Results for a side output are yielded: write "
                "'yield tag, value' instead of 'return tag, value'."
            )
        if len({type(one) for one in produced}) > 1:
            return (
                f"the tuple {short_repr(produced, 80)}: each of its elements becomes a record, as in PyFlink. For one "
                "record write 'yield' instead of 'return'; if this was meant, return a list"
            )
    return None
