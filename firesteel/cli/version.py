"""Shows the versions of Firesteel and of what it stands on."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from firesteel import __version__
from firesteel.engine.spark.java import find_java
from firesteel.errors import SetupError

__all__ = ["HELP", "configure", "run"]

HELP = "show the versions of Firesteel, PySpark, Python and Java"


def configure(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(options: argparse.Namespace) -> int:
    print(f"Firesteel {__version__}")
    print(f"PySpark   {_pyspark()}")
    print(f"Python    {platform.python_version()}")
    print(f"Java      {_java()}")
    return 0


def _pyspark() -> str:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return "not installed"


def _java() -> str:
    try:
        java = find_java()
    except SetupError:
        return "none of version 17 or newer found"
    return f"{java.version} ({java.home})"
