"""Processes that outlive the one that started them: known by number and start, watched by a pidfd, ended as a session.

A number alone is not enough: it is given to another process some time after the first one has ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass

__all__ = ["Process", "end_session", "session_members", "start_of"]


def start_of(pid: int) -> str:
    """What tells this process from any other that had or will have its number: when it was started, in ticks since the
    machine was, and which start of the machine that was. Empty where there is none, or one that has ended already and
    only waits for its parent to notice.

    >>> start_of(os.getpid()) == start_of(os.getpid()) != ""
    True
    >>> start_of(2**22 + 1)
    ''
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The name of the program may hold anything, also blanks and parentheses.
            rest = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return ""
    return "" if rest[0] in "ZX" else f"{boot[:8]}-{rest[19]}"


@dataclass(frozen=True)
class Process:
    """A driver, whoever started it."""

    pid: int
    started: str

    @staticmethod
    def of(pid: int) -> Process:
        return Process(pid, start_of(pid))

    @property
    def alive(self) -> bool:
        return bool(self.started) and start_of(self.pid) == self.started

    def open(self) -> int | None:
        """A descriptor that can be read from when the process has ended; None where it has already."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return None
        # The number may have been given away just before.
        if self.alive:
            return descriptor
        os.close(descriptor)
        return None

    def reap(self) -> int | None:
        """After its end: takes its wait status, if it was a child of this process."""
        if self.pid <= 0:
            # To the system 0 means any child.
            return None
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return status if pid else None
        return None

    def wait(self, seconds: float) -> bool:
        """Waits for its end; says whether it has come."""
        descriptor = self.open()
        if descriptor is None:
            return True
        try:
            watched = select.poll()
            watched.register(descriptor, select.POLLIN)
            return bool(watched.poll(seconds * 1000))
        finally:
            os.close(descriptor)

    def send(self, number: int) -> None:
        """A signal, unless the process has ended."""
        descriptor = self.open()
        if descriptor is not None:
            try:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def session_members(leader: Process) -> list[Process]:
    """All processes of the session that a driver began: its JVM and the Python workers, which have process groups of
    their own. None where another process has the driver's number by now: then the session is long gone, because the
    system does not give away a number that a session still has."""
    if leader.pid <= 0:
        # No process, rather than the session that those have whose leader is outside of this container.
        return []
    now = start_of(leader.pid)
    if now and now != leader.started:
        return []
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            # It may have ended in between.
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == leader.pid:
                    found.append(Process.of(int(name)))
    return [one for one in found if one.started]


def end_session(leader: Process, seconds: float = 5.0) -> int:
    """Kills what is left of a driver's session, and waits so long for its end. Returns how many there were. A driver
    that ends its own session comes last: it could not end the others any more."""
    deadline = time.monotonic() + seconds
    ended: set[Process] = set()
    # Again until nobody is left: one that was killed may have started another one after the list was made.
    while members := session_members(leader):
        for member in sorted(members, key=lambda member: member.pid == os.getpid()):
            member.send(signal.SIGKILL)
        for member in members:
            member.wait(max(0.0, deadline - time.monotonic()))
        ended.update(members)
        if time.monotonic() >= deadline:
            break
    return len(ended)
