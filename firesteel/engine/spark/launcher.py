"""What Spark runs as its Python: asks the fork server for a process, or becomes the interpreter.

Imported by an interpreter without site packages: see :mod:`firesteel.engine.spark.fork_server`.
"""

import os
import signal
import socket
import struct

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS_TO_END = 1.0
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
    # What comes now is for the process that there will be.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    answer = _order(line, arguments)
    if answer:
        process, _, code = answer.partition(b"\n")

        def pass_on(number: int, frame: object) -> None:
            # Spark ends its daemons twice, by a signal and by the end of their input. The second one would reach them
            # while they remove their files, so it has to wait.
            line.settimeout(_SECONDS_TO_END)
            try:
                while line.recv(32):
                    pass
            except OSError:
                os.kill(int(process), number)
            finally:
                os._exit(128 + number)

        for number in _PASSED_ON:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    if answer:
        # The line ends without an exit code if the process was killed.
        while more := line.recv(32):
            code += more
        os._exit(int(code or b"1"))


def _order(line: socket.socket, arguments: list[str]) -> bytes:
    """What the server answers: the number of the new process, and maybe its exit code already. Nothing if it cannot."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    order = "\0".join([os.getcwd(), str(len(arguments)), *arguments, *variables]).encode(errors="surrogateescape")
    answer = b""
    try:
        socket.send_fds(line, [len(order).to_bytes(4, "big")], [0, 1, 2])
        line.sendall(order)
        while b"\n" not in answer:
            more = line.recv(32)
            if not more:
                return b""
            answer += more
    except OSError:
        return b""
    return answer
