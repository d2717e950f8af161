"""Commands exactly once: those of a batch and a marker in one transaction.

Redis does not roll back: of the commands of a transaction it does those that it can. So the marker has the number of
the batch and which of its commands were refused. Commands are called by a script that adds each to the marker that is
refused, so no crash can come between a refusal and its mark. A batch that comes again sends what was refused, and
nothing else.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.errors import ConnectorError, FailureKind, ProgramError, short_repr

__all__ = ["Marker", "check_command", "send_once"]

_ATTEMPT = (
    "local replies, at = {}, 1 "
    "while at < #ARGV do "
    "local last = at + 1 + ARGV[at + 1] "
    "local reply = redis.pcall(unpack(ARGV, at + 2, last)) "
    "if type(reply) == 'table' and reply.err then redis.call('APPEND', KEYS[1], ' ' .. ARGV[at]) end "
    "replies[#replies + 1] = reply "
    "at = last + 1 "
    "end "
    "return replies"
)
"""Calls commands, each given as its index, the number of its parts and the parts; notes the index in the marker if it
is refused."""
_ATTEMPT_SHA = hashlib.sha1(_ATTEMPT.encode(), usedforsecurity=False).hexdigest()

_AT_ONCE = 100
"""Commands that are called together: to send and to start a script costs more than a command itself."""
_MOST_PARTS = 5000
"""A script takes somewhat less than 8,000 arguments apart at once."""
_NOT_IN_SCRIPTS = frozenset(("EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO"))


@dataclass(frozen=True)
class Marker:
    """What the server has of a sink's batches.

    >>> Marker.parse(b"7"), Marker.parse(b"8 0 12")
    (Marker(number=7, refused=()), Marker(number=8, refused=(0, 12)))
    >>> Marker.parse(b"7").last_complete, Marker.parse(b"8 0 12").last_complete
    (7, 7)
    """

    number: int
    refused: tuple[int, ...] = ()

    @staticmethod
    def parse(text: bytes) -> Marker:
        number, *refused = map(int, text.split())
        return Marker(number, tuple(refused))

    @property
    def last_complete(self) -> int:
        """The number up to which nothing has to be sent. Numbers of batches grow."""
        return self.number - 1 if self.refused else self.number

    def missing(self, number: int, count: int) -> Sequence[int]:
        """The indices of the commands of a batch that are still to be sent."""
        if number > self.number:
            return range(count)
        return self.refused if number == self.number else ()


def check_command(command: tuple[Any, ...]) -> None:
    """Refuses what a script cannot call."""
    if command[0].upper() in _NOT_IN_SCRIPTS:
        raise ProgramError(
            f"{command[0]} cannot be sent exactly once: the commands of a batch are called by a script, and a script "
            "calls no other one. Make its effect of plain commands, or use DeliveryGuarantee.AT_LEAST_ONCE."
        )
    if len(command) > _MOST_PARTS:
        raise ProgramError(
            f"A command that is sent exactly once has up to {_MOST_PARTS} parts; {command[0]} has {len(command)}. "
            "Return a list of several commands."
        )


def send_once(client: Any, key: str, number: int, commands: list[tuple[Any, ...]]) -> list[tuple[Any, Any]]:
    """Sends the commands of a batch that were not done before. Returns them with the replies."""
    with client.pipeline(transaction=True) as pipeline:
        # Somebody else who writes the marker, such as a driver that was thought dead, makes the transaction fail.
        pipeline.watch(key)
        found = pipeline.get(key)
        try:
            missing = range(len(commands)) if found is None else Marker.parse(found).missing(number, len(commands))
        except ValueError:
            # What was done cannot be known any more, so nothing is sent.
            raise ConnectorError(
                f"The key {key!r} should have the number of the last batch that was sent, and has "
                f"{short_repr(found, 80)}: somebody else has written it. Give the sink a key of its own.",
                kind=FailureKind.PERMANENT,
            ) from None
        if not missing:
            return []
        pipeline.multi()
        # Within the transaction: a server that was started anew meanwhile does not know it.
        pipeline.script_load(_ATTEMPT)
        pipeline.set(key, number)
        # Changes nothing. A user without the right to it is refused here, and with it the whole transaction: the script
        # could not note which commands were refused.
        pipeline.append(key, "")
        groups = [missing[first : first + _AT_ONCE] for first in range(0, len(missing), _AT_ONCE)]
        for group in groups:
            calls = [(index, len(commands[index]), *commands[index]) for index in group]
            pipeline.evalsha(_ATTEMPT_SHA, 1, key, *itertools.chain.from_iterable(calls))
        answers = pipeline.execute(raise_on_error=False)[3:]
    return [
        (commands[index], reply)
        for group, answer in zip(groups, answers, strict=True)
        # Where the script itself was refused, each of its commands was.
        for index, reply in zip(group, answer if isinstance(answer, list) else [answer] * len(group), strict=True)
    ]
