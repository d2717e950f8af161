"""The hidden file that says how much of each part in progress is valid."""

from __future__ import annotations

import json
import os

from firesteel.common.private_files import replace_file, sync_folder
from firesteel.connectors.files.parts import InProgress
from firesteel.durable.versions import LEDGER

__all__ = ["Ledger"]


class Ledger:
    """One sink's. The committer writes it, once per batch at most; writers read it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(folder, "fs-1")
    ...     ledger.write({"a": InProgress("a", subtask=0, writer="w", length=10)})
    ...     Ledger(folder, "fs-1").read()["a"].length
    ...     ledger.write({})
    ...     os.listdir(folder)
    10
    []
    """

    def __init__(self, base: str, prefix: str) -> None:
        self._base = base
        self._path = os.path.join(base, f".{prefix}.ledger")

    def read(self) -> dict[str, InProgress]:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        # A list is version 1; a later version says which it is.
        LEDGER.check(1 if isinstance(found, list) else found.get("format"), self._path)
        return {entry["path"]: InProgress(**entry) for entry in found}

    def write(self, known: dict[str, InProgress]) -> None:
        if known:
            content = json.dumps([vars(one) for one in known.values()]).encode()
            replace_file(self._path, content, durable=True, private=False)
        elif os.path.exists(self._path):
            os.remove(self._path)
            sync_folder(self._base)
