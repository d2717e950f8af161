"""The line between the job manager and a process with an SQL session: a pair of sockets that nobody else can reach.

Each message is a JSON object in a line. Both sides ask and answer:

    {"id": 7, "do": "fetch", "with": {…}}          a question
    {"id": 7, "answer": …}                         its answer
    {"id": 7, "error": {"text": …, "kind": …}}     or why there is none

When one side ends, however, the other one reads the end of the line.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from firesteel.errors import FailureKind, FiresteelError

__all__ = ["LineError", "SqlLine", "TheirError"]

Answer = Callable[[str, dict[str, Any]], Any]


class LineError(FiresteelError):
    """The other side has ended, or does not answer."""

    kind = FailureKind.PASSING

    def __init__(self, message: str, ended: bool = True) -> None:
        super().__init__(message)
        self.ended = ended


class TheirError(FiresteelError):
    """What the other side answered instead."""

    kind = FailureKind.PERMANENT

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("text", "")))
        self.error = error


class SqlLine:
    """One end."""

    def __init__(
        self,
        connection: socket.socket,
        answer: Answer,
        describe: Callable[[BaseException], dict[str, Any]],
        beside: Callable[[Callable[[], None]], Any] = lambda action: action(),
    ) -> None:
        """``describe`` makes of an exception what the other side may know of it; ``beside`` runs what answers a
        question, here or in another thread."""
        self._connection, self._answer, self._describe, self._beside = connection, answer, describe, beside
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._asked: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._over = False

    def ask(self, what: str, seconds: float, **arguments: Any) -> Any:
        """The answer to a question. A TheirError says why there is none, a LineError that nobody answers."""
        number, answer = next(self._numbers), Future[Any]()
        with self._lock:
            if self._over:
                raise LineError("The other side has ended.")
            self._asked[number] = answer
        try:
            self._send({"id": number, "do": what, "with": arguments})
            return answer.result(seconds)
        except NotInTime:
            raise LineError(f"There was no answer within {seconds:.0f} s.", ended=False) from None
        finally:
            with self._lock:
                self._asked.pop(number, None)

    def serve(self) -> None:
        """Reads until the other side has ended."""
        try:
            with self._connection.makefile("rb") as lines:
                for line in lines:
                    self._take(json.loads(line))
        except (OSError, ValueError):
            # It ended in the middle of a message.
            pass
        finally:
            with self._lock:
                self._over = True
                left = list(self._asked.values())
            for answer in left:
                if not answer.done():
                    answer.set_exception(LineError("The other side has ended."))

    def _take(self, message: dict[str, Any]) -> None:
        if "do" in message:
            self._beside(lambda: self._reply(message))
            return
        with self._lock:
            answer = self._asked.get(message["id"])
        if answer is None or answer.done():
            # Whoever asked has not waited for it.
            return
        if "error" in message:
            answer.set_exception(TheirError(message["error"]))
        else:
            answer.set_result(message.get("answer"))

    def _reply(self, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": message["id"]}
        try:
            reply["answer"] = self._answer(message["do"], message["with"])
        except Exception as error:
            reply["error"] = self._describe(error)
        with contextlib.suppress(LineError):
            self._send(reply)

    def _send(self, message: dict[str, Any]) -> None:
        content = json.dumps(message).encode() + b"\n"
        try:
            with self._sending:
                self._connection.sendall(content)
        except OSError:
            raise LineError("The other side has ended.") from None

    def close(self) -> None:
        """The other side reads the end of the line."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
