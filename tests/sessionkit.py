"""Sessions of statements, as PyFlink ran them (``tools/record_sessions.py``), on Firesteel."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment

__all__ = ["environment_of", "printed_by"]


def environment_of(session: dict[str, Any]) -> TableEnvironment:
    """A new environment, in memory."""
    settings = {"firesteel.master": "memory", "parallelism.default": "1", **session.get("settings", {})}
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(settings))
    builder = builder.in_batch_mode() if session.get("mode") == "batch" else builder.in_streaming_mode()
    return TableEnvironment.create(builder.build())


def printed_by(env: TableEnvironment, statement: str, folder: Path) -> str:
    """What the statement prints."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = env.execute_sql(statement.replace("$FOLDER", str(folder)))
        if statement.startswith(("INSERT", "EXECUTE")):
            result.wait()
        result.print()
    return written.getvalue().replace(str(folder), "$FOLDER")
