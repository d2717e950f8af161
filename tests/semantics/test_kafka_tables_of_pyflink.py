"""Tables of Kafka as PyFlink wrote and read them: keys, values, metadata, upserts, changes, bad messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafkakit import Broker
from kafkatablekit import declaration, noted, outgoing
from recordedkit import shown_value

from firesteel.common import Configuration
from firesteel.errors import FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.timeout(300)

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "kafka_tables_by_pyflink.json").read_text())["cases"]
OURS = {"avro with new timestamps": "Flink writes milliseconds where the schema says microseconds"}
"""What is not the same, with the reason."""


@pytest.fixture
def env() -> TableEnvironment:
    settings = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
    return TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(settings).build())


def read(env: TableEnvironment, case: dict[str, Any]) -> list[Any]:
    with env.execute_sql(case["read"]).collect() as rows:
        return [[str(row.get_row_kind()), *shown_value(list(row))] for row in rows]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["name"] not in OURS],
    ids=lambda case: str(case["name"]).replace(",", "").replace(" ", "-"),
)
def test_tables_are_those_of_pyflink(case: dict[str, Any], env: TableEnvironment, broker: Broker) -> None:
    if "query" in case:
        topic = broker.topic()
        env.execute_sql(declaration(case, topic, broker.servers))
        env.execute_sql(f"INSERT INTO f {case['query']}").wait()
        assert sorted(map(noted, broker.messages(topic)), key=repr) == sorted(case["messages"], key=repr)
        env.execute_sql("DROP TABLE f")
    if "METADATA" not in case["columns"] or "query" not in case:
        # Messages are recorded without their timestamps; the order of keys is the engine's own.
        topic = broker.topic([outgoing(each) for each in case["messages"]])
    env.execute_sql(declaration(case, topic, broker.servers))
    if "refused" in case:
        with pytest.raises(FiresteelError, match=r"Kafka, offset \d+ of .*cannot read it"):
            read(env, case)
    else:
        assert read(env, case) == case["rows"]
