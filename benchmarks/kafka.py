"""The broker of the group ``kafka``: started with the first case that needs it, with topics full of records.

A record is a user's name, the moment of its making and filling: ``user-001234,1700000000000,xxxx…``; its key is the
user. There are two topics of one partition for each size, so that whoever shares the work out by hand can do so.
"""

import contextlib
import statistics
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from benchmarks.cases import PYFLINK, Case, Engine
from benchmarks.environments import ROOT, kafka_jar
from benchmarks.programs.sizes import SMALL

sys.path.append(str(ROOT / "tools"))

from kafka_server import KafkaServer

PARTS = 2
KEYS = 10_000
LIVE_RATE = 1000
STARTING_RATE = 10
LIVE_SECONDS = 15
SETTLING_SECONDS = 5
SECONDS_TO_START = 120


class Broker:
    """A broker that nobody needs until :meth:`prepared` is called."""

    def __init__(self, server: KafkaServer | None = None) -> None:
        self._server = server
        self._stack = contextlib.ExitStack()
        self._filled: set[tuple[int, int]] = set()
        self._live: dict[str, str] = {}
        self._source = f"records-{uuid.uuid4().hex[:8]}"

    def close(self) -> None:
        self._stack.close()

    def prepared(self, case: Case, engine: Engine, records: int) -> dict[str, str]:
        """Makes the topics of a case. Returns the variables by which a program finds them."""
        if self._server is None:
            self._server = self._stack.enter_context(KafkaServer())
        name = f"results-{uuid.uuid4().hex[:8]}"
        self._server.create_topic(name, PARTS)
        self._live = {"BENCH_KAFKA_SERVERS": self._server.servers, "BENCH_KAFKA_RESULTS": name}
        if case.kind == "latency":
            source = f"live-{uuid.uuid4().hex[:8]}"
            for part in range(PARTS):
                self._server.create_topic(f"{source}-{part}")
            self._live["BENCH_KAFKA_SOURCE"] = source
        else:
            self._live["BENCH_KAFKA_SOURCE"] = f"{self._source}-{case.kafka_bytes}"
            for size in {records, max(1, records // SMALL)}:
                self._fill(case.kafka_bytes, size)
        if engine.name == PYFLINK:
            self._live["BENCH_KAFKA_JAR"] = str(kafka_jar())
        return self._live

    def _fill(self, size: int, records: int) -> None:
        if (size, records) in self._filled:
            return
        assert self._server is not None
        producer = self._producer({"linger.ms": 50, "compression.type": "none"})
        for part in range(PARTS):
            topic = self._server.create_topic(f"{self._source}-{size}-{records}-{part}")
            for number in range(part, records, PARTS):
                self._produce(producer, topic, number, size)
        producer.flush()
        self._filled.add((size, records))

    def _producer(self, settings: dict[str, Any]) -> Any:
        from confluent_kafka import Producer

        assert self._server is not None
        return Producer({"bootstrap.servers": self._server.servers, "log_level": 0, **settings})

    @staticmethod
    def _produce(producer: Any, topic: str, number: int, size: int) -> None:
        user = f"user-{number * 2654435761 % KEYS:06}"
        value = f"{user},{int(time.time() * 1000)},".ljust(size, "x")
        while True:
            try:
                producer.produce(topic, value, user)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 100 == 0:
            producer.poll(0)

    def latency(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Feeds a running job with records at a steady rate, and looks when their results can be read."""
        source, results = self._live["BENCH_KAFKA_SOURCE"], self._live["BENCH_KAFKA_RESULTS"]
        working, stop = threading.Event(), threading.Event()
        feeding = threading.Thread(target=self._feed, args=(source, working, stop), daemon=True)
        feeding.start()
        try:
            return self._watch(results, process, working)
        finally:
            stop.set()
            feeding.join()

    def _feed(self, source: str, working: threading.Event, stop: threading.Event) -> None:
        producer = self._producer({"linger.ms": 0})
        number, due, last = 0, 0.0, time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            # A trickle until the job is there, or it would find a backlog and be measured by that.
            due += (now - last) * (LIVE_RATE if working.is_set() else STARTING_RATE)
            last = now
            while number < due:
                self._produce(producer, f"{source}-{number % PARTS}", number, 100)
                number += 1
            producer.poll(0)
            time.sleep(0.002)
        producer.flush(10)

    def _watch(self, results: str, process: subprocess.Popen[str], working: threading.Event) -> dict[str, Any]:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"group.id": "watch", "isolation.level": "read_committed", "fetch.wait.max.ms": 5, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self._live["BENCH_KAFKA_SERVERS"], **settings})
        consumer.assign([TopicPartition(results, part, 0) for part in range(PARTS)])
        delays: list[float] = []
        begin = time.monotonic()
        first: float | None = None
        while first is None or time.monotonic() < first + SETTLING_SECONDS + LIVE_SECONDS:
            if process.poll() is not None:
                raise RuntimeError("the program ended")
            if first is None and time.monotonic() > begin + SECONDS_TO_START:
                raise TimeoutError(f"no result for {SECONDS_TO_START} s")
            for message in consumer.consume(1000, 0.01):
                if message.error() is not None:
                    continue
                now = time.time() * 1000
                first = first or time.monotonic()
                working.set()
                if time.monotonic() > first + SETTLING_SECONDS:
                    delays.append(now - int(message.value().split(b",")[1][:13]))
        consumer.close()
        if not delays:
            raise RuntimeError("no results in the second part")
        delays.sort()
        return {
            "latency_ms": {
                "median": statistics.median(delays),
                "p99": delays[len(delays) * 99 // 100],
                "results a second": len(delays) / LIVE_SECONDS,
            }
        }
