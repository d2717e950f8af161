"""The driver ``psycopg``, loaded when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from firesteel.errors import SetupError

__all__ = ["load_driver"]


def load_driver() -> Any:
    """The module ``psycopg``."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise SetupError(
            f"The PostgreSQL sinks need the package psycopg, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[postgres]'."
        ) from None
