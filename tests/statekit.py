"""A state server like Spark's, for tests of its client: it takes requests and answers them, and keeps nothing."""

from __future__ import annotations

import contextlib
import socket
import threading

from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

__all__ = ["StateServer"]


class StateServer:
    """Takes requests, and answers when it is told to: the n-th one with an error where that is wanted."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self.states: list[str] = []
        """What the client said of itself: the states that its requests named."""
        self.refused: str | None = None
        self.answering = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # The test may be over before anybody was let in.
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as line:
            waiting = 0
            while head := line.read(8):
                request = messages.StateRequest.FromString(line.read(int.from_bytes(head[4:], "big")))
                part = getattr(request, request.WhichOneof("method"))
                self.requests.append(part.WhichOneof("method"))
                if self.requests[-1] == "setHandleState":
                    self.states.append(messages.HandleState.Name(part.setHandleState.state))
                waiting += 1
                # Those that ask for something come after those that do not: only then answers are sent.
                if not self.answering.is_set() and self.requests[-1] != "mapStateCall":
                    continue
                for place in range(len(self.requests) - waiting, len(self.requests)):
                    wrong = self.requests[place] == self.refused
                    answer = messages.StateResponse(statusCode=int(wrong), errorMessage="no" if wrong else "")
                    sent = answer.SerializeToString()
                    line.write(len(sent).to_bytes(4, "big") + sent)
                waiting = 0
                line.flush()

    def close(self) -> None:
        self._listener.close()
