"""Jobs without end: cancelling them, processing time without data, sockets, and readers that leave early."""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import AppendSink, descendants, eventually, notes, process_table, spark_env

from firesteel.common import JobStatus, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor

NONE = WatermarkStrategy.no_watermarks()


def endless(env: Any, per_second: float = 100) -> Any:
    return env.from_source(DataGeneratorSource(lambda n: n, records_per_second=per_second), NONE, "numbers")


def sources_running() -> set[int]:
    """The processes that plan the batches of running jobs."""
    return {pid for pid, command in descendants(os.getpid()).items() if "python_streaming_source_runner" in command}


def test_cancel_ends_an_endless_job_and_leaves_no_process_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "firesteel")
    before = sources_running()
    env = spark_env(2)
    endless(env).key_by(lambda n: n % 3).map(lambda n: n).add_sink(AppendSink(tmp_path, "seen"))
    client = env.execute_async("endless")
    assert eventually(lambda: len(notes(tmp_path, "seen")) > 20)
    assert client.get_job_status().result() is JobStatus.RUNNING
    # Spark's page is named where there is one, which is not the default.
    started = r"job 'endless' \([0-9a-f]{32}\) starts in STREAMING mode, parallelism 2, on local\[\d+\]"
    assert [message for message in caplog.messages if re.fullmatch(started, message)], caplog.messages
    running = sources_running() - before
    assert running, "the process that plans batches should be found by its name"
    table = process_table()
    assert [pid for pid in running if "-m firesteel.engine.spark.fork_server" in table[table[pid][0]][1]], (
        "it should be forked from what has imported everything"
    )
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert eventually(lambda: not (sources_running() & running)), "left over"
    seen = len(notes(tmp_path, "seen"))
    time.sleep(1)
    assert len(notes(tmp_path, "seen")) == seen, "nothing runs any longer"


class Later(KeyedProcessFunction):
    """Answers every record after a while of processing time."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 1500)
        yield "record", value, now

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp, ctx.timer_service().current_processing_time()


def test_a_processing_time_timer_fires_although_no_data_comes(tmp_path: Path) -> None:
    """The socket sends one line and then nothing, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            client, _ = server.accept()
            client.sendall(b"only\n")
            held.append(client)

        threading.Thread(target=serve, daemon=True).start()
        env = spark_env(2)
        lines = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
        lines.key_by(lambda line: line).process(Later()).add_sink(AppendSink(tmp_path, "seen"))
        client = env.execute_async("silence")
        assert eventually(lambda: len(notes(tmp_path, "seen")) >= 2)
        client.cancel().result()
        for connection in held:
            connection.close()
    (record,) = [entry for entry in notes(tmp_path, "seen") if entry[0] == "record"]
    ((_, key, due, fired),) = [entry for entry in notes(tmp_path, "seen") if entry[0] == "timer"]
    assert (record[1], key, due) == ("only", "only", record[2] + 1500)
    assert fired >= due


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def test_a_socket_that_breaks_and_comes_back(tmp_path: Path) -> None:
    scripts = [b"a\nb\na\nhalf", b"a\nb\n", b"last\n"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            for number, script in enumerate(scripts):
                client, _ = server.accept()
                with client:
                    client.sendall(script)
                    if number == len(scripts) - 1:
                        done.wait(600)

        threading.Thread(target=serve, daemon=True).start()
        env = spark_env(2)
        lines = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
        lines.key_by(lambda line: line).process(CountPerKey()).add_sink(AppendSink(tmp_path, "counts"))
        client = env.execute_async("socket")
        expected = sorted([["a", 1], ["a", 2], ["a", 3], ["b", 1], ["b", 2], ["half", 1], ["last", 1]])
        complete = eventually(lambda: len(notes(tmp_path, "counts")) >= len(expected))
        client.cancel().result()
        done.set()
    assert complete
    assert sorted(notes(tmp_path, "counts")) == expected


def test_a_limit_and_a_close_end_an_endless_job() -> None:
    assert endless(spark_env(1)).execute_and_collect("limited", 5) == [0, 1, 2, 3, 4]
    records = endless(spark_env(2)).key_by(lambda n: 0).map(lambda n: n).execute_and_collect("closed")
    assert [next(records) for _ in range(3)] == [0, 1, 2]
    running = sources_running()
    records.close()
    assert list(records) == []
    assert eventually(lambda: not (sources_running() & running))
