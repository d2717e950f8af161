"""Windows of a key that may become one: which of them are there, and under whose token each keeps its contents.

When two windows merge, the contents of the first stay where they are and the others' are moved to them, so a window's
contents may lie under the token of a window that exists no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.window import MergingWindowAssigner
from firesteel.runtime.windowing.namespaces import pack, unpack

__all__ = ["NOWHERE", "MergingWindows", "OnMerge"]

NOWHERE = object()
"""The place of the contents of a window that there is not."""

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Of the merged window, the windows it is made of, the token its contents stay under, the tokens they come from."""


class _Callback(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self) -> None:
        self.merges: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Any, merge_result: Any) -> None:
        self.merges.append((list(to_be_merged), merge_result))


class MergingWindows:
    """The windows of one key.

    ``stored`` is the state itself: token of a window → token under which its contents are. Whoever changes it marks
    the key as changed.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], places: dict[Any, Any]) -> None:
        self._assigner = assigner
        self.stored = places

    def place(self, token: Any) -> Any:
        """The token under which a window's contents are, or NOWHERE."""
        return self.stored.get(token, NOWHERE)

    def successor(self, token: Any) -> Any:
        """Which window another one has become part of is not known: it has no timers left."""
        return None

    def retire(self, token: Any) -> None:
        self.stored.pop(token, None)

    def beside(self, token: Any) -> list[Any]:
        """Only the assigner knows which windows it would merge with a window."""
        return []

    def touched(self, token: Any) -> list[Any]:
        """The tokens under which there is state that a record of a new window may need."""
        return [*self.stored, *self.stored.values()]

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Adds a window and merges what must be merged. Returns the window that the new one is now part of."""
        callback = _Callback()
        present = [unpack(token) for token in self.stored]
        self._assigner.merge_windows([*present, window], callback)
        result = window
        new = True
        for merged, merge_result in callback.merges:
            part = window in merged
            if part:
                new = False
                result = merge_result
            old = [one for one in merged if pack(one) in self.stored]
            if not old:
                # The new window is the same as its merger.
                new = new or part
                continue
            tokens = [self.stored.pop(pack(one)) for one in old]
            stay = tokens[0]
            self.stored[pack(merge_result)] = stay
            # A window that swallows the new one without changing has nothing to tell.
            if not (len(old) == 1 and old[0] == merge_result):
                on_merge(merge_result, old, stay, tokens[1:])
        if new:
            # The very window may be there already, with its contents in another place.
            self.stored.setdefault(pack(result), pack(result))
        return result
