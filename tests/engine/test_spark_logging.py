"""What functions log and print inside Spark's workers: on the driver at once, with operator and subtask."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sparkkit import eventually, spark_env

from firesteel.common import WatermarkStrategy
from firesteel.datastream import MapFunction
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.errors import JobExecutionError


class Shown(io.StringIO):
    """Several threads write to it."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            return super().write(text)


@contextlib.contextmanager
def driver() -> Iterator[Shown]:
    """The driver's standard error, with no log of the program's. Not a fixture: pytest has handlers of its own for each
    phase of a test."""
    text, root = Shown(), logging.getLogger()
    before, sys.stderr, root.handlers = (sys.stderr, root.handlers), text, []
    try:
        yield text
    finally:
        sys.stderr, root.handlers = before


class Noisy(MapFunction):
    def open(self, runtime_context: Any) -> None:
        logging.getLogger("shop").warning("opened")

    def map(self, value: int) -> int:
        logging.getLogger("shop.details").debug("got %d", value)
        if value == 5:
            print("five", "and", "more")
        return value


def test_logs_and_prints_come_with_operator_and_subtask_and_levels_change() -> None:
    env = spark_env(2)
    source = DataGeneratorSource(lambda n: n, 10**9, 500)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % 8).map(Noisy()).name("parse").filter(lambda n: False).print()
    with driver() as shown:
        job: Any = env.execute_async("noisy")
        try:
            assert eventually(lambda: shown.getvalue().count("opened") == 2), shown.getvalue()
            assert eventually(lambda: "five and more" in shown.getvalue())
            text = shown.getvalue()
            assert sorted(re.findall(r"WARNING shop \[(parse ./2)\]: opened\n", text)) == ["parse 1/2", "parse 2/2"]
            assert re.search(r"^\[parse [12]/2\] five and more$", text, re.M)
            assert "got" not in text
            assert job.facade.set_log_level("DEBUG", "shop") == {"shop": "DEBUG"}
            assert eventually(lambda: "got" in shown.getvalue())
            assert re.search(r"DEBUG shop.details \[parse [12]/2\]: got \d+\n", shown.getvalue())
        finally:
            job.cancel().result()
    assert logging.getLogger("shop").level == logging.NOTSET


def fail(value: int) -> int:
    logging.getLogger("shop").error("about to fail")
    raise ValueError("no")


def test_what_was_logged_before_a_failure_is_there() -> None:
    env = spark_env(1)
    env.from_collection([1]).map(fail).name("picky").print()
    with driver() as shown:
        with pytest.raises(JobExecutionError):
            env.execute("failing")
        assert "ERROR shop [picky 1/1]: about to fail\n" in shown.getvalue()
