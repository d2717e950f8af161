"""What Spark runs as its Python: asks the fork server for a process, or becomes the interpreter.

Imported by an interpreter without site packages: see :mod:`firesteel.engine.spark.fork_server`.
"""

import os
import signal
import socket
import struct

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS_TO_END = 1.0
_OF_LIBRARIES = ("LD_", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_", "MKL_", "ARROW_")
_CREDENTIALS = struct.Struct("3i")


def main(folder: str, python: str, arguments: list[str], started: dict[str, str]) -> None:
    """``started``: the variables that the fork server was started with."""
    if arguments[:1] == ["-m"] and not _differs(started):
        line = _connect(folder)
        if line is not None:
            _stand_for(line, arguments[1:])
    os.execvp(python, [python, *arguments])


def is_decisive(name: str) -> bool:
    """Whether a variable is read when the interpreter or a library is loaded. PYTHON_... are Spark's."""
    if name.startswith("PYTHON"):
        return not name.startswith(("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHON_"))
    return name in ("TZ", "LANG", "LC_ALL") or name.startswith(_OF_LIBRARIES)


def _differs(started: dict[str, str]) -> bool:
    """Whether an interpreter would start in another way than the fork server did."""
    return any(value != started.get(name) for name, value in os.environ.items() if is_decisive(name))


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
            # Spark's JVM ignores Ctrl-C, and what it starts does likewise.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    if answer:
        # The line ends without an exit code if the process was killed.
        while not code.endswith(b"\n") and (more := line.recv(32)):
            code += more
        os._exit(int(code or b"1"))


def _order(line: socket.socket, arguments: list[str]) -> bytes:
    """What the server answers: the number of the new process, and maybe its exit code already. Nothing if it cannot."""
    ignored = ",".join(str(int(number)) for number in _PASSED_ON if signal.getsignal(number) is signal.SIG_IGN)
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    answer = b""
    try:
        parts = [os.getcwd(), ignored, str(len(arguments)), *arguments, *variables]
        order = "\0".join(parts).encode(errors="surrogateescape")
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
