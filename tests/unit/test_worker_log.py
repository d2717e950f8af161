"""What functions log and print in a worker's process, on its way to the driver."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sparkkit import eventually

from firesteel.engine.spark.lifeline import Lifeline, keep_connection
from firesteel.engine.spark.worker_log import WAITING, WorkerLog


@contextlib.contextmanager
def process() -> Iterator[tuple[WorkerLog, io.StringIO]]:
    """A log and the standard error of its process. This one's own are put back. Not a fixture: pytest has streams and
    handlers of its own for each phase of a test."""
    error = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", error)
        patch.setattr(sys, "stdout", io.StringIO())
        patch.setattr(logging, "lastResort", logging.StreamHandler(error))
        patch.setattr(logging.getLogger(), "handlers", [])
        yield WorkerLog(), error
    for name in ("shop", "shop.details"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def texts(entries: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(entry["name"], entry["message"]) for entry in entries]


def test_logs_and_prints_reach_the_driver_and_levels_the_process() -> None:
    with process() as (log, error):
        got: list[dict[str, Any]] = []
        line = Lifeline("127.0.0.1", logged=got.append)
        log.expect({"shop": "INFO"})
        # Before there is a line, and while there is one.
        logging.getLogger("shop").info("number %d", 1)
        keep_connection(line.address, lambda: ["could not close"], log)
        assert eventually(lambda: texts(got) == [("shop", "number 1")])
        print("a line,", "and", end=" ")
        print("its end\nanother one")
        print("to stderr", file=sys.stderr)
        logging.getLogger("shop.details").debug("nobody asked")
        assert eventually(lambda: len(got) == 4)
        assert texts(got)[1:] == [("stdout", "a line, and its end"), ("stdout", "another one"), ("stderr", "to stderr")]
        line.send(levels={"shop": "DEBUG"})
        assert eventually(lambda: logging.getLogger("shop").level == logging.DEBUG)
        logging.getLogger("shop.details").debug("asked for")
        assert eventually(lambda: texts(got)[-1] == ("shop.details", "asked for"))
        assert error.getvalue() == ""
        assert line.end() == ["could not close"]
        # Where the line is over, what is said stays with the process.
        logging.getLogger("shop").warning("too late")
        print("later still")
        assert error.getvalue() == "WARNING shop: too late\nlater still\n"


def test_a_process_that_comes_later_is_told_the_levels() -> None:
    with process() as (log, _):
        line = Lifeline("127.0.0.1")
        line.send(levels={"shop": "ERROR"})
        log.expect({})
        keep_connection(line.address, list, log)
        assert eventually(lambda: logging.getLogger("shop").level == logging.ERROR)
        line.end()
        # The next job has levels of its own.
        log.expect({})
        assert logging.getLogger("shop").level == logging.NOTSET


def test_without_a_driver_nothing_is_lost() -> None:
    with process() as (log, error):
        nobody = Lifeline("127.0.0.1")
        nobody.end()
        log.expect({})
        logging.getLogger("shop").warning("alone")
        keep_connection(nobody.address, list, log)
        assert eventually(lambda: error.getvalue() == "WARNING shop: alone\n")


def test_what_waits_for_the_line_is_limited() -> None:
    with process() as (log, error):
        log.expect({})
        for number in range(WAITING + 2):
            print(number)
        assert error.getvalue() == f"{WAITING}\n{WAITING + 1}\n"


def test_threads_do_not_mix_their_lines() -> None:
    with process() as (log, _):
        got: list[dict[str, Any]] = []
        line = Lifeline("127.0.0.1", logged=got.append)
        log.expect({})
        keep_connection(line.address, list, log)
        print("begun here", end=" ")
        other = threading.Thread(target=print, args=("whole",))
        other.start()
        other.join()
        print("and ended here")
        assert eventually(lambda: len(got) == 2)
        assert texts(got) == [("stdout", "whole"), ("stdout", "begun here and ended here")]
        line.end()
