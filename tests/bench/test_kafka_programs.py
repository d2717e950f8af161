"""The programs of the group ``kafka`` count what is in the topics, and the broker's topics are what they expect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from kafka_server import KafkaServer
from kafkakit import Broker as Topics

from benchmarks.cases import ENGINES, FIRESTEEL, TWO_LOOPS
from benchmarks.catalogue import CASES
from benchmarks.kafka import Broker
from benchmarks.runner import PROGRAMS, command_of

RECORDS = 500


@pytest.fixture
def bench_broker(kafka_server: KafkaServer) -> Iterator[Broker]:
    broker = Broker(kafka_server)
    yield broker
    broker.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("peer", [FIRESTEEL, TWO_LOOPS])
def test_every_record_is_counted(
    bench_broker: Broker,
    broker: Topics,
    peer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = CASES["kafka_count_100"]
    variables = bench_broker.prepared(case, ENGINES[peer], RECORDS)
    for name, value in {**variables, "FIRESTEEL_MASTER": "memory"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))
    _, program, *own = command_of(case, ENGINES[peer])
    # In a process of its own: loops are forked, and this one has threads of clients.
    command = [sys.executable, program, *own, "--records", str(RECORDS), "--parallelism", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["records"] == RECORDS
    # One small run to get warm, a small one and a large one.
    values = broker.values(variables["BENCH_KAFKA_RESULTS"])
    assert len(values) == RECORDS + 2 * RECORDS // 5
    assert {len(value.rpartition(":")[0]) for value in values} == {25}
    counts = Counter(value.rpartition(":")[2] for value in values)
    assert counts["1"] == len(values), "keys are many, records are few"
    if peer == FIRESTEEL:
        assert result["commit_ms"] > 0
