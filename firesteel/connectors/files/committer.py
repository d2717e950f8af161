"""Makes part files visible, and brings those to an end whose writer is gone."""

from __future__ import annotations

import os
from typing import Any

from firesteel.common.private_files import sync_folder
from firesteel.connectors.files.compacting import Compaction, CompactionSettings
from firesteel.connectors.files.layout import COPY, Layout
from firesteel.connectors.files.ledger import Ledger
from firesteel.connectors.files.parts import Finished, InProgress
from firesteel.datastream.connectors.base import Committer, CommitterContext

__all__ = ["FileCommitter"]

BLOCK = 1 << 20


class FileCommitter(Committer):
    """Steps 3 and 5 of :mod:`firesteel.connectors.files`."""

    def __init__(
        self,
        base: str,
        context: CommitterContext,
        compaction: CompactionSettings | None = None,
        idle_seconds: float = 60.0,
    ) -> None:
        self._context = context
        self._layout = Layout(base, context.name_prefix(), context.file_system(base))
        self._files = self._layout.files
        self._ledger = Ledger(base, context.name_prefix())
        self._known: dict[str, InProgress] = {}
        if self._files.appends:
            os.makedirs(base, exist_ok=True)
            self._known = self._ledger.read()
        self._compaction = Compaction(self._layout, context.name_prefix(), compaction, idle_seconds)

    # Live

    def commit(self, committables: list[Any]) -> None:
        known = dict(self._known)
        if self._compaction.on:
            finished = [one.path for one in committables if isinstance(one, Finished)]
            self._compaction.add(finished, self._context.checkpoint_id())
        for one in committables:
            if isinstance(one, Finished):
                if not self._compaction.on:
                    self._show(one.path, must=True)
                known.pop(one.path, None)
            else:
                known[one.path] = one
        # A subtask has one writer. Parts of an earlier one have no future.
        writers = {one.subtask: one.writer for one in committables}
        for path, one in list(known.items()):
            if writers.get(one.subtask, one.writer) != one.writer:
                self._close_part(path, one.length)
                del known[path]
        self._note(known)

    def _show(self, path: str, must: bool = False) -> None:
        """Safe to repeat at any point: as long as the hidden file is there it is complete, and the visible one is, too,
        once it is there."""
        hidden, final = self._layout.hidden(path), self._layout.final(path)
        if self._files.exists(hidden):
            self._files.move(hidden, final)
        elif must and not self._files.exists(final):
            raise FileNotFoundError(f"The finished part file {hidden} is gone, and {final} is not there either.")

    def unseen_buckets(self) -> set[str]:
        """The buckets with parts that readers do not see yet: in progress, or waiting for compaction."""
        return {os.path.dirname(path) for path in self._known} | self._compaction.buckets()

    # After a failure, and at the end

    def recover(self, pending: list[Any]) -> None:
        self._compaction.finish()
        finished = {one.path for one in pending if isinstance(one, Finished)}
        valid = {path: one.length for path, one in self._known.items()}
        valid |= {one.path: one.length for one in pending if isinstance(one, InProgress)}
        found = set(self._layout.hidden_parts())
        for path in found | (valid.keys() - finished):
            if path not in finished:
                self._close_part(path, valid.get(path, 0))
        self._note({})
        if not finished:
            self._layout.clean_up()

    def recover_and_commit(self, committables: list[Any]) -> None:
        # Those in progress have been closed by ``recover``. A finished one that is neither hidden nor visible was
        # committed before, and somebody has taken it away.
        for one in committables:
            if isinstance(one, Finished):
                self._show(one.path)

    def abort(self, committables: list[Any]) -> None:
        """Nothing is left to do: ``recover`` has deleted, or cut off, what no logged batch knows of."""

    def close(self) -> None:
        self._compaction.close()

    def _close_part(self, path: str, length: int) -> None:
        """The valid beginning of a part becomes a visible file, the rest of it goes. Safe to repeat at any point:
        as long as the hidden file is there the copy may be incomplete, and once it is gone the copy is good."""
        hidden, final = self._layout.hidden(path), self._layout.final(path)
        if not self._files.appends:
            # Complete, but no batch that counts has it.
            self._files.delete(hidden)
            return
        copy = os.path.join(os.path.dirname(final), f".{os.path.basename(final)}{COPY}")
        if os.path.exists(hidden):
            if length:
                _copy(hidden, copy, length)
            os.remove(hidden)
        if os.path.exists(copy):
            if length:
                os.rename(copy, final)
            else:
                os.remove(copy)
        if os.path.isdir(os.path.dirname(final)):
            sync_folder(os.path.dirname(final))

    def _note(self, known: dict[str, InProgress]) -> None:
        if known != self._known:
            self._ledger.write(known)
            self._known = known


def _copy(source: str, target: str, length: int) -> None:
    with open(source, "rb") as reading, open(target, "wb") as writing:
        left = length
        while left:
            block = reading.read(min(BLOCK, left))
            if not block:
                raise OSError(f"The part file {source} should have {length} valid bytes, but has {length - left}.")
            writing.write(block)
            left -= len(block)
        writing.flush()
        os.fsync(writing.fileno())
