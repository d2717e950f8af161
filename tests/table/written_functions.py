"""Functions made of text, with a source that can be found as that of a file."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.types.data_types import DataType

_NUMBERS = itertools.count()


def written(source: str, name: str | None = None, **names: Any) -> Any:
    """What the source is, or the name in it. ``names`` are global ones."""
    file = f"<written {next(_NUMBERS)}>"
    if name is None:
        name, source = "written", f"written = {source}"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    found: dict[str, Any] = {"__name__": "written", **names}
    exec(compile(source, file, "exec"), found)
    return found[name]


def user_function(function: Any, result_type: DataType) -> UserFunction:
    return UserFunction("f", function, "scalar", result_type)


Outcome = tuple[str, Any]


def outcome(user: UserFunction, columns: Sequence[pa.Array], kinds: Sequence[DataType]) -> Outcome:
    """What a function gives for columns, row by row if it has no form for columns: a type and values as text, for NaN
    equals itself there and -0.0 is not 0.0; or an error."""
    try:
        found = user.column(columns, kinds, len(columns[0]), "UTC")
    except Exception as error:
        return type(error).__name__, [str(error), getattr(error, "__notes__", [])]
    return str(found.type), [repr(each) for each in found.to_pylist()]
