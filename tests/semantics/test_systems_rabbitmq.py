"""Queues and streams of a real RabbitMQ as sources, queues as a sink: through kills, and with what one is told."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kit import eventually
from pika.exceptions import ChannelClosedByBroker
from rabbitmqkit import Rabbit
from sourcekit import read

from firesteel.common import WatermarkStrategy
from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.rabbitmq import queues, streams
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource, RMQStreamSource
from firesteel.errors import FailureKind, InputError, JobExecutionError, ProgramError
from firesteel.testing import CollectionSink, CommitCrashes, Crash, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}
TEXT = SimpleStringSchema()


def source(rabbit: Rabbit, use_correlation_id: bool = True, **options: Any) -> RMQSource:
    return RMQSource(rabbit.config(**options), rabbit.queue, use_correlation_id, TEXT)


def start(made: Any, found: CollectionSink, function: Any = None) -> Any:
    env = memory_environment(2, config=RESTART)
    env.add_source(made, "rabbit").map(int).map(function or (lambda n: n)).sink_to(found)
    return env.execute_async("rabbit")


# Queues


def test_messages_count_once_through_failures_and_are_gone_when_a_checkpoint_has_them(rabbit: Rabbit) -> None:
    rabbit.declare()
    rabbit.publish(range(40))
    crash, found = Crash(times=2), CollectionSink()

    def fragile(n: int) -> int:
        if n in (7, 50):
            crash.hit()
        return n

    job = start(source(rabbit), found, fragile)
    assert eventually(lambda: sorted(found.values) == list(range(40)))
    rabbit.publish(range(40, 60))
    assert eventually(lambda: sorted(found.values) == list(range(60)))
    # The acknowledgements follow the checkpoint.
    rabbit.publish([60])
    assert eventually(lambda: 60 in found.values)
    assert eventually(lambda: _unacknowledged(rabbit) == 0)
    job.cancel().result()
    assert rabbit.waiting() == 0


def _unacknowledged(rabbit: Rabbit) -> int:
    program = Path("/usr/lib/rabbitmq").glob("lib/rabbitmq_server-*/sbin/rabbitmqctl")
    command = [str(max(program)), "-q", "list_queues", "name", "messages_unacknowledged"]
    import os

    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **rabbit.server._environment}
    )
    # A node that is busy may not answer in time: then it is asked again.
    return next((int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(rabbit.queue)), -1)


KILLED = """
    import os, sys, time
    sys.path[:0] = {path!r}
    import pika
    from rabbitmqkit import Rabbit
    from rabbitmq_server import RabbitMqServer
    from test_systems_rabbitmq import source
    pika.adapters.blocking_connection.BlockingChannel.basic_ack = lambda *given, **more: os.kill(os.getpid(), 9)
    server = RabbitMqServer(); server.port = {port}
    rabbit = Rabbit(server); rabbit.queue = {queue!r}
    enumerator = source(rabbit).create_enumerator()
    enumerator.start({directory!r})
    while True:
        position = enumerator.latest(0, 1000)
        if position == 20:
            enumerator.committed(position)
        time.sleep(0.05)
"""


def test_a_process_is_killed_between_the_checkpoint_and_the_acknowledgement(rabbit: Rabbit, tmp_path: Path) -> None:
    """``kill -9``; the broker delivers the messages again, and they are recognised."""
    rabbit.declare()
    rabbit.publish(range(20))
    program = textwrap.dedent(KILLED).format(
        path=sys.path, port=rabbit.server.port, queue=rabbit.queue, directory=str(tmp_path)
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert eventually(lambda: rabbit.waiting() == 20), "nothing was acknowledged"
    given = source(rabbit)
    enumerator = given.create_enumerator()
    enumerator.start(str(tmp_path))
    assert enumerator.latest(20, 1000) == 20
    enumerator.committed(20)
    rabbit.publish([20])
    assert eventually(lambda: enumerator.latest(20, 1000) == 21)
    assert read(given.create_reader(), enumerator.plan(0, 21, 1)) == [str(n) for n in range(21)]
    # What came again is acknowledged, though nothing new was read.
    enumerator.committed(21)
    assert eventually(lambda: _unacknowledged(rabbit) == 0)
    enumerator.stop()
    assert rabbit.waiting() == 0


def test_without_ids_at_least_once_and_the_broker_is_killed(rabbit: Rabbit) -> None:
    rabbit.declare()
    found = CollectionSink()
    job = start(source(rabbit, use_correlation_id=False), found)
    rabbit.publish(range(10), ids=False)
    assert eventually(lambda: set(found.values) == set(range(10)))
    rabbit.server.crash()
    # A broker that is killed a moment after a queue was declared may have forgotten it: what is published before the
    # source has declared it anew would go nowhere.
    rabbit.declare()
    rabbit.publish(range(10, 20), ids=False)
    assert eventually(lambda: set(found.values) == set(range(20)))
    job.cancel().result()


def test_a_message_without_an_id_and_one_that_cannot_be_decoded(rabbit: Rabbit) -> None:
    rabbit.declare()
    rabbit.publish([5], ids=False)
    with pytest.raises(JobExecutionError, match="has no correlation id") as caught:
        run_pipeline(lambda env: env.add_source(source(rabbit)))
    assert caught.value.kind is FailureKind.PERMANENT

    class Refusing(SimpleStringSchema):
        def deserialize(self, message: bytes) -> str:
            raise ValueError("not like this")

    with pytest.raises(JobExecutionError, match=r"cannot be decoded \(ValueError: not like this\): b'5'"):
        run_pipeline(lambda env: env.add_source(RMQSource(rabbit.config(), rabbit.queue, False, Refusing())))


# Streams


@pytest.mark.parametrize("point", [CrashPoint.PREPARED, CrashPoint.COMMITTED])
def test_a_stream_is_read_once_through_a_crash(rabbit: Rabbit, point: CrashPoint) -> None:
    rabbit.stream()
    rabbit.publish(range(100))
    found = CollectionSink()
    made = RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT, bounded=True)
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        config = {"firesteel.batch.max-records": "30", **crashes.config}
        run_pipeline(
            lambda env: env.from_source(made, NONE, "stream").map(int).sink_to(found) and None,
            config=config,
            restarts=1,
        )
    assert Counter(found.values) == Counter(range(100))


def test_a_stream_goes_on_and_may_begin_anywhere(rabbit: Rabbit) -> None:
    rabbit.stream()
    rabbit.publish(range(10))
    found = CollectionSink()
    job = start(RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT, start=7), found)
    assert eventually(lambda: found.values == [7, 8, 9])
    rabbit.publish(range(10, 13))
    assert eventually(lambda: found.values == [7, 8, 9, 10, 11, 12])
    job.cancel().result()
    enumerator = RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT, start="next").create_enumerator()
    assert enumerator.latest(enumerator.initial(), 100) == {rabbit.queue: [13, 13]}
    enumerator.stop()


def test_a_restart_does_not_move_the_end_of_a_bounded_source(rabbit: Rabbit) -> None:
    rabbit.stream()
    rabbit.publish(range(5))
    given = RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT, bounded=True)
    enumerator = given.create_enumerator()
    position = enumerator.latest(enumerator.initial(), 2)
    assert position == {rabbit.queue: [[0, 5], [2, 5]]}
    enumerator.stop()
    rabbit.publish(range(5, 9))
    # The second one is of a former version: the end is what there is now.
    for logged, last in ((position, 5), ({rabbit.queue: [0, 2]}, 9)):
        # A driver that was started anew.
        enumerator = given.create_enumerator()
        assert not enumerator.ended(logged)
        later = enumerator.latest(logged, 100)
        assert enumerator.count(logged, later) == last - 2
        assert read(given.create_reader(), enumerator.plan(logged, later, 1)) == [str(n) for n in range(2, last)]
        assert enumerator.ended(later)
        enumerator.stop()


def test_a_bounded_stream_that_is_empty_ends_and_messages_are_counted(
    rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SILENT", 0.2)
    rabbit.stream()
    given = RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT, bounded=True)
    assert run_pipeline(lambda env: env.from_source(given, NONE, "stream")) == []
    rabbit.publish(range(3))
    enumerator: Any = given.create_enumerator()
    # The broker counts from time to time.
    assert eventually(lambda: enumerator._reading.count(rabbit.queue) == 3)
    enumerator.stop()


def test_messages_that_were_removed_and_a_queue_that_is_no_stream(rabbit: Rabbit) -> None:
    reader = RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT).create_reader()
    rabbit.stream()
    rabbit.publish(range(3))
    assert read(reader, [[_range(rabbit.queue, 0, 3)]]) == ["0", "1", "2"]

    def without_the_first(stream: str, offset: Any, wait: float) -> Any:
        yield 2, b"2"

    reader._reading.messages = without_the_first  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="the messages from 0 to 1 were removed before they were read"):
        read(reader, [[_range(rabbit.queue, 0, 3)]])
    rabbit.declare(f"{rabbit.queue}-plain")
    rabbit.publish([1], f"{rabbit.queue}-plain")
    plain = RMQStreamSource(rabbit.config(), [f"{rabbit.queue}-plain"], TEXT)
    with pytest.raises(JobExecutionError, match="is a queue, not a stream"):
        run_pipeline(lambda env: env.from_source(plain, NONE, "stream"))


def _range(stream: str, start: int, end: int) -> Any:
    from firesteel.datastream.connectors import SplitRange

    return SplitRange(stream, start, end, stream)


# The sink

ACTIONS: dict[int, Any] = {}
"""What is done once when a number comes by."""


def acting(n: int) -> int:
    ACTIONS.pop(n, lambda: None)()
    return n


def _end(stream: Any, made: RMQSink) -> None:
    stream.map(str).sink_to(made).name("to rabbit")


def test_at_least_once_through_a_crash(rabbit: Rabbit) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        made = RMQSink(rabbit.config(), rabbit.queue, TEXT, correlation_id=lambda text: f"id-{text}")
        _end(env.from_collection(list(range(40))), made)

    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        config = {"firesteel.batch.max-records": "10", **crashes.config}
        run_pipeline(build, parallelism=2, config=config, restarts=1)
    found = rabbit.fetch()
    assert {n for n, _ in found} == set(range(40))
    assert len(found) > 40, "the batch that failed came again"
    assert all(identity == f"id-{n}" for n, identity in found)


def test_a_batch_is_done_when_all_of_it_is_confirmed_also_if_the_broker_is_killed(rabbit: Rabbit) -> None:
    made = RMQSink(rabbit.config(), rabbit.queue, TEXT)
    kept = []

    def crash() -> None:
        rabbit.server.crash()
        # A broker that is killed a moment after a queue was declared may have forgotten it, with all that it confirmed.
        with contextlib.suppress(ChannelClosedByBroker):
            kept.extend(range(50) if rabbit.waiting() == 50 else ())

    ACTIONS[50] = crash
    run_pipeline(
        lambda env: _end(env.from_collection(list(range(100))).map(acting), made),
        config={"firesteel.batch.max-records": "25"},
    )
    assert {n for n, _ in rabbit.fetch()} == {*kept, *range(50, 100)}


# What one is told


def failure(made: RMQSink) -> JobExecutionError:
    made.retry_seconds = 0.05
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection([1]), made))
    return caught.value


def test_a_login_that_is_refused_and_a_password_that_is_told_to_nobody(rabbit: Rabbit) -> None:
    secret = "wr0ng-but-s3cret"
    config = rabbit.config(password=secret)
    made = RMQSink(config, rabbit.queue, TEXT)
    made.retry_seconds = 10
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection([1]), made))
    error = caught.value
    assert error.kind is FailureKind.PERMANENT
    assert "refused the connection: ACCESS_REFUSED - Login was refused" in str(error)
    assert "Check the user name, the password" in str(error)
    assert secret not in f"{error} {error!r} {error.cause_text} {config!r} {config._address!r}"
    with pytest.raises(JobExecutionError, match="refused the connection"):
        run_pipeline(lambda env: env.add_source(RMQSource(config, rabbit.queue, False, TEXT)), restarts=2)


def test_a_broker_that_is_not_there(rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch) -> None:
    away = rabbit.config(port=1)
    error = failure(RMQSink(away, rabbit.queue, TEXT))
    assert error.kind is FailureKind.PASSING
    assert "RabbitMQ at 127.0.0.1:1 cannot be reached" in str(error)
    for module in (queues, streams):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    for made in (RMQSource(away, "q", False, TEXT), RMQStreamSource(away, ["q"], TEXT)):
        with pytest.raises(JobExecutionError, match="cannot be reached"):
            run_pipeline(lambda env, made=made: env.add_source(made))


def test_a_stream_that_is_missing_and_a_queue_that_is_deleted(rabbit: Rabbit) -> None:
    with pytest.raises(JobExecutionError, match=r"refused to read the stream .*NOT_FOUND.*Declare it first") as caught:
        run_pipeline(lambda env: env.add_source(RMQStreamSource(rabbit.config(), [rabbit.queue], TEXT)), restarts=2)
    assert caught.value.kind is FailureKind.PERMANENT
    made = RMQSink(rabbit.config(), rabbit.queue, TEXT)
    rabbit.declare()
    ACTIONS[15] = rabbit.delete
    with pytest.raises(JobExecutionError, match=f"has no queue '{rabbit.queue}' for a message: NO_ROUTE") as caught:
        run_pipeline(
            lambda env: _end(env.from_collection(list(range(30))).map(acting), made),
            config={"firesteel.batch.max-records": "10"},
        )
    assert caught.value.kind is FailureKind.PERMANENT


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    builder = RMQConnectionConfig.Builder
    with pytest.raises(ProgramError, match=r"needs an address"):
        builder().build()
    for uri in ("http://ada:hunter2@db", "db", "amqp://db:x"):
        with pytest.raises(ProgramError, match="A RabbitMQ is addressed as amqp://") as caught:
            builder().set_uri(uri).build()
        assert "hunter2" not in str(caught.value)
    config = builder().set_uri("amqp://ada:hunter2@db:5673/shop").set_connection_timeout(500).build()
    assert (config.get_host(), config.get_port(), config.get_virtual_host()) == ("db", 5673, "shop")
    assert (config.get_user_name(), config.get_password(), config.get_connection_timeout()) == ("ada", "hunter2", 500)
    assert config.is_automatic_recovery()
    assert "hunter2" not in repr(config)
    with pytest.raises(ProgramError, match="start must be an offset"):
        RMQStreamSource(config, ["s"], TEXT, start="last")
    with pytest.raises(ProgramError, match="streams must be a list"):
        RMQStreamSource(config, "s", TEXT)
    with pytest.raises(ProgramError, match="must be a SerializationSchema"):
        RMQSink(config, "q", str)  # type: ignore[arg-type]


def test_the_program_of_the_page_runs(rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "rabbitmq.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("FIRESTEEL_RABBITMQ_URI", rabbit.uri)
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    namespace: dict[str, Any] = {"__name__": "docs.rabbitmq"}
    exec(code.replace("env.execute(", "job = env.execute_async("), namespace)
    rabbit.declare("orders")
    rabbit.publish([100, 5000], "orders")
    rabbit.declare("large-orders")
    assert eventually(lambda: rabbit.waiting("large-orders") > 0)
    namespace["job"].cancel().result()
    assert [n for n, _ in rabbit.fetch("large-orders")] == [5000]
