"""Documents with versions, in bulk requests: through failures, with nodes that are busy, and with what one is told.

The cluster is one in this process that answers as a real one does (``elasticsearchkit``). The same sink on a real one
is in ``tests/servers``.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from elasticsearchkit import FakeCluster

from firesteel.common import Row, Secret
from firesteel.connectors.elasticsearch.bulk import Cluster, Connection
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    FlushBackoffType,
)
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

SMALL = {"firesteel.batch.max-records": "10"}
BY_KEY = ElasticsearchEmitter.static_index("numbers", "key")
NO_KEY = ElasticsearchEmitter.of(lambda _: "numbers", lambda _: None, lambda value: value)  # type: ignore[arg-type, return-value]


def builder(cluster: FakeCluster, emitter: ElasticsearchEmitter = BY_KEY, **options: Any) -> Elasticsearch7SinkBuilder:
    made = Elasticsearch7SinkBuilder().set_emitter(emitter).set_hosts([cluster.host])
    made.set_connection_username(cluster.user).set_connection_password(options.pop("password", cluster.password))
    for name, value in options.items():
        getattr(made, f"set_{name}")(*value if isinstance(value, tuple) else (value,))
    return made


def write(made: ElasticsearchSink, values: list[Any], config: dict[str, str] | None = None, restarts: int = 0) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(values).sink_to(made).name("to elastic")

    run_pipeline(build, config=SMALL | (config or {}), restarts=restarts)


def pair(key: Any, n: Any) -> dict[str, Any]:
    return {"key": str(key), "n": n}


def test_a_batch_that_comes_again_changes_nothing(fake_cluster: FakeCluster) -> None:
    values = [pair(n % 7, n) for n in range(40)]
    with CommitCrashes({CrashPoint.PREPARED: ["pass", "error"]}) as crashes:
        write(builder(fake_cluster).build(), values, crashes.config, restarts=1)
    assert fake_cluster.numbers("numbers") == {str(n % 7): n for n in range(33, 40)}
    assert len(fake_cluster.taken) > 40, "the batch came again"
    # With the versions that it had, not with new ones.
    assert {200, 201, 409} >= set(fake_cluster.taken)
    assert 409 in fake_cluster.taken, "an older document of the batch found a newer one"


def test_an_older_version_cannot_undo_a_newer_one(fake_cluster: FakeCluster) -> None:
    versioned = ElasticsearchEmitter.static_index("numbers", "key", version_field="v")
    made = builder(fake_cluster, versioned).build()
    write(made, [{"key": "a", "n": n, "v": version} for n, version in ((1, 5), (2, 9), (3, 7), (4, 9))])
    assert fake_cluster.numbers("numbers") == {"a": 4}
    assert fake_cluster.taken == [201, 200, 409, 200]


def test_documents_of_a_request_that_are_rejected_are_sent_again_and_only_those(fake_cluster: FakeCluster) -> None:
    fake_cluster.busy = [3, 2, 0]
    made = builder(fake_cluster, bulk_flush_backoff_strategy=(FlushBackoffType.EXPONENTIAL, 3, 10)).build()
    pauses: list[float] = []
    made._sleep = pauses.append
    # Through pickle the pauses would be another list's: as a task does it.
    from firesteel.datastream.connectors.base import WriterContext
    from firesteel.datastream.connectors.batch_sink import SinkBatch

    made.open(WriterContext(clock=lambda: 1_700_000_000_000))
    made.write(SinkBatch([made.convert(pair(n, n)) for n in range(5)]))
    made.close()
    assert fake_cluster.sent == [5, 3, 2]
    assert pauses == [0.01, 0.02]
    assert fake_cluster.numbers("numbers") == {str(n): n for n in range(5)}
    assert {version for version, _ in fake_cluster.documents.values()} == {
        1_700_000_000_000 * (1 << 21) + n for n in range(5)
    }


def test_busy_documents_are_sent_again_before_refused_ones_are_told(fake_cluster: FakeCluster) -> None:
    from firesteel.datastream.connectors.base import WriterContext
    from firesteel.datastream.connectors.batch_sink import SinkBatch

    made = builder(fake_cluster, bulk_flush_backoff_strategy=(FlushBackoffType.EXPONENTIAL, 2, 10)).build()
    pauses: list[float] = []
    made._sleep = pauses.append
    made.open(WriterContext(clock=lambda: 1_700_000_000_000))
    # The first two of the first request are busy; of these the second is refused when it is sent again.
    fake_cluster.busy = [2, 0]
    values = [pair(0, 0), pair(1, "one"), pair(2, "two"), pair(3, 3), pair(4, "four"), pair(5, "five")]
    with pytest.raises(ConnectorError, match="refused 4 of 6 documents") as caught:
        made.write(SinkBatch([made.convert(value) for value in values]))
    assert fake_cluster.sent == [6, 2]
    assert pauses == [0.01]
    assert fake_cluster.numbers("numbers") == {"0": 0, "3": 3}, "those that were busy are there"
    assert caught.value.kind is FailureKind.PERMANENT
    shown = [text in str(caught.value) for text in ("The first one", "'one'}", "The third one", "'four'}", "'five'}")]
    assert shown == [True, True, True, True, False]
    fake_cluster.busy = [1, 1, 1]
    with pytest.raises(ConnectorError, match=r"refused 1 of 2 documents. It was too busy for 1 others.") as caught:
        made.write(SinkBatch([made.convert(value) for value in values[:2]]))
    assert caught.value.kind is FailureKind.PERMANENT, "what is refused is refused the next time, too"
    made.close()


def test_a_cluster_that_stays_busy_and_one_that_is_back(fake_cluster: FakeCluster) -> None:
    fake_cluster.busy = [9] * 9
    made = builder(fake_cluster, bulk_flush_backoff_strategy=(FlushBackoffType.CONSTANT, 1, 1)).build()
    made.retry_seconds = 0
    with pytest.raises(
        JobExecutionError, match=r"could not take 1 of 1 documents, sent 2 times: rejected: full"
    ) as caught:
        write(made, [pair(1, 1)])
    assert caught.value.kind is FailureKind.PASSING
    fake_cluster.busy = []
    fake_cluster.statuses = [429, 503]
    write(builder(fake_cluster).build(), [pair(1, 1)])
    assert fake_cluster.numbers("numbers") == {"1": 1}


def test_requests_are_limited_in_documents_and_bytes(fake_cluster: FakeCluster) -> None:
    values = [{"key": str(n), "n": n, "text": "x" * 400_000} for n in range(6)]
    write(builder(fake_cluster, bulk_flush_max_size_mb=1).build(), values)
    assert fake_cluster.sent == [2, 2, 2]
    fake_cluster.sent.clear()
    write(builder(fake_cluster, bulk_flush_max_actions=4).build(), [pair(n, n) for n in range(10)])
    assert fake_cluster.sent == [4, 4, 2]


def test_rows_dynamic_indices_deletions_and_documents_without_an_id(fake_cluster: FakeCluster) -> None:
    row = Row(index="days", key="a", n=1, day=datetime.date(2020, 2, 29), price=Decimal("2.50"))
    write(builder(fake_cluster, ElasticsearchEmitter.dynamic_index("index", "key")).build(), [row])
    ((_, document),) = fake_cluster.documents.values()
    assert document == {"index": "days", "key": "a", "n": 1, "day": "2020-02-29", "price": "2.50"}
    write(builder(fake_cluster, ElasticsearchEmitter.static_index("log")).build(), [pair("a", 5)])
    assert fake_cluster.unnamed == [pair("a", 5)]
    changes = ElasticsearchEmitter.of(lambda p: "numbers", lambda p: p[0], lambda p: None if p[1] < 0 else {"n": p[1]})
    write(builder(fake_cluster, changes).build(), [("a", 1), ("b", 2), ("a", -1), ("c", -1)])
    assert fake_cluster.numbers("numbers") == {"b": 2}


# What one is told


def failure(made: ElasticsearchSink, values: list[Any]) -> JobExecutionError:
    made.retry_seconds = 0.05
    with pytest.raises(JobExecutionError) as caught:
        write(made, values, restarts=2)
    return caught.value


def test_a_document_that_is_refused_is_told_with_its_record(fake_cluster: FakeCluster) -> None:
    error = failure(builder(fake_cluster).build(), [pair(1, 1), pair(2, "two"), pair(3, 3), pair(4, "four")])
    assert error.kind is FailureKind.PERMANENT
    assert "refused 2 of 4 documents. The first one: mapper_parsing_exception: failed to parse field [n]" in str(error)
    assert '(For input string: "two"). The value does not fit the index\'s mapping.' in str(error)
    assert "Its record is {'key': '2', 'n': 'two'}" in str(error)
    assert fake_cluster.numbers("numbers") == {"1": 1, "3": 3}, "the others are there"
    missing = builder(fake_cluster, ElasticsearchEmitter.static_index("missing")).build()
    assert "no such index [missing]. Create the index first" in str(failure(missing, [pair(1, 1)]))


def test_a_login_that_is_refused_and_a_password_that_is_told_to_nobody(fake_cluster: FakeCluster) -> None:
    secret = "wr0ng-but-s3cret"
    made = builder(fake_cluster, password=secret).build()
    error = failure(made, [pair(1, 1)])
    assert error.kind is FailureKind.PERMANENT
    assert "refused the login (401): unable to authenticate. Check the user name and the password." in str(error)
    assert secret not in f"{error} {error!r} {error.cause_text} {made._cluster!r}"


@pytest.mark.parametrize(
    "content",
    [b'{"hello": 1}', b"<html>Welcome</html>", b"[1]", b'{"errors": false, "items": []}', b'{"items": [1]}', b"\xff"],
)
def test_a_server_that_is_no_elasticsearch(content: bytes) -> None:
    secret = "s3cret-in-no-text"
    cluster = Cluster(("http://wiki:80",), "ada", Secret(secret), "/es")
    answer: Any = SimpleNamespace(status=200, headers={})
    with pytest.raises(ConnectorError, match=r"http://wiki:80/es/_bulk does not answer as Elasticsearch") as caught:
        Connection(cluster)._read(answer, content, 1)
    assert caught.value.kind is FailureKind.PERMANENT
    assert "expected an item for each of 1 documents, got b" in str(caught.value)
    assert secret not in str(caught.value)


def test_a_certificate_that_is_not_trusted(untrusted_server: int) -> None:
    untrusted = f"https://127.0.0.1:{untrusted_server}"
    with pytest.raises(ConnectorError, match=r"a certificate that is not trusted: self.signed certificate") as caught:
        Connection(Cluster((untrusted, untrusted))).bulk(b"", 1)
    assert caught.value.kind is FailureKind.PERMANENT
    # A node that is away may come back, with another certificate.
    with pytest.raises(ConnectorError, match="cannot be reached") as caught:
        Connection(Cluster((untrusted, "http://127.0.0.1:1"))).bulk(b"", 1)
    assert caught.value.kind is FailureKind.PASSING


def test_a_node_that_is_not_there_and_one_beside_it_that_is(fake_cluster: FakeCluster) -> None:
    error = failure(builder(fake_cluster).set_hosts("127.0.0.1:1").build(), [pair(1, 1)])
    assert error.kind is FailureKind.PASSING
    assert "Elasticsearch at http://127.0.0.1:1 cannot be reached: " in str(error)
    write(builder(fake_cluster).set_hosts(["127.0.0.1:1", fake_cluster.host]).build(), [pair(1, 1)])
    assert fake_cluster.numbers("numbers") == {"1": 1}


@pytest.mark.parametrize(
    ("emitter", "value", "text"),
    [
        (BY_KEY, 5, "A document is made of a map, a dict or a row with names, got 5"),
        (BY_KEY, {"n": 1}, "The field 'key' must have the document's id"),
        (BY_KEY, {"key": "a", "n": object()}, "cannot be written as JSON"),
        (ElasticsearchEmitter.dynamic_index("index"), {"n": 1}, "The field 'index' must have the name of an index"),
        (ElasticsearchEmitter.static_index("i", "k", version_field="v"), {"k": 1}, "The field 'v' must have a version"),
        (NO_KEY, {"n": 1}, "The function key must have the document's id, of at most 512 bytes, got None"),
    ],
)
def test_what_is_no_document_is_refused_with_its_record(
    fake_cluster: FakeCluster, emitter: ElasticsearchEmitter, value: Any, text: str
) -> None:
    error = failure(builder(fake_cluster, emitter).build(), [value])
    assert text in str(error)
    assert error.kind is FailureKind.PERMANENT


def test_nonsense_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match="needs set_hosts"):
        Elasticsearch7SinkBuilder().build()
    for host in ("http://ada:hunter2@db:9200", "ftp://db", "db:port", "http://db:1/es", "db/es", "http://db?a=1"):
        with pytest.raises(ProgramError, match="A node is addressed as") as caught:
            Elasticsearch7SinkBuilder().set_hosts([host])
        assert "hunter2" not in str(caught.value)
    Elasticsearch7SinkBuilder().set_hosts(["http://db:1/"])
    with pytest.raises(ProgramError, match="has no transactions"):
        Elasticsearch7SinkBuilder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(ProgramError, match=r"must be a DeliveryGuarantee, .*, got 'EXACTLY_ONCE'"):
        Elasticsearch7SinkBuilder().set_delivery_guarantee("EXACTLY_ONCE")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=r"must be a FlushBackoffType, .*, got 'EXPONENTIAL'"):
        Elasticsearch7SinkBuilder().set_bulk_flush_backoff_strategy("EXPONENTIAL", 3, 5)  # type: ignore[arg-type]
    for name, numbers in (("max_retries", (-3, 5)), ("delay_millis", (3, -5))):
        with pytest.raises(ProgramError, match=f"{name} must be a whole number from 0 on, got -"):
            Elasticsearch7SinkBuilder().set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, *numbers)


def test_how_long_a_connection_of_a_pool_is_waited_for_is_not_how_long_an_answer_may_take() -> None:
    made = Elasticsearch7SinkBuilder().set_socket_timeout(30_000).set_connection_request_timeout(1000)
    assert made._cluster.read_seconds == 30


def test_the_program_of_the_page_runs(fake_cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "elasticsearch.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, value in {
        "FIRESTEEL_ELASTICSEARCH_HOST": fake_cluster.host,
        "FIRESTEEL_ELASTICSEARCH_PASSWORD": fake_cluster.password,
        "FIRESTEEL_MASTER": "memory",
    }.items():
        monkeypatch.setenv(name, value)
    exec(code, {"__name__": "docs.elasticsearch"})
    found = {key: document for (index, key), (_, document) in fake_cluster.documents.items() if index == "words"}
    assert found["to"] == {"word": "to", "count": 2}
