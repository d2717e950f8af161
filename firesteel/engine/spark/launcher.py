"""What Spark runs as its Python: asks the fork server for a process, or becomes the interpreter.

Imported by an interpreter without site packages: see :mod:`firesteel.engine.spark.fork_server`.
"""

import os
import signal
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def main(folder: str, python: str, arguments: list[str]) -> None:
    if arguments[:1] == ["-m"]:
        line = _connect(folder)
        if line is not None:
            _stand_for(line, arguments[1:])
    os.execvp(python, [python, *arguments])


def _connect(folder: str) -> socket.socket | None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        line.connect(f"/proc/self/fd/{descriptor}/fork")
        os.close(descriptor)
        _, user, _ = _CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if user == os.geteuid():
            return line
    except (OSError, AttributeError):
        pass
    line.close()
    return None


def _stand_for(line: socket.socket, arguments: list[str]) -> None:
    """Lives for as long as the process that the server forks. Comes back if there is none."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    request = "\0".join([os.getcwd(), str(len(arguments)), *arguments, *variables])
    message = request.encode(errors="surrogateescape")
    try:
        socket.send_fds(line, [len(message).to_bytes(4, "big")], [0, 1, 2])
        line.sendall(message)
        answers = line.makefile("rb")
        process = int(answers.readline() or b"0")
    except OSError:
        return
    if not process:
        return

    def pass_on(number: int, frame: object) -> None:
        try:
            os.kill(process, number)
        finally:
            os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    # Its exit code; the line ends without one if it was killed.
    os._exit(int(answers.readline() or b"1"))
