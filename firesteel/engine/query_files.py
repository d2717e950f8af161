"""Looks over what Spark has left in a query's folder, before Spark does.

Spark finds out late, and in its own words: a missing log makes a query begin anew, a missing state file fails the
first batch with pages of trace. Only the newest entries are looked at; they are what a restart needs.
"""

from __future__ import annotations

import json

from firesteel.filesystems import LOCAL, Storage, joined

__all__ = ["check_query", "newest_entry"]


def check_query(query: str, later_stages: int, width: int, storage: Storage = LOCAL) -> str | None:
    """What is missing or damaged, in words; None where all is well."""
    if not storage.is_folder(query):
        return "its folder 'query' is missing"
    try:
        json.loads(storage.read(joined(query, "metadata")))["id"]
    except FileNotFoundError:
        return "its file query/metadata is missing"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its file query/metadata is damaged ({error})"
    offset = newest_entry(joined(query, "offsets"), storage)
    if offset is None:
        return "query/offsets has no entries"
    commit = newest_entry(joined(query, "commits"), storage)
    for folder, number in (("offsets", offset), ("commits", commit)):
        if number is not None and not _is_log_entry(joined(query, folder, str(number)), storage):
            return f"its file query/{folder}/{number} is damaged"
    # A batch that was logged but not committed comes again; more than one means that commits were lost.
    if offset - (-1 if commit is None else commit) > 1:
        return f"query/commits ends at {commit}, but query/offsets at {offset}"
    return None if commit is None else _check_state(joined(query, "state"), later_stages, width, commit + 1, storage)


def newest_entry(folder: str, storage: Storage = LOCAL) -> int | None:
    """The number of the newest entry of one of Spark's logs; None if there is none."""
    try:
        return max((int(name) for name in storage.sizes(folder) if name.isdigit()), default=None)
    except OSError:
        return None


def _is_log_entry(path: str, storage: Storage) -> bool:
    """A version, then lines of JSON or ``-``."""
    try:
        version, *lines = storage.read(path).decode().splitlines()
        for line in lines:
            if line != "-":
                json.loads(line)
        return version.startswith("v") and bool(lines)
    except (OSError, ValueError):
        return False


def _check_state(state: str, later_stages: int, width: int, version: int, storage: Storage) -> str | None:
    for operator in range(later_stages):
        for partition in range(width):
            place = joined(state, str(operator), str(partition))
            short = f"query/state/{operator}/{partition}"
            if not storage.is_folder(place):
                return f"its state directory {short} is missing"
            files = storage.sizes(place)
            newest = [name for name in files if name.startswith((f"{version}.", f"{version}_"))]
            if not newest:
                return f"version {version} of the state in {short} is missing"
            if not any(files[name] for name in newest):
                return f"version {version} of the state in {short} is damaged: {newest[0]} is empty"
    return None
