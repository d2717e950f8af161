"""Compares Firesteel's public names with PyFlink's and prints what is missing.

Run with the project's Python::

    .venv/bin/python tools/completeness.py            # streams
    .venv/bin/python tools/completeness.py --table    # tables

``tests/compat/pyflink_names.json`` holds PyFlink's names (made by ``tools/pyflink_names.py``).
``tests/compat/exclusions.json`` maps what Firesteel leaves out to the reason. An entry names a module, a
class or a member (``datastream.window``, ``datastream.data_stream.WindowedStream``,
``datastream.data_stream.DataStream.connect``) and may contain ``*``. It covers everything below it, and
re-exports of it. As soon as one name that it covers exists, the entry is out of date, so that the list can
only shrink. An entry that ends in ``()`` covers only the parameters of a function that exists.
"""

import fnmatch
import importlib
import inspect
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

COMPAT = Path(__file__).resolve().parent.parent / "tests" / "compat"
ABSENT = object()


@dataclass
class Findings:
    """What the comparison found; all three lists are empty when the surface is complete."""

    missing: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)


class Exclusions:
    """What is left out, why, and which names each entry turned out to cover."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        self.existing: dict[str, list[str]] = {entry: [] for entry in reasons}

    def cover(self, *paths: str, exists: bool) -> bool:
        """Whether an entry covers one of ``paths``, the names under which one thing is known."""
        covered = False
        for entry in self.reasons:
            if any(covers(entry, path) for path in paths):
                covered = True
                if exists:
                    self.existing[entry].append(paths[0])
        return covered

    def outdated(self, known: list[str]) -> list[str]:
        """The entries that cover a name which exists, and those that cover none of the ``known`` ones."""
        found = []
        for entry, names in self.existing.items():
            if names:
                verb = "fits" if entry.endswith("()") else "exists"
                more = f" and {len(names) - 1} more" if names[1:] else ""
                found.append(f"{entry}: {names[0]} {verb} now{more}")
        unused = [entry for entry in self.reasons if not any(covers(entry.removesuffix("()"), path) for path in known)]
        return found + [f"{entry}: PyFlink has no such name" for entry in unused]


def covers(entry: str, path: str) -> bool:
    if entry.endswith("()") or path.endswith("()"):
        return entry == path
    return fnmatch.fnmatchcase(path, entry) or fnmatch.fnmatchcase(path, entry + ".*")


def paths(prefix: str, described: dict[str, Any]) -> list[str]:
    """The paths of all names below ``prefix``, members and nested classes too."""
    found = []
    for name, entry in described.items():
        path = f"{prefix}.{name}"
        found.append(path)
        if isinstance(entry, dict):
            found += paths(path, entry.get("members", {}) if "bases" in entry else entry)
    return found


def module_of(name: str) -> ModuleType | None:
    """``firesteel.<name>``, or None if there is no such module."""
    full_name = f"firesteel.{name}"
    try:
        return importlib.import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != "firesteel" and f"{full_name}.".startswith(f"{error.name}."):
            return None
        raise


def parameter_problem(expected: list[str], function: Any, bound: bool) -> str | None:
    """Why a call written for PyFlink would not fit ``function``, or None if it does."""
    try:
        actual = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if bound and actual and actual[0].name in ("self", "cls"):
        actual = actual[1:]
    for position, name in enumerate(expected):
        plain = name.strip("*=")
        if position >= len(actual) or (not name.startswith("*") and actual[position].name != plain):
            return describe_difference(expected, actual)
        if name.startswith("*") != (actual[position].kind in VARIADIC):
            return describe_difference(expected, actual)
        if name.endswith("=") and actual[position].default is inspect.Parameter.empty:
            return describe_difference(expected, actual)
        if actual[position].kind is inspect.Parameter.POSITIONAL_ONLY:
            return describe_difference(expected, actual)
    for extra in actual[len(expected) :]:
        if extra.default is inspect.Parameter.empty and extra.kind not in VARIADIC:
            return describe_difference(expected, actual)
    return None


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def describe_difference(expected: list[str], actual: list[inspect.Parameter]) -> str:
    return f"PyFlink has ({', '.join(expected)}), Firesteel ({', '.join(map(str, actual))})"


class Comparison:
    """Walks PyFlink's names and looks each of them up in Firesteel."""

    def __init__(self, names: dict[str, Any], exclusions: dict[str, str]) -> None:
        self.modules: dict[str, dict[str, Any]] = names["modules"]
        self.exclusions = Exclusions(exclusions)
        self.findings = Findings()

    def run(self) -> Findings:
        for module_name, described in self.modules.items():
            module = module_of(module_name)
            for name, entry in described.items():
                self.compare_name(module, f"{module_name}.{name}", entry)
        known = [path for name, described in self.modules.items() for path in paths(name, described)]
        self.findings.outdated = self.exclusions.outdated(known)
        return self.findings

    def compare_name(self, module: ModuleType | None, path: str, entry: dict[str, Any]) -> None:
        value: Any = getattr(module, path.rpartition(".")[2], ABSENT)
        aliases = [path, entry["same_as"]] if "same_as" in entry else [path]
        excluded = self.exclusions.cover(*aliases, exists=value is not ABSENT)
        if excluded:
            return
        if value is ABSENT:
            self.findings.missing.append(path)
        elif "members" in entry:
            self.compare_bases(path, value, entry.get("bases", []))
            self.compare_members(path, value, entry["members"])
        elif "parameters" in entry:
            self.compare_parameters(path, value, entry["parameters"], bound=False)
        elif "same_as" in entry:
            self.compare_alias(path, value, entry["same_as"])

    def compare_alias(self, path: str, value: Any, target: str) -> None:
        original = self.lookup(target)
        if original is not ABSENT and original is not value:
            self.findings.different.append(f"{path}: not the same object as {target}")

    def compare_bases(self, path: str, cls: type, bases: list[str]) -> None:
        for base in bases:
            expected = self.lookup(base)
            if inspect.isclass(expected) and not issubclass(cls, expected):
                self.findings.different.append(f"{path}: not a subclass of {base}")

    def compare_members(self, path: str, cls: type, members: dict[str, Any]) -> None:
        for name, expected in members.items():
            member_path = f"{path}.{name}"
            value = inspect.getattr_static(cls, name, ABSENT)
            if value is ABSENT and name in getattr(cls, "__annotations__", {}):
                value = None
            if self.exclusions.cover(member_path, exists=value is not ABSENT):
                continue
            if value is ABSENT:
                self.findings.missing.append(member_path)
            elif isinstance(expected, dict) and inspect.isclass(value):
                self.compare_members(member_path, value, expected)
            elif expected is None and (inspect.isfunction(value) or isinstance(value, staticmethod | classmethod)):
                self.compare_property(member_path)
            elif isinstance(expected, list):
                bound = not isinstance(value, staticmethod)
                self.compare_parameters(member_path, getattr(cls, name), expected, bound)

    def compare_property(self, path: str) -> None:
        if not self.exclusions.cover(f"{path}()", exists=False):
            self.findings.different.append(f"{path}: read without parentheses in PyFlink, a method in Firesteel")

    def compare_parameters(self, path: str, function: Any, expected: list[str], bound: bool) -> None:
        problem = parameter_problem(expected, function, bound) if callable(function) else "not callable"
        excluded = self.exclusions.cover(f"{path}()", exists=problem is None)
        if problem and not excluded:
            self.findings.different.append(f"{path}: {problem}")

    def lookup(self, path: str) -> Any:
        module_name, _, name = path.rpartition(".")
        return getattr(module_of(module_name), name, ABSENT)


def compare(table: bool = False) -> Findings:
    """Firesteel as it is now against the recorded names and the exclusions: those of streams, or those of tables."""
    names = json.loads((COMPAT / ("pyflink_table_names.json" if table else "pyflink_names.json")).read_text())
    exclusions = json.loads((COMPAT / ("table_exclusions.json" if table else "exclusions.json")).read_text())
    return Comparison(names, exclusions).run()


def main() -> int:
    findings = compare("--table" in sys.argv)
    for title, lines in vars(findings).items():
        print(f"{title}: {len(lines)}")
        for line in lines:
            print(f"  {line}")
    return 1 if findings.missing or findings.different or findings.outdated else 0


if __name__ == "__main__":
    sys.exit(main())
