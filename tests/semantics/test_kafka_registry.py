"""Avro with a real schema registry: numbers, evolution, accounts, what goes wrong, and a way through Kafka."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import pickle
import runpy
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pytest
from kafkakit import Broker
from registrykit import Registry

from firesteel.common import Row, WatermarkStrategy
from firesteel.common.secret import Secret
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Undecodable,
)
from firesteel.datastream.formats.avro import AvroSchema
from firesteel.datastream.formats.avro_confluent import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)
from firesteel.errors import (
    ConfigurationError,
    ConnectorError,
    FailureKind,
    InputError,
    ProgramError,
    TypeMismatchError,
)
from firesteel.testing import memory_environment, run_pipeline

pytestmark = pytest.mark.timeout(300)

Reader, Writer = ConfluentRegistryAvroDeserializationSchema, ConfluentRegistryAvroSerializationSchema
NO_ACCOUNT = "http://127.0.0.1:1"


def record(*fields: dict[str, Any], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": list(fields)})


ID = {"name": "id", "type": "int"}
FIRST = record(ID, {"name": "what", "type": "string"})
SECOND = record(ID, {"name": "what", "type": "string"}, {"name": "price", "type": "double", "default": 1.5})


def test_messages_have_a_header_and_others_can_read_them(registry: Registry) -> None:
    subject = registry.subject()
    message = Writer.for_generic(subject, FIRST, registry.url).serialize({"id": 7, "what": "tea"})
    version: Any = registry.ask("GET", f"/subjects/{subject}/versions/latest")
    assert message[:5] == b"\0" + version["id"].to_bytes(4, "big")
    written = fastavro.parse_schema(json.loads(version["schema"]))
    assert fastavro.schemaless_reader(io.BytesIO(message[5:]), written, None) == {"id": 7, "what": "tea"}


def test_readers_resolve_older_and_newer_messages(registry: Registry) -> None:
    subject = registry.subject()
    older = Writer.for_generic(subject, FIRST, registry.url).serialize({"id": 1, "what": "tea"})
    newer = Writer.for_generic(subject, SECOND, registry.url).serialize({"id": 2, "what": "cup", "price": 9.0})
    assert older[:5] != newer[:5]
    with_second = Reader.for_generic(AvroSchema.parse_string(SECOND), registry.url)
    with_first = Reader.for_generic(FIRST, registry.url)
    as_written = Reader.for_generic(None, registry.url)
    for _ in range(2):  # From the cache, too.
        assert [with_second.deserialize(message) for message in (older, newer)] == [
            {"id": 1, "what": "tea", "price": 1.5},
            {"id": 2, "what": "cup", "price": 9.0},
        ]
        assert [with_first.deserialize(message) for message in (older, newer)] == [
            {"id": 1, "what": "tea"},
            {"id": 2, "what": "cup"},
        ]
        assert as_written.deserialize(newer) == {"id": 2, "what": "cup", "price": 9.0}


def test_rows_with_their_types(registry: Registry) -> None:
    schema = record(
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "on", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    )
    subject = registry.subject()
    row = Row(at=datetime.datetime(2020, 1, 2, 3, 4, 5), price=decimal.Decimal("1.50"), on=datetime.date(2020, 1, 2))
    message = Writer.for_row(subject, schema, registry.url).serialize(row)
    reader = Reader.for_row(schema, registry.url)
    assert reader.deserialize(message) == row
    assert repr(reader.get_produced_type()) == "ROW<at SQL_TIMESTAMP, price BIG_DEC, on SQL_DATE>"
    with pytest.raises(TypeMismatchError, match=r"field 'on' of ROW.*expected SQL_DATE, got str 'x'"):
        Writer.for_row(subject, schema, registry.url).serialize(Row(row[0], row[1], "x"))


def test_a_number_beyond_32_bits_is_not_written(registry: Registry) -> None:
    writer = Writer.for_generic(registry.subject(), FIRST, registry.url)
    with pytest.raises(TypeMismatchError, match="field 'id' should be an int of 32 bits, got 2147483648"):
        writer.serialize({"id": 2**31, "what": "tea"})


def test_schemas_that_refer_to_others(registry: Registry) -> None:
    inner, outer = registry.subject(), registry.subject()
    item = record({"name": "x", "type": "int"}, name="Item")
    whole = record({"name": "item", "type": "shop.Item"}, name="Whole")
    registry.ask("POST", f"/subjects/{inner}/versions", {"schema": item})
    references = [{"name": "shop.Item", "subject": inner, "version": 1}]
    answer: Any = registry.ask("POST", f"/subjects/{outer}/versions", {"schema": whole, "references": references})
    message = b"\0" + answer["id"].to_bytes(4, "big") + b"\x0a"
    assert Reader.for_generic(None, registry.url).deserialize(message) == {"item": {"x": 5}}


def test_schemas_travel_to_workers(registry: Registry) -> None:
    pair = (Reader.for_generic(FIRST, registry.url), Writer.for_generic(registry.subject(), FIRST, registry.url))
    reader, writer = pickle.loads(pickle.dumps(pair))
    assert reader.deserialize(writer.serialize({"id": 1, "what": "é"})) == {"id": 1, "what": "é"}


class TestWhatGoesWrong:
    def test_no_header(self, registry: Registry) -> None:
        with pytest.raises(
            InputError, match=r"does not begin with a zero and the number of a schema.*begins with b'x'"
        ):
            Reader.for_generic(FIRST, registry.url).deserialize(b"x")

    def test_a_number_that_the_registry_does_not_know(self, registry: Registry) -> None:
        with pytest.raises(InputError, match=r"refused to get the schema 99999 \(404\).*Is it the registry that"):
            Reader.for_generic(FIRST, registry.url).deserialize(b"\0" + (99999).to_bytes(4, "big") + b"\x02")

    def test_a_record_that_cannot_be_resolved(self, registry: Registry) -> None:
        message = Writer.for_generic(registry.subject(), FIRST, registry.url).serialize({"id": 1, "what": "tea"})
        other = record({"name": "when", "type": "long"})
        with pytest.raises(
            InputError, match=r"Avro cannot read a message: .*it was written with the schema \d+ of the"
        ):
            Reader.for_generic(other, registry.url).deserialize(message)

    def test_a_schema_that_is_not_compatible(self, registry: Registry) -> None:
        subject = registry.subject()
        Writer.for_generic(subject, FIRST, registry.url).serialize({"id": 1, "what": "tea"})
        registry.ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
        other = record(ID, {"name": "more", "type": "string"})
        with pytest.raises(ConnectorError, match=r"refused to register.*\(409\).*not compatible") as failure:
            Writer.for_generic(subject, other, registry.url).serialize({"id": 1, "more": "x"})
        assert failure.value.kind is FailureKind.PERMANENT

    def test_a_schema_that_must_not_be_registered(self, registry: Registry) -> None:
        given = {"schema.registry.auto.register.schemas": False}
        writer = Writer.for_generic(registry.subject(), FIRST, registry.url, given)
        with pytest.raises(InputError, match=r"refused to find a schema for the subject '.*' \(404\)"):
            writer.serialize({"id": 1, "what": "tea"})

    def test_no_registry(self) -> None:
        with pytest.raises(
            ConnectorError, match=r"at http://127\.0\.0\.1:1 cannot be reached to get the schema 1"
        ) as failure:
            Reader.for_generic(FIRST, NO_ACCOUNT).deserialize(b"\0\0\0\0\1\2")
        assert failure.value.kind is FailureKind.PASSING

    def test_settings(self) -> None:
        with pytest.raises(ConfigurationError, match="looks like 'http://localhost:8081', got 'kafka:9092'"):
            Reader.for_generic(FIRST, "me:secret@kafka:9092")
        with pytest.raises(ConfigurationError, match=r"no property 'basic\.auth'"):
            Reader.for_generic(FIRST, NO_ACCOUNT, {"basic.auth": "me:secret"})
        with pytest.raises(ProgramError, match="at least 1, got 0"):
            Reader.for_generic(FIRST, NO_ACCOUNT, 0)
        with pytest.raises(ProgramError, match="such as 'orders-value', got ''"):
            Writer.for_generic("", FIRST, NO_ACCOUNT)


class _Guarded(BaseHTTPRequestHandler):
    """A registry behind a door: one schema, and an account."""

    account = ""
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.headers.get("Authorization") != self.account:
            header = str(self.headers.get("Authorization"))
            said = f"no entry with {header}, {base64.b64decode(header.split()[1])!r}"
            self._answer(401, {"error_code": 401, "message": said})
        else:
            self._answer(200, {"schema": FIRST})

    def _answer(self, code: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def door() -> Iterator[tuple[str, type[_Guarded]]]:
    handler = type("Handler", (_Guarded,), {"asked": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", handler
    server.shutdown()
    server.server_close()


MESSAGE = b"\0\0\0\0\1\x02\x06tea"


class TestAccounts:
    @pytest.mark.parametrize("given", ["me:hunter2", Secret("me:hunter2")])
    def test_a_user_and_a_password(self, door: Any, given: Any) -> None:
        address, handler = door
        handler.account = f"Basic {base64.b64encode(b'me:hunter2').decode()}"
        properties = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": given}
        reader = Reader.for_generic(FIRST, f"http://{address}", properties)
        assert reader.deserialize(MESSAGE) == {"id": 1, "what": "tea"}
        reader.deserialize(MESSAGE)
        assert handler.asked == ["/schemas/ids/1"]

    def test_an_account_in_the_address_and_a_second_address(self, door: Any) -> None:
        address, handler = door
        handler.account = f"Basic {base64.b64encode(b'me:p@ss').decode()}"
        reader = Reader.for_generic(FIRST, f"http://me:p%40ss@127.0.0.1:1,http://{address}")
        assert reader.deserialize(MESSAGE) == {"id": 1, "what": "tea"}

    def test_a_token(self, door: Any) -> None:
        address, handler = door
        handler.account = "Bearer sesame"
        reader = Reader.for_generic(
            FIRST, f"http://{address}", {"bearer.auth.token": Secret.from_call(lambda: "sesame")}
        )
        assert reader.deserialize(MESSAGE) == {"id": 1, "what": "tea"}

    def test_a_wrong_password_does_not_show(self, door: Any) -> None:
        address, handler = door
        handler.account = "another"
        given = {"basic.auth.user.info": Secret("me:hunter2")}
        reader = Reader.for_generic(FIRST, f"http://{address}", given)
        with pytest.raises(ConnectorError, match=r"\(401\).*Check 'basic\.auth\.user\.info'") as failure:
            reader.deserialize(MESSAGE)
        assert failure.value.kind is FailureKind.PERMANENT
        assert "hunter2" not in f"{failure.value}{reader._registry!r}"
        assert base64.b64encode(b"me:hunter2").decode() not in str(failure.value)
        assert "no entry with Basic ***, b'me:***'" in str(failure.value)
        assert handler.asked == ["/schemas/ids/1"]  # It would be the same again.


def through(broker: Broker, source: Any, sink_topic: str, schema: Any) -> None:
    """A job from Kafka to Kafka."""
    env = memory_environment()
    serializer = KafkaRecordSerializationSchema.builder().set_topic(sink_topic).set_value_serialization_schema(schema)
    sink = KafkaSink.builder().set_bootstrap_servers(broker.servers).set_record_serializer(serializer.build())
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "orders")
    stream.map(lambda order: order | {"price": 2.0}).sink_to(
        sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()
    )
    env.execute()


def test_from_kafka_to_kafka(broker: Broker, registry: Registry) -> None:
    subject = registry.subject()
    first = Writer.for_generic(subject, FIRST, registry.url)
    topic = broker.topic([first.serialize({"id": number, "what": "tea"}) for number in range(5)])
    target = broker.topic()
    source = broker.source(topic).set_value_only_deserializer(Reader.for_generic(SECOND, registry.url))
    through(broker, source, target, Writer.for_generic(subject, SECOND, registry.url))
    reader = Reader.for_generic(SECOND, registry.url)
    found = [reader.deserialize(message.value()) for message in broker.messages(target)]
    assert found == [{"id": number, "what": "tea", "price": 2.0} for number in range(5)]


def test_the_example(
    broker: Broker, registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    program = Path(__file__).resolve().parents[2] / "examples" / "kafka_avro.py"
    monkeypatch.setattr(sys, "argv", ["kafka_avro.py", broker.servers, registry.url, "--topic", broker.topic()])
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == ["attic: 31.5 C", "cellar: 12.0 C"]


def test_records_are_not_left_out_because_the_registry_is_away(broker: Broker, registry: Registry) -> None:
    good = Writer.for_generic(registry.subject(), FIRST, registry.url).serialize({"id": 1, "what": "tea"})
    topic = broker.topic([b"bad", good])
    source = broker.source(topic).set_undecodable(Undecodable.SKIP)
    found = run_pipeline(
        lambda env: env.from_source(
            source.set_value_only_deserializer(Reader.for_generic(FIRST, registry.url)).build(),
            WatermarkStrategy.no_watermarks(),
            "orders",
        ).map(lambda order: order["id"])
    )
    assert found == [1]
    away = source.set_value_only_deserializer(Reader.for_generic(FIRST, NO_ACCOUNT)).build()
    with pytest.raises(Exception, match="cannot be reached"):
        run_pipeline(lambda env: env.from_source(away, WatermarkStrategy.no_watermarks(), "orders").map(lambda o: o))
