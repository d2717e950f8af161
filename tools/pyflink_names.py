"""Writes down PyFlink's public names: modules, classes, methods and their parameters.

Run with the Python of an environment that has PyFlink::

    <environment>/bin/python tools/pyflink_names.py

The result, ``tests/compat/pyflink_names.json`` (with ``--table`` ``pyflink_table_names.json``), is what
``tests/compat/test_completeness.py`` holds Firesteel to. Only names and parameter names are kept; a class is
described where it is defined, and elsewhere by a reference.
"""

import argparse
import enum
import importlib
import inspect
import json
import pkgutil
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("pyflink.common", "pyflink.datastream", "pyflink.metrics")
TABLE_PACKAGES = ("pyflink.table",)
PLUMBING = (
    *("pyflink.common.constants", "pyflink.common.utils", "pyflink.datastream.utils"),
    *("pyflink.table.utils", "pyflink.table.serializers", "pyflink.table.functions"),
)
"""Helpers between PyFlink and its JVM, which no program imports."""
COMPAT = Path(__file__).resolve().parent.parent / "tests" / "compat"
TARGETS = {PACKAGES: COMPAT / "pyflink_names.json", TABLE_PACKAGES: COMPAT / "pyflink_table_names.json"}


def modules(packages: tuple[str, ...]) -> list[ModuleType]:
    """The packages and every module below them, except tests and plumbing."""
    found = []
    for package_name in packages:
        package = importlib.import_module(package_name)
        found.append(package)
        for info in pkgutil.walk_packages(package.__path__, package_name + "."):
            if ".tests" not in info.name and info.name not in PLUMBING:
                found.append(importlib.import_module(info.name))
    return found


def public_names(module: ModuleType) -> list[str]:
    """``__all__`` where the module has one, and what a package has set of its modules' classes when it was loaded; else
    what it defines itself."""
    declared: list[str] | None = getattr(module, "__all__", None)
    if declared is not None:
        inner = f"{module.__name__}."
        installed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and inspect.isclass(value) and value.__module__.startswith(inner)
        ]
        return [name for name in dict.fromkeys([*declared, *installed]) if hasattr(module, name)]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


def parameters(function: Any) -> list[str]:
    """Parameter names in order, without self; stars mark the variadic ones, ``=`` those with a default."""
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append("*" + name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            names.append("**" + name)
        else:
            names.append(name if parameter.default is parameter.empty else name + "=")
    return names


def unbound(names: list[str]) -> list[str]:
    return names[1:] if names and names[0] in ("self", "cls") else names


def constructor(cls: type) -> list[str] | None:
    """The constructor's parameters, unless it is inherited from ``object`` or takes a Java object."""
    init = cls.__init__  # type: ignore[misc]
    if init is object.__init__ or issubclass(cls, enum.Enum | tuple):
        return None
    names = unbound(parameters(init))
    return None if any(name.lstrip("*").startswith(("j_", "java_", "_j")) for name in names) else names


def members(cls: type, public: set[type]) -> dict[str, Any]:
    """Methods as lists of parameters, nested classes as dicts, other attributes as null.

    What a public base already lists is left out.
    """
    found: dict[str, Any] = {}
    init = constructor(cls)
    if init is not None:
        found["__init__"] = init
    for name in dir(cls):
        if name.startswith("_") or (issubclass(cls, enum.Enum) and hasattr(enum.Enum, name)):
            continue
        owner = next(base for base in cls.__mro__ if name in vars(base))
        if not owner.__module__.startswith("pyflink") or (owner is not cls and owner in public):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, staticmethod):
            found[name] = parameters(value.__func__)
        elif isinstance(value, classmethod):
            found[name] = unbound(parameters(value.__func__))
        elif inspect.isfunction(value):
            found[name] = unbound(parameters(value))
        elif inspect.isclass(value):
            found[name] = members(value, public)
        else:
            found[name] = None
    return found


def place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}".removeprefix("pyflink.")


def describe(module: ModuleType, public: set[type]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for name in sorted(public_names(module)):
        value = getattr(module, name)
        if inspect.isclass(value) and value.__module__.startswith("pyflink"):
            if value.__module__ == module.__name__ and value.__name__ == name:
                bases = [place(base) for base in value.__mro__[1:] if base in public]
                described[name] = {"bases": bases, "members": members(value, public)}
            else:
                described[name] = {"same_as": place(value)}
        elif inspect.isfunction(value):
            described[name] = {"parameters": parameters(value)}
        else:
            described[name] = {}
    return described


def main() -> None:
    parser = argparse.ArgumentParser(description="Write down PyFlink's public names.")
    parser.add_argument("--table", action="store_true", help="those of pyflink.table, into a file of their own")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    packages = TABLE_PACKAGES if options.table else PACKAGES
    output = options.output or TARGETS[packages]
    found = modules(packages)
    values = (getattr(module, name) for module in found for name in public_names(module))
    classes = {value for value in values if inspect.isclass(value)}
    names = {module.__name__.removeprefix("pyflink."): describe(module, classes) for module in found}
    document = {"pyflink": version("apache-flink"), "modules": names}
    output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{output.name}: {len(names)} modules, {sum(map(len, names.values()))} names")


if __name__ == "__main__":
    main()
