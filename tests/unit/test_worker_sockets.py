"""The sockets by which fronts hand tasks to hosts: nobody else gets a task run there, or gets a task."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sparkkit import eventually

from firesteel.engine.spark import affinity

pytestmark = pytest.mark.skipif(not affinity.available(), reason="tasks run in the fronts here")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")

PRELUDE = """
import os, pathlib, socket, struct, sys, types
from pyspark.serializers import SpecialLengths
from firesteel.engine.spark import affinity

NOBODY = 65534
ran = sys.argv[1]

def run_task(infile, outfile):
    text = infile.read()[12:].decode()
    with open(ran, "a") as file:
        file.write(f"{text} {'here' if os.getpid() == front_process else 'host'}\\n")

front_process = os.getpid()
worker = types.SimpleNamespace(main=run_task)
affinity.install(worker)
front = worker.main.__self__

def task(text):
    # What the JVM sends: a mark, a length, the partition.
    jvm, mine = socket.socketpair()
    jvm.sendall(struct.pack(">iii", SpecialLengths.START_OF_INIT_MESSAGE, 0, 0) + text.encode())
    jvm.shutdown(socket.SHUT_WR)
    return jvm, mine

def send(text):
    jvm, mine = task(text)
    worker.main(os.fdopen(os.dup(mine.fileno()), "rb"), os.fdopen(os.dup(mine.fileno()), "wb"))

def in_child(action):
    # As another user, and to its end.
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

def addresses():
    # All that a look around shows: abstract names for everybody, paths of sockets.
    names = [line.split()[-1] for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]]
    for name in names:
        if f"firesteel-{os.getpid()}" in name:
            yield name.replace("@", "\\0", 1)
    folder = getattr(front, "folder", None)
    if folder is not None:
        yield from (str(folder / f"host-{n}") for n in range(3))

def attack(found):
    os.setgroups([]); os.setgid(NOBODY); os.setuid(NOBODY)
    for address in found:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(address)
                jvm, mine = task("attack")
                socket.send_fds(line, [b"t"], [mine.fileno()])
                mine.close()
                line.settimeout(30)
                line.recv(1)
        except OSError:
            pass
"""


def scenario(tmp_path: Path, text: str, ends_with: int = 0) -> list[str]:
    """Runs a program, and returns which tasks ran where."""
    ran = tmp_path / "ran"
    ran.touch()
    said = tmp_path / "said"
    # Not through a pipe: hosts hold it open for a moment longer.
    with said.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(text), str(ran)],
            stdout=output,
            stderr=output,
            timeout=300,
            check=False,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
    assert done.returncode == ends_with, said.read_text()
    return ran.read_text().splitlines()


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (
            "os.kill(os.getpid(), 9)",
            r"was killed by SIGKILL in the middle of a batch \(the system does that when memory",
        ),
        ("os.kill(os.getpid(), 15)", r"was killed by SIGTERM in the middle of a batch$"),
        ("os.kill(os.getpid(), 11)", r"was killed by SIGSEGV in the middle of a batch: native code in it crashed$"),
        ("os._exit(3)", r"ended in the middle of a batch with exit code 3$"),
    ],
)
def test_it_is_said_how_a_process_ended(ending: str, text: str, tmp_path: Path) -> None:
    """A task that does not return: its host is gone, and only the host's parent learns why."""
    scenario(
        tmp_path,
        f"""
        def ends(infile, outfile):
            with open(ran, "w") as file:
                file.write(str(os.getpid()))
            {ending}

        front._main = ends
        send("task")
        """,
        ends_with=1,
    )
    process = (tmp_path / "ran").read_text()
    said = (tmp_path / "said").read_text()
    assert re.search(rf"^the Python process {process} of subtask 0 {text}", said, re.MULTILINE), said


def left_in(tmp_path: Path) -> list[Path]:
    """What a scenario has left in its folder for temporary files."""
    return list((tmp_path / f"firesteel-{os.getuid()}").iterdir())


@as_root
def test_another_user_runs_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ran = scenario(
        tmp_path,
        """
        send("first")
        found = list(addresses())
        assert found
        in_child(lambda: attack(found))
        send("second")
        """,
    )
    assert ran == ["first host", "second host"]


@as_root
def test_another_user_runs_nothing_even_if_the_folder_is_open(tmp_path: Path) -> None:
    """The peer is checked, too: what if somebody changes the folder's mode?"""
    ran = scenario(
        tmp_path,
        """
        send("first")
        front.folder.chmod(0o755)
        (front.folder / "host-0").chmod(0o777)
        in_child(lambda: attack([front.address("host-0")]))
        send("second")
        """,
    )
    assert ran == ["first host", "second host"]


@as_root
def test_a_name_that_another_user_listens_at_is_not_trusted(tmp_path: Path) -> None:
    ran = scenario(
        tmp_path,
        """
        planted = socket.socket(socket.AF_UNIX)
        planted.bind(front.address("host-0"))
        ready, told = os.pipe()
        if os.fork() == 0:
            # The kernel notes who listens when they begin to.
            os.setgroups([]); os.setgid(NOBODY); os.setuid(NOBODY)
            planted.listen()
            os.write(told, b"1")
            line, _ = planted.accept()
            got, descriptors, *_ = socket.recv_fds(line, 1, 1)
            os.write(told, b"stolen" if descriptors else b"empty")
            os._exit(0)
        os.read(ready, 1)
        planted.close()
        send("mine")
        assert os.read(ready, 10) == b"empty"
        """,
    )
    assert ran == ["mine host"]


def test_names_are_in_a_folder_of_the_owner_alone_which_goes_with_it(tmp_path: Path) -> None:
    ran = scenario(
        tmp_path,
        """
        send("one")
        assert front.folder.stat().st_mode & 0o777 == 0o700
        assert pathlib.Path(os.environ["TMPDIR"]) in front.folder.parents
        """,
    )
    assert ran == ["one host"]
    assert left_in(tmp_path) == []


def test_nothing_stays_if_the_parent_of_all_is_killed(tmp_path: Path) -> None:
    """What removes the folder then are the hosts."""
    ran = scenario(
        tmp_path,
        """
        import signal
        send("one")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        ends_with=-9,
    )
    assert ran == ["one host"]
    assert eventually(lambda: not left_in(tmp_path))


def test_a_task_that_comes_in_pieces_by_tcp_does_not_wait() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        jvm = socket.create_connection(server.getsockname())
        line, _ = server.accept()
        with jvm, line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            jvm.sendall(affinity._HEAD.pack(affinity._START_OF_INIT, 4, 3))
            assert affinity._peek_partition(line.fileno()) == 3
            assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
            # Nothing was read.
            assert len(line.recv(100)) == affinity._HEAD.size


def test_a_task_by_a_socket_of_the_file_system() -> None:
    jvm, line = socket.socketpair()
    with jvm, line:
        jvm.sendall(affinity._HEAD.pack(affinity._START_OF_INIT, 4, 7))
        assert affinity._peek_partition(line.fileno()) == 7
