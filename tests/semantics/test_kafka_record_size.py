"""Records that are too large, and topics that take less at once than the client sends."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from kafkakit import Broker

from firesteel.common import Types
from firesteel.datastream.connectors.kafka import KafkaSinkBuilder
from firesteel.errors import JobExecutionError
from firesteel.testing import run_pipeline

pytestmark = pytest.mark.timeout(300)


def write(sink: KafkaSinkBuilder, values: list[str], **more: Any) -> None:
    run_pipeline(
        lambda env: env.from_collection(values, Types.STRING()).sink_to(sink.build()).uid("sink") and None, **more
    )


def test_written_ahead_to_a_topic_that_takes_less_than_the_client_sends_together(broker: Broker) -> None:
    """Each record is small enough. By the time they are sent their batch is logged, so none may be refused."""
    values = [f"{n:0100}" for n in range(300)]
    topic = broker.topic(max_message_bytes="2000")
    sink = broker.sink(topic, prefix=uuid.uuid4().hex).set_write_ahead()
    write(sink.set_property("batch.size", "100000"), values, config={"firesteel.batch.max-records": "100"})
    assert Counter(broker.values(topic)) == Counter(values)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (5_000, r"it is too large\. The topic takes 2,000 bytes\. Raise its max\.message\.bytes"),
        (2_000_000, r"it is too large\. The client takes 1,000,000 bytes\. Raise the sink's max\.request\.size"),
    ],
)
def test_what_it_is_too_large_for(broker: Broker, size: int, text: str) -> None:
    topic = broker.topic(max_message_bytes="2000")
    with pytest.raises(
        JobExecutionError, match=rf"writing a record of {size:,} bytes to topic '{topic}' failed: {text}"
    ):
        write(broker.sink(topic, prefix=uuid.uuid4().hex).set_write_ahead(), ["a", "x" * size, "b"])
    assert broker.values(topic) == []
