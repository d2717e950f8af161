"""Messages between driver and coordinator between batches: small files, because Spark starts the coordinator's
process and gives the driver no connection to it.

    file                            written by      says
    coordinator-feedback.json       driver          what is known of the batches so far; it stays with the checkpoint,
                                                    for a driver that is started anew
    coordinator-instructions.json   driver          whether another batch may begin, whether the next one is the last,
                                                    whether the query is about to be stopped
    coordinator-on-hold             coordinator     no batch is under way, and none will begin

Both ends are here. The module is light: every process that Spark starts for a source imports it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from firesteel.common.private_files import make_private_folder, open_private, replace_file
from firesteel.durable.folder import checked_feedback
from firesteel.durable.versions import FEEDBACK as VERSION

if TYPE_CHECKING:
    from firesteel.engine.coordinator import CoordinatorFeedback

__all__ = ["CoordinatorLink", "DriverLink", "feedback_file"]

FEEDBACK = "coordinator-feedback.json"
INSTRUCTIONS = "coordinator-instructions.json"
ON_HOLD = "coordinator-on-hold"

FORMER_FEEDBACK = "control.json"
"""What checkpoints of earlier versions call it."""


def feedback_file(sources: str) -> str:
    """Where the driver's last feedback is, or will be."""
    path, former = os.path.join(sources, FEEDBACK), os.path.join(sources, FORMER_FEEDBACK)
    return former if os.path.exists(former) and not os.path.exists(path) else path


class CoordinatorLink:
    """The driver's end.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> link = CoordinatorLink(folder.name, folder.name)
    >>> link.hold()
    >>> other = DriverLink(folder.name, folder.name)
    >>> other.feedback().hold, link.on_hold
    (True, False)
    >>> other.confirm_hold()
    >>> link.on_hold
    True
    >>> link.resume()
    >>> other.feedback().hold
    False
    >>> link.leave()
    >>> other.feedback().leave
    True
    >>> folder.cleanup()
    """

    def __init__(self, directory: str, sources: str) -> None:
        """``directory`` goes with the job; ``sources`` is where the job's sources keep what must last."""
        make_private_folder(sources)
        self._feedback = os.path.join(sources, FEEDBACK)
        if feedback_file(sources) != self._feedback:
            os.rename(feedback_file(sources), self._feedback)
        self._instructions = os.path.join(directory, INSTRUCTIONS)
        self._on_hold = os.path.join(directory, ON_HOLD)
        self._hold = False
        self._leaving = False
        self.draining = False
        """Whether the coordinator was told to end the job with the next batch."""

    def report(self, feedback: CoordinatorFeedback) -> None:
        """Tells what is known of the batches so far."""
        known = asdict(feedback)
        for instruction in self._written():
            # They are for this driver's coordinator only, not for one that goes on from the checkpoint.
            del known[instruction]
        replace_file(self._feedback, json.dumps({"format": VERSION.version, **known}).encode())

    def _written(self) -> dict[str, bool]:
        return {"hold": self._hold, "drain": self.draining, "leave": self._leaving}

    def instruct(self) -> None:
        """Tells the coordinator whether it may go on."""
        replace_file(self._instructions, json.dumps(self._written()).encode())

    def begin_attempt(self) -> None:
        """For the coordinator of a query that is about to start."""
        self._leaving = False
        self.instruct()

    def leave(self) -> None:
        """The query is about to be stopped, and Spark waits until the coordinator has answered: let that be soon."""
        self._leaving = True
        self.instruct()

    def hold(self) -> None:
        """From now on no batch is to begin. The one under way goes on; ``on_hold`` says when it is done."""
        if os.path.exists(self._on_hold):
            os.remove(self._on_hold)
        self._hold = True
        self.instruct()

    def resume(self) -> None:
        """Batches may begin again."""
        self._hold = False
        self.instruct()

    def drain(self) -> None:
        """The next batch is to be the last one, as if the input ended there."""
        self.draining = True
        self.instruct()

    @property
    def on_hold(self) -> bool:
        """Whether the coordinator has answered ``hold``: no batch is under way, and none will begin."""
        return os.path.exists(self._on_hold)


class DriverLink:
    """The coordinator's end."""

    def __init__(self, directory: str, sources: str) -> None:
        paths = os.path.join(sources, FEEDBACK), os.path.join(directory, INSTRUCTIONS)
        self._seen = dict.fromkeys(paths, (0, 0))
        """By file its number and its time of change when it was read last. Two files may be written within one tick of
        the file system's clock."""
        self._known: dict[str, Any] = {}
        self._on_hold = os.path.join(directory, ON_HOLD)

    def feedback(self) -> CoordinatorFeedback:
        """The driver's last report and instructions. Files are read only when they have changed."""
        from firesteel.engine.coordinator import CoordinatorFeedback

        for path, seen in self._seen.items():
            try:
                info = os.stat(path)
                version = info.st_ino, info.st_mtime_ns
                if version != seen:
                    with open(path, encoding="utf-8") as file:
                        known = json.load(file)
                    self._known.update(checked_feedback(known, path))
                    self._seen[path] = version
            except (OSError, ValueError):
                # Not written yet, or being replaced: the next look will do.
                continue
        return CoordinatorFeedback(**self._known)

    def confirm_hold(self) -> None:
        with open_private(self._on_hold, "w", encoding="utf-8"):
            """That it is there says all."""
