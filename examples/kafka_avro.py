"""Avro through Kafka, with a schema registry: one program writes readings, another reads them with a field more.

    python examples/kafka_avro.py localhost:9092 http://localhost:8081

The first job writes readings without a unit into the topic "readings", which has to be there. The second one reads them
with a newer schema, in which the unit has a default. Needs pip install 'firesteel[kafka,avro]'.
"""

import argparse
import os

from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.formats.avro_confluent import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)

OLDER = """
    {"type": "record", "name": "Reading", "fields": [
        {"name": "sensor", "type": "string"}, {"name": "value", "type": "double"}
    ]}
"""
NEWER = """
    {"type": "record", "name": "Reading", "fields": [
        {"name": "sensor", "type": "string"}, {"name": "value", "type": "double"},
        {"name": "unit", "type": "string", "default": "C"}
    ]}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes and reads Avro with a schema registry.")
    parser.add_argument("servers", nargs="?", default=os.environ.get("FIRESTEEL_KAFKA_SERVERS", "localhost:9092"))
    parser.add_argument(
        "registry", nargs="?", default=os.environ.get("FIRESTEEL_SCHEMA_REGISTRY", "http://localhost:8081")
    )
    parser.add_argument("--topic", default="readings")
    options = parser.parse_args()
    subject = f"{options.topic}-value"

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    schema = ConfluentRegistryAvroSerializationSchema.for_generic(subject, OLDER, options.registry)
    records = KafkaRecordSerializationSchema.builder().set_topic(options.topic).set_value_serialization_schema(schema)
    sink = KafkaSink.builder().set_bootstrap_servers(options.servers).set_record_serializer(records.build())
    readings = env.from_collection([{"sensor": "attic", "value": 31.5}, {"sensor": "cellar", "value": 12.0}])
    readings.sink_to(sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build())
    env.execute("write readings")

    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(options.servers)
        .set_topics(options.topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(ConfluentRegistryAvroDeserializationSchema.for_generic(NEWER, options.registry))
        .build()
    )
    found = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings")
    found.map(lambda reading: f"{reading['sensor']}: {reading['value']} {reading['unit']}").print()
    env.execute("read readings")


if __name__ == "__main__":
    main()
