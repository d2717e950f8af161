"""Users, passwords and certificates, for both clients and against a real broker; and that no password shows."""

from __future__ import annotations

import logging
import os
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from kafka_server import KEY_PASSWORD, PASSWORD, USER
from kafkakit import Broker

from firesteel.common import Secret, WatermarkStrategy
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import DeliveryGuarantee, KafkaSink, KafkaSource
from firesteel.errors import ConfigurationError, JobExecutionError
from firesteel.testing import run_pipeline

pytestmark = pytest.mark.timeout(300)
FIVE = [f"v{n}" for n in range(5)]
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def login(mechanism: str = "PLAIN", password: Any = PASSWORD) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }


def jaas(password: str = PASSWORD) -> dict[str, Any]:
    line = f'{PLAIN} required username="{USER}" password="{password}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": line}


def copy(broker: Broker, servers: str, properties: dict[str, Any], config: dict[str, str] | None = None) -> list[str]:
    """Reads a topic and writes what it read to another one, exactly once: all clients are at work."""
    source, results = broker.topic(FIVE), broker.topic()
    from_kafka = broker.source(source).set_bootstrap_servers(servers).set_group_id(source).set_properties(properties)
    to_kafka = broker.sink(results, prefix=uuid.uuid4().hex).set_bootstrap_servers(servers).set_properties(properties)

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(from_kafka.build(), WatermarkStrategy.no_watermarks(), "kafka")
        stream.sink_to(to_kafka.build()).uid("sink")

    run_pipeline(build, config=config)
    assert broker.committed(source, source) == 5
    return broker.values(results)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_and_a_password(broker: Broker, mechanism: str) -> None:
    assert copy(broker, broker.server.secure_servers, login(mechanism)) == FIVE


def test_the_java_clients_way_to_say_it(broker: Broker) -> None:
    assert copy(broker, broker.server.secure_servers, jaas()) == FIVE


def test_a_password_that_is_looked_up_where_it_is_used(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LOGIN", jaas()["sasl.jaas.config"])
    given = {**jaas(), "sasl.jaas.config": Secret.from_environment("KAFKA_LOGIN")}
    properties = KafkaProperties().having(given)
    assert PASSWORD.encode() not in pickle.dumps(properties)
    assert copy(broker, broker.server.secure_servers, given) == FIVE


def test_certificates(broker: Broker) -> None:
    assert copy(broker, broker.server.tls_servers, broker.server.tls) == FIVE


class TestWhatIsWrong:
    """Each is one line that says what to do, and is told by the source, the sink and the client for transactions."""

    @staticmethod
    def read(broker: Broker, servers: str, properties: dict[str, Any]) -> None:
        source = broker.source(broker.topic(FIVE)).set_bootstrap_servers(servers).set_properties(properties)
        run_pipeline(
            lambda env: env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "kafka").map(lambda v: v)
        )

    @staticmethod
    def write(
        broker: Broker,
        servers: str,
        properties: dict[str, Any],
        guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
        topic: str = "",
        prefix: str = "tests",
    ) -> None:
        sink = broker.sink(topic or broker.topic(), guarantee, prefix).set_bootstrap_servers(servers)
        sink.set_properties(properties)
        run_pipeline(lambda env: env.from_collection(FIVE).sink_to(sink.build()) and None)

    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
    def test_the_password(self, broker: Broker, mechanism: str) -> None:
        wrong = login(mechanism, "wr0ng pass")
        for run in (self.read, self.write):
            with pytest.raises(JobExecutionError, match="Check the user name and the password") as caught:
                run(broker, broker.server.secure_servers, wrong)
            assert "wr0ng pass" not in str(caught.value)

    def test_the_certificate(self, broker: Broker) -> None:
        tls, stranger = broker.server.tls, Path(broker.server.tls["ssl.ca.location"]).with_name("stranger.pem")
        for run in (self.read, self.write):
            with pytest.raises(JobExecutionError, match=r"Check security\.protocol and the certificates"):
                run(broker, broker.server.tls_servers, {**tls, "ssl.ca.location": str(stranger)})

    def test_the_password_of_the_key(self, broker: Broker) -> None:
        properties = KafkaProperties().having({**broker.server.tls, "ssl.key.password": "wr0ng pass"})
        with pytest.raises(ConfigurationError, match=r"Check ssl\.ca\.location, .* and ssl\.key\.password\.$"):
            properties.for_transactions()

    def test_no_right_to_read(self, broker: Broker) -> None:
        topic = broker.topic(FIVE)
        broker.server.forbid("topic", topic, "read")
        source = broker.source(topic).set_bootstrap_servers(broker.server.secure_servers).set_properties(login())
        with pytest.raises(JobExecutionError, match="Grant the user the right to use the topic"):
            run_pipeline(
                lambda env: env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "k").map(lambda v: v)
            )

    @pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE])
    def test_no_right_to_write(self, broker: Broker, guarantee: DeliveryGuarantee) -> None:
        topic = broker.topic()
        broker.server.forbid("topic", topic, "write")
        with pytest.raises(JobExecutionError, match="Grant the user the right to use the topic"):
            self.write(broker, broker.server.secure_servers, login(), guarantee, topic)
        assert broker.values(topic) == []

    @pytest.mark.parametrize("right", ["write", "describe"])
    def test_no_right_to_transactions(self, broker: Broker, right: str) -> None:
        prefix = uuid.uuid4().hex
        broker.server.forbid("transactional_id", prefix, right)
        with pytest.raises(JobExecutionError, match="Grant the user the rights to write and to describe transactional"):
            self.write(broker, broker.server.secure_servers, login(), prefix=prefix)

    def test_no_right_to_the_group_is_a_warning(self, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
        topic = broker.topic(FIVE)
        broker.server.forbid("group", topic, "read")
        source = broker.source(topic).set_group_id(topic).set_bootstrap_servers(broker.server.secure_servers)
        with caplog.at_level(logging.WARNING, "firesteel"):
            found = run_pipeline(
                lambda env: env.from_source(
                    source.set_properties(login()).build(), WatermarkStrategy.no_watermarks(), "k"
                ).map(lambda v: v)
            )
        assert found == FIVE
        assert "Grant the user the right to use the group. The job goes on" in caplog.text


def _everything(folder: Path) -> bytes:
    return b"\0".join(Path(where, name).read_bytes() for where, _, names in os.walk(folder) for name in names)


@pytest.mark.parametrize("right", [True, False], ids=["a job that finishes", "a job that fails"])
def test_no_password_shows(
    broker: Broker, right: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    password = PASSWORD if right else "wr0ng p4ss"
    folder = tmp_path / "checkpoint"
    config = {"firesteel.checkpoint.dir": str(folder)}
    said = ""
    with caplog.at_level(logging.DEBUG):
        try:
            copy(broker, broker.server.secure_servers, {**jaas(password), "ssl.key.password": KEY_PASSWORD}, config)
            assert right
        except JobExecutionError as error:
            assert not right
            said = f"{error!r} {error} {error.__cause__!r}"
    shown = f"{said} {caplog.text} {''.join(capfd.readouterr())}".encode() + _everything(tmp_path)
    assert len(shown) > 100
    for secret in (password, KEY_PASSWORD):
        assert secret.encode() not in shown
    properties = KafkaProperties().having(jaas(password))
    source: Any = KafkaSource.builder().set_bootstrap_servers("x:1").set_properties(jaas(password))
    sink: Any = KafkaSink.builder().set_properties(jaas(password))
    assert password not in repr(properties) + repr(vars(source)) + repr(vars(sink))
