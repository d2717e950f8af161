"""What fails in a worker reaches the program as one clear line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from pyspark.errors import PySparkException

from firesteel import errors
from firesteel.errors import FiresteelError, JobExecutionError

__all__ = ["user_errors"]

_OURS = re.compile(r"^(?:firesteel\.errors\.)(\w+): (.*)$", re.MULTILINE)
_LAST = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|Interrupt|Warning)): ?(.*)$", re.MULTILINE)
_PLACE = re.compile(r'^\s+File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Around every action on Spark: raises what failed in a worker, without the traces of Spark."""
    try:
        yield
    except PySparkException as error:
        found = explained(str(error))
        if found is None:
            raise
        raise found from None


def explained(text: str) -> FiresteelError | None:
    """The failure that a trace of Spark is about; None where it is Spark's own.

    >>> explained('Traceback\\nfiresteel.errors.ProgramError: no such vertex\\n\\n\\tat org.apache')
    ProgramError('no such vertex')
    >>> explained('PythonException:\\n  File "/home/me/g.py", line 3, in compute\\nZeroDivisionError: division by zero')
    JobExecutionError('ZeroDivisionError: division by zero (g.py, line 3, in compute)')
    """
    ours = _OURS.search(text)
    if ours is not None:
        kind = getattr(errors, ours[1], JobExecutionError)
        return kind(ours[2]) if isinstance(kind, type) and issubclass(kind, FiresteelError) else None
    if "Traceback" not in text and "PythonException" not in text and "PYTHON" not in text:
        return None
    last = _LAST.findall(text)
    if not last:
        return None
    places = [place for place in _PLACE.findall(text) if not _inside(place[0])]
    where = f" ({places[-1][0].rpartition('/')[2]}, line {places[-1][1]}, in {places[-1][2]})" if places else ""
    name, message = last[-1]
    return JobExecutionError(f"{name}: {message}{where}")


def _inside(path: str) -> bool:
    return any(part in path for part in ("/pyspark/", "/pyarrow/", "/firesteel/gelly/", "pyspark.zip", "/numpy/"))
