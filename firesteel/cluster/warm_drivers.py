"""The drivers of a job manager that wait for a job: Spark runs in them, so a job that is given to one begins at once.

* So many are kept as were asked for, but not more than there are free slots, and none where memory is short. The next
  one is started a while after a job was, so that it does not take the processor from that.
* One that has waited for long ends. Then there is none until another job was started.
* A job whose settings need another JVM gets a driver of its own. That is decided here by the settings that the program
  has in effect, and once more, exactly, in the driver (:mod:`firesteel.engine.spark.warm_spark`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from firesteel.cluster.driver_environment import driver_environment
from firesteel.cluster.masking import MASK
from firesteel.cluster.processes import Process, end_session
from firesteel.common.default_configuration import default_configuration
from firesteel.common.process_environment import SETTINGS, WARM_DRIVER
from firesteel.common.secret import is_secret_key

__all__ = ["WarmDriver", "WarmDrivers", "other_jvm"]

logger = logging.getLogger("firesteel.cluster")

SECONDS_TO_TAKE = 10.0
"""How long a driver may take to say that it has got its job."""
SECONDS_TO_START = 180.0
SECONDS_TO_END = 5.0
SECONDS_AFTER_A_JOB = 10.0
"""How long a job that has just been started has the machine for itself."""
LONGEST_PAUSE = 600.0
MEMORY = 2 << 30
"""With less that is free no driver is started ahead: one takes about half of it."""
_WORDS = 2000


class WarmDriver:
    """One process, from its start until it is given away or ended."""

    def __init__(self, command: list[str] | None = None) -> None:
        """``command``: another program than a driver, for tests."""
        self._line, theirs = socket.socketpair()
        self.output, writing = os.pipe()
        """What it prints waits here until there is a log to write it to."""
        os.set_blocking(self.output, False)
        inherited = {SETTINGS: os.environ[SETTINGS]} if os.environ.get(SETTINGS) else {}
        try:
            child = subprocess.Popen(
                command or [sys.executable, "-m", "firesteel.cluster.warm_driver"],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.STDOUT,
                env={**driver_environment(), **inherited, WARM_DRIVER: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(writing)
        self.process = Process.of(child.pid)
        # As for every driver: its end is taken by Process.reap.
        child.returncode = 0
        self.started = time.monotonic()
        self.ready: float | None = None
        """Since when it waits."""
        self.failed: str | None = None
        self.unsuited = False
        """Whether another one would fail likewise."""
        self._received = b""

    def look(self) -> None:
        """Takes notice of what it has said."""
        for message in self._messages(0.0):
            if "ready" in message:
                self.ready = time.monotonic()
            elif "failed" in message:
                self.failed, self.unsuited = str(message["failed"]), bool(message.get("unsuited"))

    def _messages(self, seconds: float) -> list[dict[str, Any]]:
        """What has come; waits so long for the first of it. Nothing where the line is over."""
        watched = select.poll()
        watched.register(self._line, select.POLLIN)
        while b"\n" not in self._received and watched.poll(seconds * 1000):
            try:
                more = self._line.recv(1 << 16)
            except OSError:
                break
            if not more:
                break
            self._received += more
        *lines, self._received = self._received.split(b"\n")
        return [json.loads(line) for line in lines]

    def words(self) -> str:
        """What it has printed since the last time, as far as it is not in a log."""
        text = b""
        with contextlib.suppress(OSError):
            while more := os.read(self.output, 1 << 16):
                text = (text + more)[-_WORDS:]
        return text.decode(errors="replace").strip()

    def hand_over(self, assignment: str, settings: str) -> bool:
        """Makes it the driver of a job; says whether it is. If not, it is no more, and has done nothing for the job."""
        taken = self._instruct({"assignment": assignment, "settings": settings})
        self._close()
        return taken

    def become_session(self, settings: str) -> socket.socket | None:
        """Makes it the process of an SQL session, which listens on the line that is returned. None where it does not,
        and is no more."""
        line = None
        if self._instruct({"session": True, "settings": settings}):
            line = self._line.dup()
            line.settimeout(None)
        self._close()
        return line

    def _instruct(self, message: Mapping[str, Any]) -> bool:
        """
        1. It says ``taken`` before it begins. That stays readable when it dies, so without it it has not begun.
        2. Without it all its processes are killed: then it will not begin either.
        3. What it said in between is read once more.
        """
        try:
            # One that stands still does not read.
            self._line.settimeout(SECONDS_TO_TAKE)
            self._line.sendall(json.dumps(message).encode() + b"\n")
            taken = self._taken(SECONDS_TO_TAKE)
        except OSError:
            taken = False
        if not taken:
            end_session(self.process)
            taken = self._taken(0.0)
        if not taken:
            logger.warning("a warm driver (process %d) did not take its job: another one is started", self.process.pid)
            self.process.reap()
        return taken

    def _taken(self, seconds: float) -> bool:
        return any("taken" in message for message in self._messages(seconds))

    def end(self) -> None:
        """Ends it: by itself if it waits, so that it leaves no files behind."""
        self._close()
        if self.ready is None or not self.process.wait(SECONDS_TO_END):
            end_session(self.process)
        self.process.reap()
        # Its workers, if it was killed.
        end_session(self.process)

    def _close(self) -> None:
        self._line.close()
        if self.output >= 0:
            os.close(self.output)
            self.output = -1


class WarmDrivers:
    """All of one job manager."""

    def __init__(
        self,
        count: int,
        idle_seconds: float,
        start: Callable[[], WarmDriver] = WarmDriver,
        free_memory: Callable[[], int] | None = None,
    ) -> None:
        self.count, self._idle_seconds = count, idle_seconds
        self._start, self._free_memory = start, free_memory or _free_memory
        self._lock, self._tending = threading.Lock(), threading.Lock()
        self._drivers: list[WarmDriver] = []
        self._not_before = 0.0
        self._resting = False
        """Whether they have waited long enough for a job."""
        self._failures = 0
        self._short_of_memory = False
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many a job could have now."""
        with self._lock:
            return sum(driver.ready is not None for driver in self._drivers)

    def tend(self, free_slots: int) -> None:
        """Called again and again: starts what is missing, and ends what has waited for long. One that is there stays
        when the last slot is taken: the job that takes it may be about to have it."""
        if self._tending.acquire(blocking=False):
            try:
                self._tend(free_slots)
            finally:
                self._tending.release()

    def _tend(self, free_slots: int) -> None:
        if self.count and not _jobs_run_here():
            # A driver would find that out as well, once it has loaded Spark.
            self.count = 0
            logger.info("no driver is started ahead: jobs run elsewhere, by the setting firesteel.master")
        now = time.monotonic()
        with self._lock:
            gone = [(driver, why) for driver in self._drivers if (why := self._reason_to_end(driver, now)) is not None]
            for driver, _ in gone:
                self._drivers.remove(driver)
        for driver, why in gone:
            self._end(driver, why)
        with self._lock:
            wanted = 0 if self._closed or self._resting else min(self.count, free_slots)
            if len(self._drivers) < wanted and now >= self._not_before and self._has_memory():
                self._drivers.append(self._start())

    def _reason_to_end(self, driver: WarmDriver, now: float) -> str | None:
        # Before its words are read: what it said last is known then.
        alive = driver.process.alive
        driver.look()
        if driver.failed is not None:
            return driver.failed
        if not alive:
            return "it has ended"
        if driver.ready is None:
            return "it did not get ready" if now - driver.started > SECONDS_TO_START else None
        self._failures = 0
        return "" if self._idle_seconds and now - driver.ready > self._idle_seconds else None

    def _end(self, driver: WarmDriver, why: str) -> None:
        words = driver.words()
        driver.end()
        if not why:
            self._resting = True
            logger.info("a warm driver (process %d) has waited for long and was ended", driver.process.pid)
        elif driver.unsuited:
            self.count = 0
            logger.info("no driver is started ahead: %s", why)
        else:
            self._failures += 1
            pause = min(LONGEST_PAUSE, 10.0 * 2**self._failures)
            self._not_before = time.monotonic() + pause
            said = f" It said: {words}" if words else ""
            logger.warning("a warm driver (process %d) is lost: %s.%s", driver.process.pid, why.rstrip("."), said)

    def _has_memory(self) -> bool:
        enough = self._free_memory() >= MEMORY
        if not enough and not self._short_of_memory:
            logger.info("no driver is started ahead: less than %d GB of memory are free", MEMORY >> 30)
        self._short_of_memory = not enough
        return enough

    def take(self, user: str, configuration: Mapping[str, str]) -> WarmDriver | None:
        """A driver for somebody with these settings in effect (secrets are masked), if there is one that will do."""
        with self._lock:
            self._resting = False
            self._not_before = max(self._not_before, time.monotonic() + SECONDS_AFTER_A_JOB)
            if not self._drivers:
                return None
        names = other_jvm(configuration)
        if names:
            logger.info("%s gets no warm driver, because of its settings %s", user, ", ".join(names))
            return None
        with self._lock:
            for driver in self._drivers:
                driver.look()
                if driver.ready is not None and driver.process.alive:
                    self._drivers.remove(driver)
                    break
            else:
                logger.info("%s gets no warm driver: none is ready", user)
                return None
        words = driver.words()
        if words:
            logger.info("a warm driver (process %d) said before it had a job: %s", driver.process.pid, words)
        logger.info("%s gets a warm driver, process %d", user, driver.process.pid)
        os.set_blocking(driver.output, True)
        return driver

    def close(self) -> None:
        """Ends all of them, and starts none any more."""
        with self._lock:
            self._closed = True
            drivers, self._drivers = self._drivers, []
        for driver in drivers:
            driver.end()


def _free_memory() -> int:
    # Here, not at the top: a supervised job has no warm drivers, and need not have psutil.
    from firesteel.cluster.process_memory import free_memory

    return free_memory()


def other_jvm(configuration: Mapping[str, str]) -> list[str]:
    """The settings for which a program needs another JVM than one that was started without knowing it.

    >>> other_jvm({"spark.driver.memory": "4g", "firesteel.master": "memory", "parallelism.default": "4"})
    ['firesteel.master', 'spark.driver.memory']
    """
    usual = _of_jvm({key: str(value) for key, value in default_configuration().to_dict().items()})
    wanted = _of_jvm(configuration)
    return sorted(key for key in usual.keys() | wanted.keys() if usual.get(key) != wanted.get(key))


def _jobs_run_here() -> bool:
    """Whether those jobs do that say nothing of it."""
    master = default_configuration().get_string("firesteel.master", os.environ.get("FIRESTEEL_MASTER", "auto"))
    return master in ("auto", "local") or master.startswith("local[")


def _of_jvm(settings: Mapping[str, str]) -> dict[str, str]:
    found = {key: value for key, value in settings.items() if key.startswith(("spark.", "firesteel.spark."))}
    found |= {key: MASK for key in found if is_secret_key(key)}
    master = settings.get("firesteel.master", "auto")
    found["firesteel.master"] = f"local[{os.cpu_count() or 1}]" if master in ("auto", "local") else master
    return found
