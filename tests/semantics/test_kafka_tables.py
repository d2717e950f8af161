"""Tables of Kafka's topics on a real broker: formats, keys, metadata, changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafkakit import Broker

from firesteel.common import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.sql import SqlError

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def env() -> TableEnvironment:
    settings = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
    return TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(settings).build())


def table(env: TableEnvironment, broker: Broker, name: str, columns: str, topic: str, **options: str) -> None:
    given = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.servers,
        **{key.replace("__", "-").replace("_", "."): value for key, value in options.items()},
    }
    if given["connector"] == "kafka":
        given.setdefault("scan.startup.mode", "earliest-offset")
    given.setdefault("scan.bounded.mode", "latest-offset")
    written = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({written})")


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [(str(row.get_row_kind()), *row) for row in found]


def test_keys_values_and_metadata_both_ways(env: TableEnvironment, broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    columns = """k_id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
        headers MAP<STRING, BYTES> METADATA, place STRING METADATA FROM 'partition' VIRTUAL,
        n BIGINT METADATA FROM 'offset' VIRTUAL, t STRING METADATA FROM 'topic' VIRTUAL"""
    options = {
        "key_format": "json",
        "key_fields": "k_id",
        "key_fields__prefix": "k_",
        "value_format": "csv",
        "value_fields__include": "EXCEPT_KEY",
        "sink_delivery__guarantee": "exactly-once",
        "sink_transactional__id__prefix": topic,
    }
    table(env, broker, "orders", columns, topic, **options)
    env.execute_sql("""INSERT INTO orders VALUES
        (1, 'a b', TO_TIMESTAMP_LTZ(1704103200123, 3), MAP['h', x'01']),
        (2, CAST(NULL AS STRING), TO_TIMESTAMP_LTZ(1704103200124, 3), CAST(NULL AS MAP<STRING, BYTES>))""").wait()
    found = {message.key(): message for message in broker.messages(topic)}
    assert found[b'{"id":1}'].value() == b'"a b"'
    assert found[b'{"id":1}'].timestamp()[1] == 1704103200123
    assert found[b'{"id":1}'].headers() == [("h", b"\x01")]
    read = "SELECT k_id, name, CAST(at AS STRING), CARDINALITY(headers), place IN ('0', '1'), n >= 0, t FROM orders"
    assert sorted(rows(env, read)) == [
        ("+I", 1, "a b", "2024-01-01 10:00:00.123", 1, True, True, topic),
        ("+I", 2, "", "2024-01-01 10:00:00.124", 0, True, True, topic),
    ]


def test_upserts_come_back_as_a_full_changelog(env: TableEnvironment, broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    options = {"connector": "upsert-kafka", "key_format": "json", "value_format": "json"}
    table(env, broker, "counts", "name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED", topic, **options)
    env.execute_sql("CREATE TEMPORARY VIEW words AS SELECT * FROM (VALUES ('a'), ('b'), ('a')) AS v (name)")
    env.execute_sql("INSERT INTO counts SELECT name, COUNT(*) FROM words GROUP BY name").wait()
    broker.write(topic, [{"key": b'{"name":"b"}', "value": None, "partition": part} for part in (0, 1)])
    final: dict[Any, Any] = {}
    for kind, name, n in rows(env, "SELECT * FROM counts"):
        if kind in ("+I", "+U"):
            final[name] = n
        else:
            assert final.pop(name) == n
    assert final == {"a": 2}
    assert [kind for kind, name, _ in rows(env, "SELECT * FROM counts") if name == "a"] == ["+I", "-U", "+U"]


def test_changes_of_a_database(env: TableEnvironment, broker: Broker) -> None:
    changes = [
        {"before": None, "after": {"id": 1, "v": 5}, "op": "c"},
        {"before": {"id": 1, "v": 5}, "after": {"id": 1, "v": 7}, "op": "u"},
        {"before": None, "after": {"id": 2, "v": 1}, "op": "r"},
        {"before": {"id": 2, "v": 1}, "after": None, "op": "d"},
    ]
    topic = broker.topic([json.dumps(change) for change in changes])
    table(env, broker, "t", "id INT, v INT", topic, format="debezium-json")
    assert rows(env, "SELECT * FROM t") == [
        ("+I", 1, 5),
        ("-U", 1, 5),
        ("+U", 1, 7),
        ("+I", 2, 1),
        ("-D", 2, 1),
    ]
    assert rows(env, "SELECT SUM(v) FROM t")[-1] == ("+U", 7)
    table(env, broker, "copy", "id INT, s INT", broker.topic(), format="debezium-json")
    env.execute_sql("INSERT INTO copy SELECT id, SUM(v) FROM t GROUP BY id").wait()
    assert rows(env, "SELECT SUM(s) FROM copy")[-1][1] == 7


def test_where_reading_begins_and_what_it_stumbles_over(env: TableEnvironment, broker: Broker) -> None:
    topic = broker.topic(["1", "2", "x", "4"])
    offsets = {"scan_startup_mode": "specific-offsets", "scan_startup_specific__offsets": "partition:0,offset:3"}
    table(env, broker, "late", "n INT", topic, format="csv", **offsets)
    assert rows(env, "SELECT * FROM late") == [("+I", 4)]
    table(env, broker, "early", "n INT", topic, format="csv")
    with pytest.raises(Exception, match=rf"offset 2 of {topic}-0: column 'n' should be int32, got 'x'"):
        rows(env, "SELECT * FROM early")
    table(env, broker, "lenient", "n INT", topic, format="csv", csv_ignore__parse__errors="true")
    assert rows(env, "SELECT * FROM lenient") == [("+I", 1), ("+I", 2), ("+I", None), ("+I", 4)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("'topic' = 't', 'format' = 'json'", "needs the option 'properties.bootstrap.servers'"),
        ("'properties.bootstrap.servers' = 'h:1', 'format' = 'json'", "either 'topic' or 'topic-pattern'"),
        ("'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json'", "needs 'properties.group.id'"),
        ("'topic' = 't', 'formt' = 'json'", "no option 'formt'. Did you mean format"),
        ("'topic' = 't', 'format' = 'json', 'key.format' = 'json'", "'key.format' needs 'key.fields'"),
        (
            "'topic' = 't', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'nn'",
            "'key.fields' names 'nn', which is not a column. Did you mean n",
        ),
        ("'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json', 'scan.startup.mode' = 'earliest'",
         "should be one of .* Did you mean earliest-offset"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told(env: TableEnvironment, options: str, told: str) -> None:
    env.execute_sql(f"CREATE TABLE t (n INT) WITH ('connector' = 'kafka', {options})")
    with pytest.raises(SqlError, match=told):
        env.execute_sql("SELECT * FROM t")


def test_an_upsert_table_needs_a_key(env: TableEnvironment) -> None:
    options = "'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'key.format' = 'json', 'value.format' = 'json'"
    env.execute_sql(f"CREATE TABLE t (n INT) WITH ('connector' = 'upsert-kafka', {options})")
    with pytest.raises(SqlError, match="needs a key: PRIMARY KEY"):
        env.execute_sql("SELECT * FROM t")
