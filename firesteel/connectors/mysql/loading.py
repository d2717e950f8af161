"""The driver ``PyMySQL``, loaded when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from firesteel.errors import SetupError

__all__ = ["load_driver"]


def load_driver() -> Any:
    """The module ``pymysql``."""
    try:
        return importlib.import_module("pymysql")
    except ImportError as error:
        raise SetupError(
            f"MariaDB and MySQL need the package PyMySQL, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[mysql]'."
        ) from None
