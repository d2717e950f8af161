"""Topics of a real broker as a source and as a sink: through kills, and with what one is told."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kit import eventually
from mosquitto_server import PASSWORD, USER, MosquittoServer, why_not
from mosquittokit import Mqtt
from serverkit import cannot_run
from sourcekit import read

from firesteel.common import WatermarkStrategy
from firesteel.connectors.mqtt import connecting, receiving
from firesteel.connectors.mqtt.connecting import MqttAddress, Session
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import SinkBatch
from firesteel.datastream.connectors import mqtt as mqtt_connector
from firesteel.datastream.connectors.mqtt import MqttMessage, MqttSink, MqttSource
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CollectionSink, CommitCrashes, Crash, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}


def source(mqtt: Mqtt, **options: Any) -> MqttSource:
    given = {"client_id": f"job-{mqtt.topic}", "user_name": mqtt.user, "password": mqtt.password, **options}
    return MqttSource(mqtt.url, [mqtt.topic, f"{mqtt.topic}/#"], **given)


def start(mqtt: Mqtt, found: CollectionSink, function: Any = None) -> Any:
    env = memory_environment(2, config=RESTART)
    numbers = env.from_source(source(mqtt), NONE, "mqtt").map(lambda message: int(message.payload))
    numbers.filter(lambda n: n >= 0).map(function or (lambda n: n)).sink_to(found)
    return env.execute_async("mqtt")


def subscribe(mqtt: Mqtt, directory: Path) -> None:
    """Makes the session, so that what is published from now on is kept for it."""
    enumerator = source(mqtt).create_enumerator()
    enumerator.start(str(directory))
    probe(mqtt, enumerator)
    enumerator.stop()


def probe(mqtt: Mqtt, enumerator: Any) -> None:
    """Returns when a message has arrived: whoever is not connected yet gets none."""
    before = enumerator.latest(0, 1_000_000)

    def arrived() -> bool:
        mqtt.publish([-1])
        return bool(enumerator.latest(0, 1_000_000) > before)

    assert eventually(arrived)


# The source


def test_messages_count_once_through_failures_and_while_nobody_listens(mqtt: Mqtt, tmp_path: Path) -> None:
    subscribe(mqtt, tmp_path)
    mqtt.publish(range(1, 30))
    crash, found = Crash(times=2), CollectionSink()

    def fragile(n: int) -> int:
        if n in (7, 40):
            crash.hit()
        return n

    job = start(mqtt, found, fragile)
    assert eventually(lambda: sorted(found.values) == list(range(1, 30)))
    mqtt.publish(range(30, 50), f"{mqtt.topic}/deeper")
    assert eventually(lambda: sorted(found.values) == list(range(1, 50)))
    job.cancel().result()
    mqtt.publish(range(50, 60))
    again = CollectionSink()
    job = start(mqtt, again)
    # What the cancelled job had no time to acknowledge comes again: its log is gone.
    assert eventually(lambda: sorted(n for n in again.values if n >= 50) == list(range(50, 60)))
    job.cancel().result()


def test_a_process_is_killed_between_the_log_and_the_acknowledgement(mqtt: Mqtt, tmp_path: Path) -> None:
    """``kill -9``; the broker sends the messages again, and they are recognised."""
    subscribe(mqtt, tmp_path / "before")
    mqtt.publish(range(1, 11))
    program = textwrap.dedent(f"""
        import os, sys, time
        sys.path[:0] = {sys.path!r}
        import paho.mqtt.client as paho
        from mosquittokit import Mqtt
        from mosquitto_server import MosquittoServer
        from test_systems_mqtt import source
        paho.Client.ack = lambda *given: os.kill(os.getpid(), 9)
        server = MosquittoServer(); server.port = {mqtt.server.port}
        mqtt = Mqtt(server); mqtt.topic = {mqtt.topic!r}
        enumerator = source(mqtt).create_enumerator()
        enumerator.start({str(tmp_path / "log")!r})
        enumerator.latest(0, 100)
        time.sleep(600)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    given = source(mqtt)
    enumerator = given.create_enumerator()
    enumerator.start(str(tmp_path / "log"))
    logged = enumerator.latest(0, 100)
    assert logged > 0, "what was logged before the kill is there"
    mqtt.publish([11])

    def arrived() -> list[Any]:
        return read(given.create_reader(), enumerator.plan(0, enumerator.latest(0, 1000), 2))

    assert eventually(lambda: any(message.payload == b"11" for message in arrived()))
    values = arrived()
    enumerator.stop()
    assert [n for n in (int(message.payload) for message in values) if n > 0] == list(range(1, 12))


def test_the_broker_is_killed(mqtt: Mqtt, tmp_path: Path) -> None:
    enumerator = source(mqtt).create_enumerator()
    enumerator.start(str(tmp_path))
    probe(mqtt, enumerator)
    before = enumerator.latest(0, 1000)
    mqtt.server.crash()
    # It connects again by itself, and what was logged stays.
    probe(mqtt, enumerator)
    assert enumerator.latest(0, 1000) > before
    enumerator.stop()


def test_messages_have_a_topic_and_bytes(mqtt: Mqtt, tmp_path: Path) -> None:
    enumerator = source(mqtt).create_enumerator()
    enumerator.start(str(tmp_path))
    made = mqtt.client()
    made.publish(f"{mqtt.topic}/a", b"\xff\x00", 1, retain=True).wait_for_publish(30)
    assert eventually(lambda: enumerator.latest(0, 10) == 1)
    (message,) = read(source(mqtt).create_reader(), enumerator.plan(0, 1, 1))
    assert message == MqttMessage(f"{mqtt.topic}/a", b"\xff\x00", retain=True)
    enumerator.stop()
    made.publish(f"{mqtt.topic}/a", b"", 1, retain=True).wait_for_publish(30)
    made.disconnect()
    made.loop_stop()


# The sink


def sink(mqtt: Mqtt, message: Any = None, **options: Any) -> MqttSink:
    topic = mqtt.topic
    given = {"user_name": mqtt.user, "password": mqtt.password, **options}
    made = MqttSink(mqtt.url, message or (lambda n: (topic, str(n))), **given)
    # Only ends what hangs.
    made.retry_seconds = 120
    return made


def _end(stream: Any, made: MqttSink) -> None:
    stream.sink_to(made).name("to mqtt")


def test_at_least_once_through_a_crash(mqtt: Mqtt) -> None:
    found, client = mqtt.collected()

    def build(env: StreamExecutionEnvironment) -> None:
        _end(env.from_collection(list(range(40))), sink(mqtt))

    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        config = {"firesteel.batch.max-records": "10", **crashes.config}
        run_pipeline(build, parallelism=2, config=config, restarts=1)
    assert eventually(lambda: len(found) > 40 and set(found) == {str(n) for n in range(40)})
    client.disconnect()
    client.loop_stop()


def test_a_process_that_publishes_is_killed_and_starts_again(mqtt: Mqtt) -> None:
    """``kill -9`` in the middle of a portion; the next process sends all of it again."""
    found, client = mqtt.collected()
    program = textwrap.dedent(f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from firesteel.testing import run_pipeline
        from mosquittokit import Mqtt
        from mosquitto_server import MosquittoServer
        from test_systems_mqtt import _end, sink
        server = MosquittoServer(); server.port = {mqtt.server.port}
        mqtt = Mqtt(server); mqtt.topic = {mqtt.topic!r}
        killed = lambda n: os.kill(os.getpid(), 9) if n == 25 and sys.argv[1] == "killed" else n
        numbers = list(range(40))
        config = {{"firesteel.batch.max-records": "10"}}
        run_pipeline(lambda env: _end(env.from_collection(numbers).map(killed), sink(mqtt)), config=config)
    """)

    def run(how: str) -> int:
        command = [sys.executable, "-c", program, how]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).returncode

    assert run("killed") == -signal.SIGKILL
    assert eventually(lambda: set(found) == {str(n) for n in range(20)})
    assert run("again") == 0
    assert eventually(lambda: sorted(found) == sorted(str(n) for n in [*range(20), *range(40)]))
    client.disconnect()
    client.loop_stop()


# What one is told


def failure(made: MqttSink, values: Any = (1,)) -> JobExecutionError:
    made.retry_seconds = 0.05
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection(list(values)), made))
    return caught.value


def test_a_login_that_is_refused_and_a_password_that_is_told_to_nobody(mqtt: Mqtt) -> None:
    secret = "wr0ng-but-s3cret"
    error = failure(sink(mqtt, password=secret))
    assert error.kind is FailureKind.PERMANENT
    assert "refused the connection: " in str(error)
    assert "Check the user name, the password and their rights." in str(error)
    assert secret not in f"{error} {error!r} {error.cause_text} {sink(mqtt, password=secret)._address!r}"
    with pytest.raises(JobExecutionError, match="refused the connection"):
        run_pipeline(lambda env: env.from_source(source(mqtt, password=secret), NONE, "mqtt"), restarts=2)


def test_a_broker_that_is_not_there(mqtt: Mqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    message = lambda n: ("t", str(n))  # noqa: E731
    error = failure(MqttSink("mqtt://127.0.0.1:1", message))
    assert error.kind is FailureKind.PASSING
    assert "MQTT broker at 127.0.0.1:1 cannot be reached" in str(error)
    monkeypatch.setattr(receiving, "RETRY_SECONDS", 0.05)
    away = MqttSource("mqtt://127.0.0.1:1", ["t"], client_id="x")
    with pytest.raises(JobExecutionError, match="cannot be reached"):
        run_pipeline(lambda env: env.from_source(away, NONE, "mqtt"))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ("t", "A message is a topic and a payload, as a pair; got 't'"),
        (("a/#", "x"), "A message goes to one topic, without wildcards; got 'a/#'"),
        (("a", 5), "A payload is a text or bytes; 'a' gets 5"),
        (("a\0b", "x"), "A topic is a text of at most 65,535 bytes in UTF-8, without NUL"),
        (("é" * 32768, "x"), "A topic is a text of at most 65,535 bytes in UTF-8, without NUL"),
        (("\ud800", "x"), "A topic is a text of at most 65,535 bytes in UTF-8, without NUL"),
    ],
)
def test_what_is_no_message_is_refused_with_its_record(mqtt: Mqtt, found: Any, text: str) -> None:
    error = failure(sink(mqtt, lambda n: found))
    assert text in str(error)
    assert error.element == "1"
    assert error.kind is FailureKind.PERMANENT


def test_a_subscription_that_is_refused_and_a_broker_that_goes(caplog: pytest.LogCaptureFixture) -> None:
    session = Session(MqttAddress.of("mqtt://broker"), "x", keep=True)
    granted, refused = (SimpleNamespace(is_failure=failed) for failed in (False, True))
    session._on_subscribe(None, None, 1, [granted], None)
    session.check()
    session._on_subscribe(None, None, 1, [granted, refused], None)
    with pytest.raises(ConnectorError, match=r"broker:1883 refused a subscription: .*Grant the user the right") as said:
        session.check()
    assert said.value.kind is FailureKind.PERMANENT
    session._connected.set()
    session._on_disconnect(None, None, None, "Keep alive timeout", None)
    session._connected.set()
    session.close()
    session._on_disconnect(None, None, None, "Normal disconnection", None)
    assert [record.getMessage() for record in caplog.records if record.name == "firesteel.connectors"] == [
        "MQTT broker at broker:1883 has gone: Keep alive timeout. It is connected to again."
    ]


def test_a_batch_has_one_deadline_for_all_of_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [100.0], []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    sent = SimpleNamespace(wait_for_publish=wait, is_published=lambda: False, mid=1)
    made = MqttSink("mqtt://broker", lambda n: ("t", str(n)))
    made.retry_seconds = 30
    client = SimpleNamespace(publish=lambda *given: sent)
    session = SimpleNamespace(client=client, check=lambda: None, close=lambda: None, refused={}, largest_packet=None)
    session.too_large = False
    made._session = session  # type: ignore[assignment]
    monkeypatch.setattr(mqtt_connector, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with pytest.raises(ConnectorError, match="has not acknowledged all of 3 messages after 30 s"):
        made.write(SinkBatch([("t", b"1"), ("t", b"2"), ("t", b"3")]))
    assert sum(waits) == 30


@contextlib.contextmanager
def own_broker(settings: str) -> Iterator[str]:
    """The address of a broker with settings that others should not have."""
    if (missing := why_not()) is not None:
        cannot_run(missing)
    with MosquittoServer() as server:
        (server.folder / "acl").write_text(f"user {USER}\ntopic readwrite allowed/#\n")
        configuration = server.folder / "mosquitto.conf"
        configuration.write_text(configuration.read_text() + settings.format(folder=server.folder))
        server.crash()
        yield server.url


def at(url: str, message: Any) -> MqttSink:
    made = MqttSink(url, message, user_name=USER, password=PASSWORD)
    # Only ends what hangs.
    made.retry_seconds = 120
    return made


def test_a_topic_to_which_the_user_may_not_write() -> None:
    with own_broker("acl_file {folder}/acl\n") as url:
        made = at(url, lambda n: (("allowed/a" if n < 30 else "others/b"), f"message {n}"))
        with pytest.raises(JobExecutionError) as caught:
            run_pipeline(lambda env: _end(env.from_collection(list(range(40))), made), restarts=3)
    assert caught.value.kind is FailureKind.PERMANENT
    assert (
        "refused a message of 10 bytes for 'others/b': Not authorized. Grant the user the right to write to the topic. "
        "The message is b'message 30'."
    ) in str(caught.value)


def test_packets_that_are_larger_than_the_broker_takes() -> None:
    with own_broker("max_packet_size 1000\n") as url:
        # A fixed header of three bytes, the topic with its length, a number, properties.
        fits = 1000 - 3 - (2 + len("allowed/a")) - 2 - 1
        made = at(url, lambda n: ("allowed/a", "x" * n))
        made.write(SinkBatch([made.convert(fits)]))
        with pytest.raises(
            ConnectorError, match=rf"takes packets of at most 1,000 bytes.* a payload of {fits + 1}"
        ) as e:
            made.write(SinkBatch([made.convert(5), made.convert(fits + 1)]))
        assert e.value.kind is FailureKind.PERMANENT
        assert made._session is not None
        # One that does not say so before, and ends the connection.
        made._session.largest_packet = None
        with pytest.raises(ConnectorError, match=r"takes smaller packets only.* a payload of 5,000 bytes") as e:
            made.write(SinkBatch([made.convert(5), made.convert(5000)]))
        assert e.value.kind is FailureKind.PERMANENT
        made.write(SinkBatch([made.convert(5)]))
        made.close()


def test_more_than_mqtt_can_say_is_refused_in_the_task(mqtt: Mqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_connector, "LARGEST", 1000)
    error = failure(sink(mqtt, lambda n: ("t", "x" * 1000)))
    assert error.kind is FailureKind.PERMANENT
    assert error.element == "1"
    assert "A message has at most 1,000 bytes with its topic; the one for 't' has 1,000." in str(error)


class OldBroker:
    """Speaks MQTT 3.1.1 only, and takes everything."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.published: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"mqtt://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(2):
                body = stream.read(head[1])
                if head[0] == 0x10:
                    self.versions.append(body[6])
                    connection.sendall(bytes((0x20, 2, 0, 0 if body[6] == 4 else 1)))
                    if body[6] != 4:
                        return
                elif head[0] & 0xF0 == 0x30:
                    topic_end = 2 + int.from_bytes(body[:2], "big")
                    self.published.append(body[topic_end + 2 :])
                    connection.sendall(bytes((0x40, 2)) + body[topic_end : topic_end + 2])

    def close(self) -> None:
        self._listening.close()


def test_a_broker_that_speaks_the_former_version_only(caplog: pytest.LogCaptureFixture) -> None:
    broker = OldBroker()
    made = MqttSink(broker.url, lambda n: ("t", str(n)))
    made.write(SinkBatch([made.convert(n) for n in range(5)]))
    made.close()
    broker.close()
    assert broker.versions == [5, 4]
    assert broker.published == [b"0", b"1", b"2", b"3", b"4"]
    assert [record.getMessage() for record in caplog.records if "does not speak MQTT 5" in record.getMessage()]


def test_what_was_answered_to_an_attempt_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(MqttAddress.of("mqtt://broker"), "x", keep=True)
    for name in ("connect", "loop_start", "loop_stop", "disconnect"):
        monkeypatch.setattr(session.client, name, lambda *given, **options: None)
    session._on_connect(None, None, None, SimpleNamespace(is_failure=True, value=0x88), None)
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0)
    with pytest.raises(ConnectorError, match="does not answer"):
        session.open()


def test_a_certificate_that_is_not_trusted(untrusted_server: int) -> None:
    error = failure(MqttSink(f"mqtts://127.0.0.1:{untrusted_server}", lambda n: ("t", str(n))))
    assert error.kind is FailureKind.PERMANENT
    assert re.search("has a certificate that is not trusted: self.signed certificate", str(error))


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    for url in ("http://db", "mqtt://ada:hunter2@db", "mqtt://db:x", "db"):
        with pytest.raises(ProgramError, match="A broker is addressed as mqtt://host:port") as caught:
            MqttSource(url, ["t"], client_id="x")
        assert "hunter2" not in str(caught.value)
    with pytest.raises(ProgramError, match="client_id must be a name"):
        MqttSource("mqtt://db", ["t"], client_id="")
    with pytest.raises(ProgramError, match="topics must be a list"):
        MqttSource("mqtt://db", "t", client_id="x")
    with pytest.raises(ProgramError, match="qos must be 0 or 1"):
        MqttSource("mqtt://db", ["t"], client_id="x", qos=2)


def test_the_program_of_the_page_runs(mqtt: Mqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "mqtt.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, value in {
        "FIRESTEEL_MQTT_URL": mqtt.url,
        "FIRESTEEL_MQTT_PASSWORD": mqtt.password,
        "FIRESTEEL_MASTER": "memory",
    }.items():
        monkeypatch.setenv(name, value)
    namespace: dict[str, Any] = {"__name__": "docs.mqtt"}
    exec(code.replace("env.execute(", "job = env.execute_async("), namespace)
    mqtt.topic = "alarm/#"
    found, client = mqtt.collected()

    def alarmed() -> bool:
        mqtt.publish(["21.5", "30.5"], "home/kitchen/temperature")
        return "30.5" in found

    assert eventually(alarmed)
    assert "21.5" not in found
    namespace["job"].cancel().result()
    client.disconnect()
    client.loop_stop()
