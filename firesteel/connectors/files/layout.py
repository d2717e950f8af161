"""Where the parts of a sink are before and after they are committed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from firesteel.filesystems import FileSystem, joined

__all__ = ["COPY", "HIDDEN", "Layout"]

HIDDEN = ".inprogress"
COPY = ".recovered"


class Layout:
    """Paths of parts are relative to the sink's folder; ``prefix`` is chosen by the sink.

    On a file system with folders a part is hidden beside its visible name, for only there renaming is sure to be one
    step. In an object store a name is as good as any other, and listing is what costs: hidden parts are below one name.

    >>> from firesteel.filesystems import LOCAL
    >>> Layout("/out", "fs-1", LOCAL).hidden("2024-01-01/part-0.txt")
    '/out/2024-01-01/.part-0.txt.inprogress'
    """

    def __init__(self, base: str, prefix: str, files: FileSystem) -> None:
        self.base, self.files = base, files
        self._prefix = prefix
        self._staging = joined(base, f".{prefix}")

    def final(self, path: str) -> str:
        """The name by which readers see a part."""
        return joined(self.base, path)

    def hidden(self, path: str) -> str:
        """Where a part is until it is committed."""
        if not self.files.appends:
            return joined(self._staging, path)
        folder, name = os.path.split(path)
        return os.path.join(self.base, folder, f".{name}{HIDDEN}")

    def hidden_parts(self) -> Iterator[str]:
        """The parts of this sink, by their visible names, that are hidden or half recovered."""
        if not self.files.appends:
            yield from (path[len(self._staging) + 1 :] for path in self.files.names(self._staging))
            return
        for path in self.files.names(self.base):
            folder, name = os.path.split(path)
            if name.startswith(".") and name.endswith((HIDDEN, COPY)) and f"-{self._prefix}-" in name:
                final = name[1:].removesuffix(HIDDEN).removesuffix(COPY)
                yield os.path.relpath(os.path.join(folder, final), self.base)

    def clean_up(self) -> None:
        """Nothing is hidden any more."""
        if not self.files.appends:
            self.files.delete(self._staging)
