"""Which Python files of jobs can be imported in this process.

The files of a job lie in a folder of its own, and two jobs of one process may have different modules of one name. So a
process makes a job's folder the first place to look for modules while it works for that job, and takes the modules
from there out of ``sys.modules`` when it turns to a job with other ones: the next time they are put back, not loaded
again.

A worker works for one job at a time and *switches*. A driver works for several at once: it *holds* the files of each.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from firesteel.errors import ConfigurationError

__all__ = ["IMPORTS", "Imports", "JobFiles"]

_STAYS = sys.stdlib_module_names | {"firesteel", "pyspark", "py4j", "cloudpickle", "pandas", "numpy", "pyarrow"}
"""What this process itself works with."""


@dataclass(frozen=True)
class JobFiles:
    """The files of a job: modules and packages in ``files``, what its requirements brought in ``packages``, unpacked
    archives in ``archives``, and in ``cached`` what functions ask for by name."""

    name: str
    """Made of what they contain: jobs with the same files have the same name."""
    folder: str
    """Where the driver has them."""

    def places(self) -> tuple[str, str, str]:
        """Where this process looks for modules: the files, the packages, the archives."""
        here = self.here()
        return os.path.join(here, "files"), os.path.join(here, "packages"), os.path.join(here, "archives")

    def here(self) -> str:
        """The folder as this process has it."""
        return _sent_by_spark(self.name) or self.folder


def _sent_by_spark(name: str) -> str | None:
    """Where an executor has what the driver sent; None in processes that are the driver's own."""
    files = getattr(sys.modules.get("pyspark"), "SparkFiles", None)
    root = getattr(files, "_root_directory", None) if getattr(files, "_is_running_on_worker", False) else None
    path = os.path.join(root, name) if root else ""
    return path if os.path.isdir(path) else None


class Imports:
    """The files that can be imported now, and the modules of those that cannot."""

    def __init__(self) -> None:
        self._active: dict[str, JobFiles] = {}
        self._users: dict[str, int] = {}
        self._modules: dict[str, dict[str, ModuleType]] = {}
        """By the name of files that are not active: what had been imported from them."""
        self._aside: dict[str, dict[str, ModuleType]] = {}
        """By the name of files that are active: modules of the same names that came from elsewhere."""
        self._changing = threading.RLock()
        self._directories: dict[str, str] = {}
        """By the name of files that are active: the working directory of before."""

    # In a worker

    def switch(self, files: JobFiles | None) -> None:
        """Makes these files, and no others, the ones that are found. Costs nothing where they already are."""
        if (files is None and not self._active) or (files is not None and files.name in self._active):
            return
        with self._changing:
            for other in list(self._active.values()):
                self._leave(other)
            if files is not None:
                self._enter(files, alone=True)

    @contextlib.contextmanager
    def of(self, files: JobFiles | None) -> Iterator[None]:
        """These files for a while, then those from before."""
        before = next(iter(self._active.values()), None)
        self.switch(files)
        try:
            yield
        finally:
            self.switch(before)

    # In a driver

    def hold(self, files: JobFiles | None, runs_here: bool) -> None:
        """Makes a job's files importable until others with modules of the same name take their place.

        ``runs_here`` says that the job's functions run in this very process, in which a module's name can mean one
        thing only: then another meaning is an error.
        """
        if files is None:
            return
        with self._changing:
            names = _names_in(files)
            for other in [other for other in self._active.values() if other.name != files.name]:
                common = names & _names_in(other)
                if common and runs_here and self._users.get(other.name, 0):
                    raise ConfigurationError(
                        f"Another job of this process runs with a different module {min(common)!r}. The memory engine "
                        "runs all jobs in one process, in which a module can be there only once: rename one of them, "
                        "or run one job after the other."
                    )
                if common:
                    self._leave(other)
            if runs_here:
                _refuse_other_modules(files, names)
            if files.name not in self._active:
                self._enter(files, alone=False)
            self._users[files.name] = self._users.get(files.name, 0) + 1

    def release(self, files: JobFiles | None) -> None:
        """A job that held its files is over. They stay importable, for those who still read its results."""
        if files is not None:
            with self._changing:
                self._users[files.name] = max(0, self._users.get(files.name, 0) - 1)

    def without_files(self, paths: Iterable[str]) -> list[str]:
        """Of places to look for modules those that are not a job's own."""
        theirs = {place for files in self._active.values() for place in files.places()}
        return [path for path in paths if path not in theirs]

    # Both

    def _enter(self, files: JobFiles, alone: bool) -> None:
        """``alone``: modules of the same names that came from elsewhere are out of sight meanwhile. A driver does not
        do that to the program's own modules, by which it pickles the program's functions and classes."""
        if alone:
            names = _names_in(files) - _STAYS
            self._aside[files.name] = _take_out(name for name in list(sys.modules) if _top(name) in names)
        sys.modules.update(self._modules.pop(files.name, {}))
        sys.path[:0] = files.places()
        importlib.invalidate_caches()
        self._active[files.name] = files
        archives = files.places()[2]
        if alone and os.path.isdir(archives):
            # As in PyFlink, functions open what was in an archive by a path that begins with the archive's name.
            self._directories[files.name] = os.getcwd()
            os.chdir(archives)

    def _leave(self, files: JobFiles) -> None:
        places = files.places()
        self._modules[files.name] = _take_out(
            name for name, module in list(sys.modules.items()) if _comes_from(module, places)
        )
        sys.modules.update(self._aside.pop(files.name, {}))
        sys.path[:] = [path for path in sys.path if path not in places]
        if files.name in self._directories:
            os.chdir(self._directories.pop(files.name))
        del self._active[files.name]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _take_out(names: Iterator[str]) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(names)}


def _comes_from(module: ModuleType, places: tuple[str, ...]) -> bool:
    # Anything may stand in sys.modules.
    with contextlib.suppress(Exception):
        found = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(str(path).startswith(place + os.sep) for path in found if path for place in places)
    return False


def _names_in(files: JobFiles) -> frozenset[str]:
    """The modules that a job brings by name; packages of requirements are shared with whoever has them already."""
    modules, _, archives = files.places()
    names: set[str] = set()
    with contextlib.suppress(OSError):
        names.update(_top(entry) for entry in os.listdir(modules) if not entry.startswith("__"))
    with contextlib.suppress(OSError):
        names.update(entry for entry in os.listdir(archives) if entry.isidentifier())
    return frozenset(names)


def _refuse_other_modules(files: JobFiles, names: frozenset[str]) -> None:
    """The program may have imported its own copy of a file that it ships, but not something else of that name."""
    place = Path(files.places()[0])
    for name in sorted(names & sys.modules.keys()):
        there = getattr(sys.modules[name], "__file__", None)
        shipped = next((path for path in (place / f"{name}.py", place / name / "__init__.py") if path.exists()), None)
        if there is None or shipped is None or Path(there) == shipped:
            continue
        with contextlib.suppress(OSError):
            if Path(there).read_bytes() != shipped.read_bytes():
                raise ConfigurationError(
                    f"The job brings a module {name!r}, but this process has already imported another one of that name "
                    f"from {there}. The memory engine runs the job in this process, in which a module can be there "
                    "only once: rename one of them."
                )


IMPORTS = Imports()
