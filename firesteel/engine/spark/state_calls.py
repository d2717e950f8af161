"""Answers of the state server that say nothing but "done" are not waited for one by one.

A task of a keyed stage tells Spark's state server seven things that have no other answer: which state it has, for which
key, how far it is. PySpark waits for each answer, and on a busy machine each wait is two turns in the queue for a core.
The server answers in order. So these answers are read together, before the next one that matters, and the last ones
when the task says that it is done: what the server refused fails the task all the same, and Spark commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["defer_answers"]

DEFERRED = ("get_map_state", "set_handle_state", "set_implicit_key", "remove_implicit_key")
RECEIVE = "_receive_proto_message"
DONE: tuple[int, str, bytes] = (0, "", b"")


class _Answers:
    """Stands between the methods of one client and their answers."""

    def __init__(self, client: Any) -> None:
        self._receive: Callable[[], tuple[int, str, bytes]] = getattr(client, RECEIVE)
        self._owed: list[str] = []
        """The calls whose answers were not read yet."""
        self._calling: str | None = None

    def receive(self) -> tuple[int, str, bytes]:
        if self._calling is not None:
            self._owed.append(self._calling)
            return DONE
        self.settle()
        return self._receive()

    def settle(self) -> None:
        while self._owed:
            call = self._owed.pop(0)
            status, error, _ = self._receive()
            if status != 0:
                raise RuntimeError(f"Spark's state server refused {call}: {error}")

    def deferred(self, name: str, call: Callable[..., None], closed: Any) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            self._calling = name
            try:
                call(*arguments)
            finally:
                self._calling = None
            if closed in arguments:
                # Behind this Spark commits what the task has written.
                self.settle()

        return run


def defer_answers(handle: Any) -> bool:
    """For the client of one task; called before anything is asked of it. Returns whether it is a client as expected."""
    client: Any = getattr(handle, "_statefulProcessorApiClient", None)
    wanted = (RECEIVE, *DEFERRED)
    if not all(callable(getattr(client, name, None)) for name in wanted):
        return False
    states = type(client.handle_state)
    if client.handle_state is not getattr(states, "CREATED", None) or not hasattr(states, "CLOSED"):
        # Spark's planning asks for the state's schema with such a client, too.
        return False
    answers = _Answers(client)
    for name in DEFERRED:
        setattr(client, name, answers.deferred(name, getattr(client, name), states.CLOSED))
    setattr(client, RECEIVE, answers.receive)
    return True
