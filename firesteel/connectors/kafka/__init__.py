"""Kafka: the enumerator and reader of its source, the writers and the committer of its sink.

Records go through ``confluent-kafka`` (librdkafka). Committing another process's transaction, which exactly once rests
on, goes through ``kafka-python``, whose protocol classes can say it: :mod:`firesteel.connectors.kafka.transactions`.
"""
