"""The user's ``spark-defaults.conf``.

Spark's launcher reads it before it starts the JVM. Ours (see :mod:`.home`) has no launcher, and has to know what is set
there before it sets anything itself.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["parse_properties", "spark_defaults"]

_ENTRY = re.compile(r"(?P<key>(?:\\.|[^\\\s:=])*)\s*[:=]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def spark_defaults() -> dict[str, str]:
    """What the file in ``SPARK_CONF_DIR`` or ``$SPARK_HOME/conf`` sets; nothing where there is none."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else None)
    if folder is None:
        return {}
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    # Spark, too, leaves out what is not its own.
    return {key: value for key, value in parse_properties(text).items() if key.startswith("spark.")}


def parse_properties(text: str) -> dict[str, str]:
    r"""The entries of a file of Java's properties, with values trimmed as Spark does it.

    >>> parse_properties("# where\nspark.master   spark://host:7077 \n! and\nspark.jars=a.jar,\\\n    b.jar\n")
    {'spark.master': 'spark://host:7077', 'spark.jars': 'a.jar,b.jar'}
    >>> parse_properties("spark.a\\:b : C\\:\\\\jobs\\t\\u00e4\nspark.empty\n")
    {'spark.a:b': 'C:\\jobs\tä', 'spark.empty': ''}
    """
    entries = {}
    for line in _logical_lines(text):
        found = _ENTRY.fullmatch(line)
        assert found is not None
        entries[_unescaped(found["key"])] = _unescaped(found["value"]).strip()
    return entries


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and empty ones; a backslash at the end joins a line with the next."""
    lines: list[str] = []
    begun = ""
    for line in text.splitlines():
        line = line.lstrip()
        if not begun and (not line or line[0] in "#!"):
            continue
        begun += line
        # An even number of them are escaped ones.
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        lines.append(begun)
        begun = ""
    return [*lines, begun] if begun else lines


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, letter = match.groups()
        return chr(int(code, 16)) if code else _CONTROL.get(letter, letter)

    return _ESCAPE.sub(plain, text)
