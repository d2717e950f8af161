"""Looks into a job's state: keys and values as rows of a table, read from a savepoint.

A job that runs is asked for a savepoint, which goes to a temporary folder; one that has ended is read from its
checkpoint folder, in a process of its own, because that needs Spark. Values that a program did not declare types for
are pickled. Loading them would run the program's code in this process, so only plain values are loaded, and of anything
else its class is named.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.engine.facade import JobFacade
from firesteel.engine.scratch import scratch_folder
from firesteel.errors import JobExecutionError, SavepointError
from firesteel.state_processor import Savepoint
from firesteel.state_processor.plain_values import NotPlainError, load_plain

__all__ = ["Snapshot", "StateBrowser", "StateRows", "plain_value"]

_KEPT = 4
"""Of so many jobs the last snapshot stays on disk."""
_SECONDS_TO_COPY = 180.0
_LONGEST_TEXT = 400


@dataclass(frozen=True)
class Snapshot:
    """A job's state at one moment."""

    taken: int
    """In milliseconds since 1970."""
    savepoint: Savepoint
    folder: Path


@dataclass(frozen=True)
class StateRows:
    """Some rows of a state."""

    columns: list[str]
    rows: list[list[Any]]
    matching: int
    """How many rows the filter leaves."""
    total: int


class StateBrowser:
    """The snapshots that were taken last. One is taken at a time."""

    def __init__(self) -> None:
        self._taking = threading.Lock()
        self._snapshots: dict[str, Snapshot] = {}

    def snapshot(self, job_id: str) -> Snapshot | None:
        """The last one that was taken of a job here."""
        return self._snapshots.get(job_id)

    def take(self, job: JobFacade, running: bool, checkpoint: str | None) -> Snapshot:
        """Takes one: of a job that runs, or of the checkpoint that one which has ended has left."""
        with self._taking:
            folder = Path(tempfile.mkdtemp(prefix="browse-", dir=scratch_folder()))
            try:
                # A job that runs goes on meanwhile.
                path = job.savepoint(str(folder)) if running else _copy_of_checkpoint(checkpoint, folder / "savepoint")
                snapshot = Snapshot(int(time.time() * 1000), Savepoint.load(path), folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            self._forget(job.id)
            self._snapshots[job.id] = snapshot
            while len(self._snapshots) > _KEPT:
                self._forget(next(iter(self._snapshots)))
            return snapshot

    def close(self) -> None:
        """Removes all snapshots."""
        for job_id in list(self._snapshots):
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        snapshot = self._snapshots.pop(job_id, None)
        if snapshot is not None:
            shutil.rmtree(snapshot.folder, ignore_errors=True)


def _copy_of_checkpoint(checkpoint: str | None, target: Path) -> str:
    """A savepoint of a checkpoint, made by a process that starts a Spark and ends with it."""
    if checkpoint is None:
        raise SavepointError(
            "The job has ended and kept no checkpoint. State can be looked at while a job runs, or in a savepoint."
        )
    command = [sys.executable, "-m", "firesteel.cluster.copy_checkpoint", checkpoint, str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_TO_COPY, check=False)
    except subprocess.TimeoutExpired as error:
        raise JobExecutionError(
            f"The checkpoint {checkpoint} was not copied within {_SECONDS_TO_COPY:.0f} seconds."
        ) from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise SavepointError(said[-1] if said else f"The checkpoint {checkpoint} cannot be read.")
    return str(target)


def state_rows(savepoint: Savepoint, uid: str, state: str, key: str, offset: int, limit: int) -> StateRows:
    """Rows of a state whose key contains a text, without regard to case; an empty text means all."""
    import pyarrow.compute as pc

    table = savepoint.read_arrow(uid, state)
    total = table.num_rows
    shown = savepoint.columns(uid, state)
    # A key that had to be pickled stands beside that as text.
    names = [name for name in table.column_names if shown or name != "key_pickle"]
    if key:
        keys = [one.name for one in shown if one.role == "key"] if shown else ["key"]
        if not keys or keys[0] not in names:
            return StateRows([_title(name) for name in names], [], 0, total)
        matching = [pc.match_substring(_texts(table.column(name)), key, ignore_case=True) for name in keys]
        table = table.filter(functools.reduce(pc.or_kleene, matching))
    page = table.slice(offset, limit)
    columns = [page.column(name).to_pylist() for name in names]
    cells = [
        [plain_value(value) if name.endswith("_pickle") and not shown else _cell(value) for value in values]
        for name, values in zip(names, columns, strict=True)
    ]
    return StateRows(
        [_title(name) for name in names], [list(row) for row in zip(*cells, strict=True)], len(table), total
    )


def _title(column: str) -> str:
    return column.removesuffix("_pickle")


def _texts(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return column
    return pa.chunked_array([pa.array([str(_cell(value)) for value in column.to_pylist()], pa.string())])


def _cell(value: Any) -> Any:
    """A value for JSON. Whole numbers beyond what a browser counts exactly become texts."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, dict):
        text = ", ".join(f"{name}: {_cell(part)!r}" for name, part in value.items())
        return _shortened("{" + text + "}")
    if isinstance(value, bytes):
        return f"{len(value)} bytes: {value[:32].hex(' ')}" + (" …" if len(value) > 32 else "")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    if isinstance(value, list):
        return _shortened("[" + ", ".join(repr(_cell(part)) for part in value) + "]")
    return _shortened(value if isinstance(value, str) else repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} … ({len(text):,} characters)"


def plain_value(pickled: bytes | None) -> Any:
    """What a pickle holds, if it is made of plain values; else a text that names its class. Nothing of the program is
    imported or called.

    >>> import pickle
    >>> plain_value(pickle.dumps(("a", 1)))
    "('a', 1)"
    >>> import fractions
    >>> plain_value(pickle.dumps(fractions.Fraction(1, 2)))  # doctest: +ELLIPSIS
    'an object of fractions.Fraction (... bytes, pickled)'
    """
    if pickled is None:
        return None
    try:
        return _cell(load_plain(pickled))
    except NotPlainError as error:
        return f"an object of {error.name} ({len(pickled):,} bytes, pickled)"
    except Exception:
        return f"{len(pickled):,} bytes, pickled"
