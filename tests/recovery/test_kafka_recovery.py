"""Kafka to keyed state to Kafka on Spark: workers and the driver are killed inside the sink."""

from __future__ import annotations

import os
from pathlib import Path

from kafkakit import Broker
from sparkkit import REPOSITORY, run_script, write_script

from chaos.kafka_faults import KafkaCrashes, KafkaPoint
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transactions
from firesteel.testing import CrashPoint

PROGRAM = """
    import sys

    from chaos.kafka_faults import FaultySink
    from firesteel.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.kafka import (
        DeliveryGuarantee, KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource,
    )

    servers, numbers, sums, checkpoint, crashes = sys.argv[1:]
    settings = {
        # As a cluster does it: a task that failed is repeated within its batch.
        "firesteel.master": "local[2,4]",
        "firesteel.checkpoint.dir": checkpoint,
        "firesteel.batch.max-records": "40",
        "firesteel.testing.crash-points": crashes,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(numbers).set_group_id(numbers)
    source = source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    source = source.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(SimpleStringSchema())
    records = KafkaRecordSerializationSchema.builder().set_topic(sums)
    records = records.set_value_serialization_schema(SimpleStringSchema()).build()
    sink = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(records)
    sink = sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(sums)
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers").map(int)
    totals = stream.map(lambda n: (n % 5, n)).key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    texts = totals.map(lambda r: f"{r[0]}:{r[1]}", output_type=Types.STRING())
    texts.sink_to(FaultySink(sink.build(), crashes)).uid("sums")
    env.execute("sums")
    print("finished")
"""


def test_workers_and_the_driver_are_killed_before_prepare_and_during_a_commit(broker: Broker, tmp_path: Path) -> None:
    numbers, sums = broker.topic([str(n) for n in range(1, 161)], partitions=2), broker.topic(partitions=2)
    program = write_script(tmp_path, PROGRAM)
    points = {
        # A worker, after it has prepared and before anybody knows: Spark repeats the task with another writer.
        CrashPoint.PREPARED: ["pass", "pass", "pass", "kill"],
        # A worker that has sent all records of its batch and has not asked for the numbers of its transaction.
        KafkaPoint.FLUSHED: ["pass", "kill"],
        # The driver, when one transaction of a batch that can never come again is committed and another one is not.
        KafkaPoint.BETWEEN_COMMITS: ["pass", "pass", "kill"],
    }
    environment = {"PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
    transactions = Transactions(KafkaProperties().having({"bootstrap.servers": broker.servers}))
    with KafkaCrashes(points) as crashes:
        arguments = [broker.servers, numbers, sums, str(tmp_path / "checkpoint"), crashes.folder]
        killed = run_script(program, *arguments, **environment)
        assert killed.returncode == -9, killed.stderr
        assert crashes.reached(CrashPoint.PREPARED) > 4, "the task that was killed came again"
        assert crashes.reached(KafkaPoint.FLUSHED) > 4
        assert transactions.open_ones(sums) != [], "what the third batch has prepared waits"
        done = run_script(program, *arguments, **environment)
        assert done.stdout == "finished\n", done.stderr
    values = broker.values(sums)
    totals = {key: sum(n for n in range(1, 161) if n % 5 == key) for key in range(5)}
    # Which records of a key come first is open, since there are two partitions. But each record gives one sum, the sums
    # of a key grow, and the last one has all.
    for key, total in totals.items():
        of_key = [int(value.partition(":")[2]) for value in values if value.startswith(f"{key}:")]
        assert (len(of_key), len(set(of_key)), max(of_key)) == (32, 32, total)
    assert len(values) == 160
    assert transactions.open_ones(sums) == []
    assert [broker.committed(numbers, numbers, partition) for partition in (0, 1)] == [80, 80]
    transactions.close()
