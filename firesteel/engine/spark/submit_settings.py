"""Spark's settings on their way to the JVM: in a file of the user's alone, not on its command line.

PySpark passes every setting as ``--conf key=value``, and everybody on a machine can read the command lines of all
processes. Settings hold the keys of object stores and the passwords of key stores.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from firesteel.common.process_environment import exported

__all__ = ["property_line", "submitted_by_file"]

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


@contextlib.contextmanager
def submitted_by_file(settings: Mapping[str, str], folder: Path) -> Iterator[None]:
    """A JVM that is started meanwhile reads these settings from a file. It is gone afterwards.

    What a user has in ``PYSPARK_SUBMIT_ARGS`` counts as before and wins over the file; the file wins over
    ``spark-defaults.conf``.
    """
    # Made with mode 0600.
    descriptor, path = tempfile.mkstemp(prefix="settings-", suffix=".conf", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(property_line(key, value) for key, value in settings.items())
        options = f"--properties-file {shlex.quote(path)} --load-spark-defaults"
        before = os.environ.get(_ARGUMENTS)
        with exported({_ARGUMENTS: f"{options} {before or 'pyspark-shell'}"}):
            yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def property_line(key: str, value: str) -> str:
    r"""A line as Java's properties are written.

    >>> property_line("spark.app.name", " C:\\jobs\n= 1")
    'spark.app.name=\\ C\\:\\\\jobs\\n\\= 1\n'
    """
    return f"{_escaped(key).replace(' ', chr(92) + ' ')}={_escaped(value)}\n"


def _escaped(text: str) -> str:
    for plain, written in (
        ("\\", "\\\\"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
        ("\f", "\\f"),
        ("=", "\\="),
        (":", "\\:"),
        ("#", "\\#"),
        ("!", "\\!"),
    ):
        text = text.replace(plain, written)
    return f"\\{text}" if text.startswith(" ") else text
