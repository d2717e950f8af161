"""How functions of libraries get to Spark's workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

from firesteel.engine.imports import IMPORTS, JobFiles
from firesteel.errors import SerializationError, in_a_line

__all__ = ["Shipped"]


class Shipped:
    """A function that is unpickled when it is called: by then the worker looks for modules where this process does.

    ``what`` is what an error calls it that cannot travel, ``files`` are those that its job brought."""

    def __init__(
        self, function: Callable[..., Any], paths: tuple[str, ...], what: str, files: JobFiles | None = None
    ) -> None:
        self._function: Callable[..., Any] | None = function
        self._paths = paths
        self._what = what
        self._files = files
        self._pickled = b""

    def __getstate__(self) -> tuple[tuple[str, ...], str, JobFiles | None, bytes]:
        try:
            return self._paths, self._what, self._files, self._pickled or cloudpickle.dumps(self._function)
        except Exception as error:
            raise SerializationError(f"{self._what} cannot travel to workers: {in_a_line(error)}") from None

    def __setstate__(self, state: tuple[tuple[str, ...], str, JobFiles | None, bytes]) -> None:
        self._paths, self._what, self._files, self._pickled = state
        self._function = None

    def __call__(self, *arguments: Any) -> Any:
        if self._files is not None:
            IMPORTS.switch(self._files)
        if self._function is None:
            sys.path.extend(path for path in self._paths if path not in sys.path)
            self._function = cloudpickle.loads(self._pickled)
        return self._function(*arguments)
