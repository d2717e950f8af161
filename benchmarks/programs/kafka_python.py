"""A count per key from Kafka to Kafka in bare loops with confluent-kafka, exactly once: a process a partition."""

import multiprocessing
import time
import uuid
from typing import Any

import kafka_settings
import measure
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

options = kafka_settings.arguments(__doc__).parse_args()
STAMPED, USER = kafka_settings.STAMPED, kafka_settings.USER
SERVERS = {"bootstrap.servers": kafka_settings.SERVERS, "log_level": 0}
PORTION = 10_000
FOR_EVER = 2**62


def consumer_of(topic: str) -> Any:
    settings = {"group.id": uuid.uuid4().hex, "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    consumer = Consumer({**SERVERS, **settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def read(topic: str, live: bool) -> None:
    keep = lambda line: False  # noqa: E731 - the user's function
    consumer, kept = consumer_of(topic), 0
    while True:
        for message in consumer.consume(PORTION, 0.1):
            if message.error() is None:
                kept += keep(message.value().decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return


def count(topic: str, live: bool) -> None:
    consumer = consumer_of(topic)
    producer = Producer({**SERVERS, "transactional.id": uuid.uuid4().hex, "linger.ms": 5})
    producer.init_transactions()
    producer.begin_transaction()
    counts: dict[str, int] = {}
    begun, ended = time.monotonic(), False
    while not ended:
        for message in consumer.consume(PORTION, 0.05):
            if message.error() is not None:
                ended = not live and message.error().code() == KafkaError._PARTITION_EOF
                continue
            line = message.value().decode()[:STAMPED]
            user = line[:USER]
            counts[user] = number = counts.get(user, 0) + 1
            while True:
                try:
                    producer.produce(kafka_settings.RESULTS, f"{line}:{number}".encode())
                    break
                except BufferError:
                    producer.poll(0.05)
            if not number % 100:
                producer.poll(0)
        if ended or time.monotonic() > begun + (kafka_settings.COMMIT_SECONDS if not live else 0.1):
            positions = consumer.position([TopicPartition(topic, 0)])
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
            producer.commit_transaction()
            producer.begin_transaction()
            begun = time.monotonic()
    consumer.close()


def job(records: int) -> None:
    loop = read if options.read else count
    context = multiprocessing.get_context("fork")
    topics = kafka_settings.topics(records, options.live)
    processes = [context.Process(target=loop, args=(topic, options.live), daemon=True) for topic in topics]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a loop ended with exit code {process.exitcode}")


if options.live:
    job(0)
else:
    measure.report(measure.slope(job, options.records, options.repeats))
