"""A count per key from Kafka to Kafka with Quix Streams, exactly once: a process for each partition.

The records have their user as the key already, so nothing is repartitioned, which is in its favour.
"""

import multiprocessing
import tempfile
import uuid
from typing import Any

import kafka_settings
import measure
from quixstreams import Application

options = kafka_settings.arguments(__doc__).parse_args()
STAMPED = kafka_settings.STAMPED


def counted(value: str, state: Any) -> str:
    number = state.get("count", 0) + 1
    state.set("count", number)
    return f"{value[:STAMPED]}:{number}"


def run(topic: str, records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = Application(
            broker_address=kafka_settings.SERVERS,
            consumer_group=uuid.uuid4().hex,
            auto_offset_reset="earliest",
            processing_guarantee="exactly-once",
            commit_interval=kafka_settings.COMMIT_SECONDS,
            state_dir=folder,
            loglevel="ERROR",
        )
        source = app.topic(topic, key_deserializer="str", value_deserializer="str")
        results = app.topic(kafka_settings.RESULTS, value_serializer="str")
        app.dataframe(source).apply(counted, stateful=True).to_topic(results)
        if options.live:
            app.run()
        else:
            app.run(count=records)


def job(records: int) -> None:
    context = multiprocessing.get_context("fork")
    parts = kafka_settings.topics(records, options.live)
    shares = [len(range(part, records, len(parts))) for part in range(len(parts))]
    processes = [context.Process(target=run, args=each, daemon=True) for each in zip(parts, shares, strict=True)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a process of Quix Streams ended with exit code {process.exitcode}")


if options.live:
    job(0)
else:
    measure.report(measure.slope(job, options.records, options.repeats))
