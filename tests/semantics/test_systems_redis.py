"""Streams of a real Redis as a source, commands as a sink: through crashes, and with what one is told."""

from __future__ import annotations

import json
import logging
import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kit import eventually
from rediskit import RedisDb

from firesteel.common import WatermarkStrategy
from firesteel.connectors.redis import streams
from firesteel.connectors.redis.transactions import send_once
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee, SinkBatch
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.redis import RedisEntry, RedisSink, RedisSource
from firesteel.errors import ConnectorError, FailureKind, InputError, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment, run_pipeline

NONE = WatermarkStrategy.no_watermarks()
SMALL = {"firesteel.batch.max-records": "10"}
ONCE = DeliveryGuarantee.EXACTLY_ONCE
AT_LEAST = DeliveryGuarantee.AT_LEAST_ONCE


def source(redis: RedisDb, *names: str, **options: Any) -> RedisSource:
    return RedisSource(redis.url, names, **{"password": redis.password, "bounded": True, **options})


def sink(redis: RedisDb, commands: Any, guarantee: DeliveryGuarantee = ONCE, **options: Any) -> RedisSink:
    made = RedisSink(redis.url, commands, guarantee, **{"password": redis.password, **options})
    made.max_records = 3
    return made


def _end(stream: Any, sink: Any) -> None:
    stream.sink_to(sink).name("to redis")


def _n(entry: RedisEntry) -> int:
    return int(entry.fields["n"])


def push(n: int) -> tuple[Any, ...]:
    return ("RPUSH", "numbers", n)


# The sink


@pytest.mark.parametrize("point", CrashPoint)
def test_exactly_once_through_a_crash(redis: RedisDb, point: CrashPoint) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(list(range(40)))
        numbers.sink_to(sink(redis, push))
        numbers.rebalance().sink_to(sink(redis, lambda n: [("INCRBY", "sum", n), ("XADD", "log", "*", "n", n)]))

    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
        assert crashes.reached(point) > 2
    assert Counter(map(int, redis.client.lrange("numbers", 0, -1))) == Counter(range(40))
    assert int(redis.client.get("sum")) == sum(range(40))
    assert sorted(redis.numbers("log")) == list(range(40))


def test_at_least_once_with_commands_that_may_be_repeated(redis: RedisDb) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        pairs = env.from_collection(list(range(40))).map(lambda n: (n % 3, 1)).key_by(lambda pair: pair[0]).sum(1)
        pairs.sink_to(sink(redis, lambda pair: ("HSET", "counts", pair[0], pair[1]), AT_LEAST))

    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        run_pipeline(build, parallelism=2, config=SMALL | crashes.config, restarts=1)
    assert redis.client.hgetall("counts") == {"0": "14", "1": "13", "2": "13"}


def test_a_driver_that_was_thought_dead_cannot_write_a_batch_again(redis: RedisDb) -> None:
    zombie, driver = sink(redis, push), sink(redis, push)
    batch = SinkBatch([driver.convert(1)], None, "fs-test", 7)
    assert zombie.last_written("fs-test") is None
    driver.write(batch)
    zombie.write(batch)
    assert redis.client.lrange("numbers", 0, -1) == ["1"]
    assert zombie.last_written("fs-test") == 7


def test_a_connection_that_is_lost_between_the_look_at_the_marker_and_the_transaction(
    redis: RedisDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = sink(redis, push)
    made = once._client.get().pipeline
    cuts = iter([True, False])

    def pipeline(**options: Any) -> Any:
        found = made(**options)
        if next(cuts):
            watch = found.watch

            def watch_and_lose(*names: str) -> None:
                watch(*names)
                # The server ends all connections but the one that asks for it.
                redis.client.client_kill_filter(_type="normal", skipme=True)

            found.watch = watch_and_lose
        return found

    monkeypatch.setattr(once._client.get(), "pipeline", pipeline)
    with pytest.raises(ConnectorError) as caught:
        once.write(SinkBatch([once.convert(1)], None, "fs-test", 7))
    assert caught.value.kind is FailureKind.PASSING
    once.write(SinkBatch([once.convert(1)], None, "fs-test", 7))
    assert redis.client.lrange("numbers", 0, -1) == ["1"]


def mixed(n: int) -> list[tuple[Any, ...]]:
    """Two commands that may be refused on their own."""
    return [("RPUSH", "numbers", n), ("INCRBY", "sum", n)]


def test_what_was_refused_and_nothing_else_is_sent_when_the_job_is_started_again(redis: RedisDb) -> None:
    identity = SinkIdentity(job_name="j", job_id="4711", sink_uid="s")
    writer = sink(redis, mixed).create_writer(WriterContext(identity))
    writer.write_all(iter(range(1, 6)), None)  # type: ignore[attr-defined]
    writer.flush(end_of_input=True)
    portions = writer.prepare_commit()
    assert len(portions) == 2

    def start() -> None:
        """What a start of the job does for a batch whose commit is not done."""
        context = CommitterContext(identity)
        context._checkpoint_id = 3
        committer = sink(redis, mixed).create_committer(context)
        assert committer is not None
        committer.recover_and_commit(portions)

    redis.client.set("numbers", "text")
    for left in ("3 of 6", "3 of 3"):
        with pytest.raises(ConnectorError, match="WRONGTYPE") as caught:
            start()
        assert caught.value.kind is FailureKind.PERMANENT
        assert f"Refused were {left} commands of this batch, the others are done." in str(caught.value)
        assert "sent again when the job is started again, the others are not: remove the cause" in str(caught.value)
        assert redis.client.get("sum") == str(1 + 2 + 3)
    redis.client.delete("numbers")
    for _ in range(2):
        start()
        assert redis.client.lrange("numbers", 0, -1) == ["1", "2", "3", "4", "5"]
        assert redis.client.get("sum") == str(sum(range(1, 6)))


def test_a_driver_that_dies_before_it_hears_which_commands_were_refused(
    redis: RedisDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = sink(redis, mixed)
    batch = SinkBatch([once.convert(1), once.convert(2)], None, "fs-test", 7)
    made = once._client.get().pipeline

    def deaf(**options: Any) -> Any:
        found = made(**options)
        execute = found.execute

        def execute_and_die(**given: Any) -> Any:
            execute(**given)
            raise KeyboardInterrupt

        found.execute = execute_and_die
        return found

    redis.client.set("numbers", "text")
    with monkeypatch.context() as patched:
        patched.setattr(once._client.get(), "pipeline", deaf)
        with pytest.raises(KeyboardInterrupt):
            once.write(batch)
    assert once.last_written("fs-test") == 6
    redis.client.delete("numbers")
    # A server that was started anew knows no scripts.
    redis.client.script_flush()
    once.write(batch)
    assert once.last_written("fs-test") == 7
    assert (redis.client.lrange("numbers", 0, -1), redis.client.get("sum")) == (["1", "2"], "3")


def test_commands_of_a_large_batch_are_called_together_and_refused_one_by_one(redis: RedisDb) -> None:
    """Also the first and the last one of those that a script calls, and one whose answer is empty."""
    refused = {0, 99, 100, 150, 249}
    commands: list[tuple[Any, ...]] = [
        ("RPUSH", "text" if n in refused else "numbers", *range(n, n + 1 + n % 3)) for n in range(250)
    ]
    commands[7] = ("GET", "nothing")
    redis.client.set("text", "text")

    answers = send_once(redis.client, "marker", 5, commands)

    assert [command for command, _ in answers] == commands
    assert {n for n, (_, answer) in enumerate(answers) if isinstance(answer, Exception)} == refused
    assert answers[7][1] is None
    assert redis.client.get("marker") == "5 " + " ".join(map(str, sorted(refused)))
    redis.client.delete("text")
    again = send_once(redis.client, "marker", 5, commands)
    assert [command for command, _ in again] == [commands[n] for n in sorted(refused)]
    assert redis.client.get("marker") == "5"
    pushed = [str(number) for n in range(250) if n not in {7, *refused} for number in range(n, n + 1 + n % 3)]
    assert redis.client.lrange("numbers", 0, -1) == pushed


def test_a_user_who_may_not_note_what_was_refused(redis: RedisDb) -> None:
    """Without the right to APPEND nothing is done at all, so that nothing counts as done."""
    redis.client.acl_setuser("noter", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-append"])
    redis.client.acl_setuser("pusher", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all"])
    redis.client.set("numbers", "text")
    try:
        once = sink(redis, mixed, user_name="noter", password="pw")
        batch = SinkBatch([once.convert(1), once.convert(2)], None, "fs-test", 7)
        with pytest.raises(ConnectorError, match=r"append.*Grant the user the right to do it") as caught:
            once.write(batch)
        assert caught.value.kind is FailureKind.PERMANENT
        assert once.last_written("fs-test") is None
        assert redis.client.get("sum") is None
        allowed = sink(redis, mixed, user_name="pusher", password="pw")
        with pytest.raises(ConnectorError, match="Refused were 2 of 4 commands"):
            allowed.write(batch)
        assert allowed.last_written("fs-test") == 6
    finally:
        redis.client.acl_deluser("noter", "pusher")


def test_a_node_of_a_cluster_is_called_so(redis: RedisDb) -> None:
    from redis.exceptions import MovedError

    found = sink(redis, push)._client.as_connector_error(MovedError("3999 127.0.0.1:6381"), "the command RPUSH")
    assert "the command RPUSH: 3999 127.0.0.1:6381. It is a node of a Redis Cluster" in str(found)
    assert found.kind is FailureKind.PERMANENT


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("eval", "return 1", 0), "eval cannot be sent exactly once.*use DeliveryGuarantee.AT_LEAST_ONCE"),
        (("RPUSH", "numbers", *range(5000)), "has up to 5000 parts; RPUSH has 5002. Return a list of several"),
    ],
)
def test_what_cannot_be_sent_exactly_once_is_refused_in_the_task(
    redis: RedisDb, command: tuple[Any, ...], text: str
) -> None:
    with pytest.raises(ProgramError, match=text):
        sink(redis, lambda n: command).convert(1)
    assert sink(redis, lambda n: command, AT_LEAST).convert(1) == [command]
    if command[0] == "RPUSH":
        once = sink(redis, lambda n: command[:5000])
        once.write(SinkBatch([once.convert(1)], None, "fs-test", 7))
        assert redis.client.llen("numbers") == 4998


# The source


@pytest.mark.parametrize("point", [CrashPoint.PREPARED, CrashPoint.BEFORE_COMMIT])
def test_streams_are_read_once_through_a_crash(redis: RedisDb, point: CrashPoint) -> None:
    redis.add("one", range(35))
    redis.add("two", range(100, 105))
    streams = source(redis, "one", "two", "none")
    with CommitCrashes({point: ["pass", "error"]}) as crashes:
        run_pipeline(
            lambda env: _end(env.from_source(streams, NONE, "streams").map(_n), sink(redis, push)),
            parallelism=2,
            config=SMALL | crashes.config,
            restarts=1,
        )
    assert Counter(map(int, redis.client.lrange("numbers", 0, -1))) == Counter([*range(35), *range(100, 105)])


def test_entries_have_their_id_their_fields_and_the_time_of_the_server(redis: RedisDb) -> None:
    redis.client.xadd("one", {"page": "/", "user": "ädä"}, id="1700000000000-5")
    (found,) = run_pipeline(lambda env: env.from_source(source(redis, "one"), NONE, "s"))
    assert found == RedisEntry("one", "1700000000000-5", {"page": "/", "user": "ädä"})
    assert found.timestamp == 1_700_000_000_000
    (found,) = run_pipeline(lambda env: env.from_source(source(redis, "one", decode=False), NONE, "s"))
    assert found.fields == {b"page": b"/", b"user": "ädä".encode()}


def test_a_stream_that_grows_and_one_that_appears(redis: RedisDb) -> None:
    ids = redis.add("one", range(5))
    env = memory_environment(2)
    growing = env.from_source(source(redis, "one", "two", bounded=False, start=ids[1]), NONE, "s")
    growing.map(_n).sink_to(sink(redis, push))
    job = env.execute_async("streams")

    def found() -> list[int]:
        return sorted(map(int, redis.client.lrange("numbers", 0, -1)))

    assert eventually(lambda: found() == [2, 3, 4])
    redis.add("two", [10, 11])
    redis.add("one", [5])
    assert eventually(lambda: found() == [2, 3, 4, 5, 10, 11])
    job.cancel().result()


def _read_all(given: RedisSource, position: Any) -> list[int]:
    """The rest of a bounded source, by a driver that was started anew; positions travel as JSON."""
    enumerator, reader, found = given.create_enumerator(), given.create_reader(), []
    while not enumerator.ended(position):
        later = json.loads(json.dumps(enumerator.latest(position, 2)))
        for split, start, end, *_ in enumerator.plan(position, later, 1)[0]:
            found += [_n(entry) for piece in reader.read(split, start, end) for entry in piece.values]
        position = later
    reader.close()
    enumerator.stop()
    return found


def test_a_restart_does_not_move_the_end_of_a_bounded_source(redis: RedisDb) -> None:
    ids = redis.add("one", range(5))
    given = source(redis, "one", "none")
    enumerator = given.create_enumerator()
    position = json.loads(json.dumps(enumerator.latest(enumerator.initial(), 2)))
    enumerator.stop()
    redis.add("one", range(5, 9))
    redis.add("none", [100])
    assert position["one"][1] == {
        "id": ids[1],
        "read": 2,
        "stop": ids[4],
        "added": 2,
        "stop_added": 5,
        "deleted": "0-0",
    }
    assert _read_all(given, position) == [2, 3, 4]
    # Of former versions: one that says where it ends, and one whose end is what there is now.
    assert _read_all(given, {"one": [["0-0", 0], [ids[1], 2, ids[4]]], "none": [["0-0", 0], ["0-0", 0, "0-0"]]}) == [
        2,
        3,
        4,
    ]
    former = {"one": [["0-0", 0], [ids[1], 2]], "none": [["0-0", 0], ["0-0", 0]]}
    assert sorted(_read_all(given, former)) == [*range(2, 9), 100]


def test_from_the_newest_on(redis: RedisDb) -> None:
    redis.add("one", range(5))
    enumerator = source(redis, "one", bounded=False, start="$").create_enumerator()
    position = enumerator.latest(enumerator.initial(), 10)
    redis.add("one", [7])
    later = enumerator.latest(position, 10)
    assert enumerator.count(position, later) == 1
    enumerator.stop()


@pytest.mark.parametrize("ignored", [False, True])
def test_entries_that_are_gone_before_they_were_read(redis: RedisDb, ignored: bool) -> None:
    ids = redis.add("one", range(30))
    given = source(redis, "one", bounded=False, ignore_deleted=ignored)
    enumerator, reader = given.create_enumerator(), given.create_reader()
    first = enumerator.latest(enumerator.initial(), 10)
    ((planned,),) = enumerator.plan(None, first, 1)
    redis.client.xdel("one", ids[3], ids[15])
    if ignored:
        entries = [entry for piece in reader.read(*planned[:3]) for entry in piece.values]  # type: ignore[union-attr]
        assert [_n(entry) for entry in entries] == [0, 1, 2, *range(4, 11)][: len(entries)]
        assert enumerator.count(first, enumerator.latest(first, 100)) == 19
    else:
        with pytest.raises(Exception, match="were deleted before they were read"):
            list(reader.read(*planned[:3]))
        with pytest.raises(Exception, match=f"entries behind {ids[9]} were deleted before they were read"):
            enumerator.latest(first, 100)
    reader.close()
    enumerator.stop()


def _latest(given: RedisSource, position: Any = None, records: int = 10) -> Any:
    """What a driver plans next; positions travel as JSON."""
    enumerator = given.create_enumerator()
    try:
        return json.loads(json.dumps(enumerator.latest(position, records)))
    finally:
        enumerator.stop()


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("records", [3, 10, 100])
def test_entries_that_are_trimmed_away_before_they_were_read(redis: RedisDb, records: int, bounded: bool) -> None:
    ids = redis.add("one", range(30))
    given = source(redis, "one", bounded=bounded)
    position = _latest(given)
    redis.client.xtrim("one", maxlen=20, approximate=False)
    after_read = _latest(given, position, records)
    assert after_read["one"][1]["read"] == min(30, 10 + records), "these were read"
    redis.client.xtrim("one", maxlen=5, approximate=False)
    with pytest.raises(InputError, match=f"15 entries behind {ids[9]} were trimmed away before they were read"):
        _latest(given, position, records)
    redis.client.xtrim("one", maxlen=0, approximate=False)
    with pytest.raises(InputError, match="20 entries behind"):
        _latest(given, position, records)
    ignoring = source(redis, "one", bounded=bounded, ignore_deleted=True)
    redis.add("one", [30])
    after = _latest(ignoring, position, records)
    assert after["one"][1]["read"] == (10 if bounded else 11)
    # From there on all is there again.
    redis.add("one", range(31, 35))
    assert _latest(given, after, 10)["one"][1]["read"] == (10 if bounded else 15)


def test_what_was_deleted_before_the_job_began_is_no_error(redis: RedisDb) -> None:
    ids = redis.add("one", range(30))
    redis.client.xdel("one", ids[3], ids[20])
    redis.client.xtrim("one", maxlen=25, approximate=False)
    present = redis.numbers("one")
    for start, expected in (("0-0", present), (ids[10], [n for n in present if n > 10]), ("$", [])):
        given = source(redis, "one", start=start)
        assert _read_all(given, None) == expected
    growing = source(redis, "one", bounded=False, start=ids[10])
    position = _latest(growing)
    redis.client.xdel("one", ids[25])
    with pytest.raises(InputError, match=f"were deleted before they were read, up to {ids[25]}"):
        _latest(growing, position)


def test_a_deletion_that_only_the_count_shows(redis: RedisDb) -> None:
    ids = redis.add("one", range(30))
    redis.client.xdel("one", ids[29])
    given = source(redis, "one", bounded=False)
    position = _latest(given)
    # The greatest id that was deleted stays what it was when the job began.
    redis.client.xdel("one", ids[20])
    with pytest.raises(InputError, match=r"1 entries between .* were deleted before they were read"):
        _latest(given, _latest(given, position, 5), 100)


def test_a_start_that_lies_in_the_future_and_streams_that_come_later(redis: RedisDb) -> None:
    given = source(redis, "one", bounded=False, start="5-0")
    position = _latest(given)
    for n in range(1, 9):
        redis.client.xadd("one", {"n": n}, id=f"{n}-0")
    position = _latest(given, position, 2)
    assert (position["one"][1]["id"], position["one"][1]["read"]) == ("7-0", 2)
    redis.client.xtrim("one", maxlen=0, approximate=False)
    with pytest.raises(InputError, match="1 entries behind 7-0 were trimmed away"):
        _latest(given, position)


def test_a_stream_that_was_deleted_and_made_anew(redis: RedisDb) -> None:
    redis.add("one", range(30))
    given = source(redis, "one", bounded=False)
    position = _latest(given)
    redis.client.delete("one")
    assert _latest(given, position) == position
    redis.add("one", range(5))
    with pytest.raises(InputError, match=r"it was deleted and made anew after .* was read, or the server has lost"):
        _latest(given, position)
    assert _latest(source(redis, "one", bounded=False, ignore_deleted=True), position)["one"][1]["read"] == 15


def test_the_program_of_the_page_runs(redis: RedisDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "redis.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    for page_name in ("/", "/shop", "/"):
        redis.client.xadd("clicks", {"page": page_name})
    variables = {"FIRESTEEL_REDIS_URL": redis.url, "FIRESTEEL_REDIS_PASSWORD": redis.password}
    for name, value in {**variables, "FIRESTEEL_MASTER": "memory"}.items():
        monkeypatch.setenv(name, value)
    runpy.run_path(str(tmp_path / "page.py"), run_name="__main__")
    assert redis.client.hgetall("hits") == {"/": "2", "/shop": "1"}
    assert redis.client.get("total") == "3"


# Servers that die


@pytest.mark.timeout(300)
def test_the_server_is_killed_and_every_number_is_there_once(redis: RedisDb) -> None:
    total = 800
    env = memory_environment(2, config={"firesteel.batch.max-records": "50"})
    numbers = env.from_source(DataGeneratorSource(lambda n: n, total, 400), NONE, "numbers")
    numbers.rebalance().sink_to(sink(redis, lambda n: [("XADD", "log", "*", "n", n), push(n)]))
    again = env.from_source(source(redis, "log", bounded=False), NONE, "log").map(_n)
    again.sink_to(sink(redis, lambda n: ("RPUSH", "copies", n)))
    job = env.execute_async("through Redis")
    for reached, seconds_down in ((100, 0.0), (400, 0.3)):

        def there(reached: int = reached) -> bool:
            return bool(redis.client.llen("copies") >= reached)

        assert eventually(there)
        redis.server.crash(seconds_down)
    assert eventually(lambda: redis.client.llen("copies") >= total)
    job.cancel().result()
    for key in ("numbers", "copies"):
        assert Counter(map(int, redis.client.lrange(key, 0, -1))) == Counter(range(total))


# What one is told


def failure(redis: RedisDb, commands: Any, guarantee: DeliveryGuarantee, **options: Any) -> JobExecutionError:
    made = sink(redis, commands, guarantee, **options)
    made.retry_seconds = 0.05
    with pytest.raises(JobExecutionError) as caught:
        run_pipeline(lambda env: _end(env.from_collection([1, 2]), made))
    return caught.value


@pytest.mark.parametrize("guarantee", [AT_LEAST, ONCE])
def test_a_login_that_is_refused_and_a_password_that_is_told_to_nobody(
    redis: RedisDb, guarantee: DeliveryGuarantee, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "wr0ng-but-s3cret"
    with caplog.at_level(logging.DEBUG):
        error = failure(redis, push, guarantee, password=secret)
    assert error.kind is FailureKind.PERMANENT
    assert "Check the user name and the password." in str(error)
    shown = [str(error), repr(error), error.cause_text or "", repr(error.__cause__), *caplog.messages]
    assert [text for text in shown if secret in text] == []
    with_password = RedisSink(f"redis://ada:{secret}@db/0", push)
    assert secret not in f"{with_password._client.address} {with_password._client.address!r}"


@pytest.mark.parametrize("guarantee", [AT_LEAST, ONCE])
def test_a_server_that_is_not_there(redis: RedisDb, guarantee: DeliveryGuarantee) -> None:
    made = RedisSink("redis://127.0.0.1:1/0", push, guarantee)
    made.retry_seconds = 0.05
    with pytest.raises(JobExecutionError, match=r"Redis at redis://127\.0\.0\.1:1/0 cannot be reached") as caught:
        run_pipeline(lambda env: _end(env.from_collection([1]), made))
    assert caught.value.kind is FailureKind.PASSING
    assert "Check that it runs there." in str(caught.value)


def test_a_certificate_that_is_not_trusted(untrusted_server: int) -> None:
    made = RedisSink(f"rediss://127.0.0.1:{untrusted_server}/0", push)
    with pytest.raises(ConnectorError, match=r"a certificate that is not trusted: self.signed certificate") as caught:
        made.write(SinkBatch([made.convert(1)]))
    assert caught.value.kind is FailureKind.PERMANENT


@pytest.mark.parametrize("guarantee", [AT_LEAST, ONCE])
def test_a_key_of_another_kind_and_a_command_that_is_none(redis: RedisDb, guarantee: DeliveryGuarantee) -> None:
    redis.client.set("numbers", "text")
    error = failure(redis, push, guarantee)
    assert error.kind is FailureKind.PERMANENT
    assert "WRONGTYPE" in str(error)
    assert "The key holds a value of another kind." in str(error)
    assert "('RPUSH', 'numbers', 1)" in str(error)
    if guarantee is ONCE:
        assert "Refused were 2 of 2 commands of this batch" in str(error)
    error = failure(redis, lambda n: ("RPUSHH", "numbers", n), guarantee)
    assert re.search("[Uu]nknown (Redis )?command", str(error))
    assert error.kind is FailureKind.PERMANENT


def test_a_full_memory_is_back_pressure(redis: RedisDb) -> None:
    redis.client.config_set("maxmemory", "1")
    try:
        error = failure(redis, push, AT_LEAST)
    finally:
        redis.client.config_set("maxmemory", "0")
    assert "command not allowed when used memory > 'maxmemory'" in str(error)
    assert error.kind is FailureKind.PASSING


@pytest.mark.parametrize(
    ("commands", "text"),
    [
        (lambda n: (), r"begins with its name, such as \('SET', key, value\); got \(\)"),
        (lambda n: ("SET", "a", {"b": n}), "SET has {'b': 1} of dict"),
        (lambda n: ("SET", "a", None), "SET has None of NoneType"),
    ],
)
def test_what_is_no_command_is_refused_in_the_task(redis: RedisDb, commands: Any, text: str) -> None:
    with pytest.raises(JobExecutionError, match=text) as caught:
        run_pipeline(lambda env: _end(env.from_collection([1]), sink(redis, commands)), restarts=2)
    assert caught.value.element == "1"
    assert caught.value.kind is FailureKind.PERMANENT


def test_a_stream_that_is_none(redis: RedisDb, monkeypatch: pytest.MonkeyPatch) -> None:
    redis.client.set("one", "text")
    with pytest.raises(JobExecutionError, match="refused a look at stream 'one': WRONGTYPE"):
        run_pipeline(lambda env: env.from_source(source(redis, "one"), NONE, "s"))
    monkeypatch.setattr(streams, "RETRY_SECONDS", 0.05)
    away = RedisSource("redis://127.0.0.1:1/0", ["one"])
    with pytest.raises(JobExecutionError, match="cannot be reached"):
        run_pipeline(lambda env: env.from_source(away, NONE, "s"))


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match="streams must be a list of names, got 'clicks'"):
        RedisSource("redis://db", "clicks")
    with pytest.raises(ProgramError, match="start must be an id"):
        RedisSource("redis://db", ["clicks"], start="yesterday")
    with pytest.raises(ProgramError, match="got one that starts with 'http'"):
        RedisSource("http://ada:hunter2@db", ["clicks"])
    with pytest.raises(ProgramError, match="commands must be a function"):
        RedisSink("redis://db", ("SET", "a", "b"))  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["redis://db:port/0", "redis://:hunter2@db:99999", "rediss://db:0"])
def test_a_port_that_is_no_number_is_refused_when_the_program_is_built(url: str) -> None:
    from firesteel.connectors.redis.connecting import RedisAddress

    with pytest.raises(ProgramError, match="its port is not a number up to 65535") as caught:
        RedisAddress.of(url)
    assert "hunter2" not in str(caught.value)
