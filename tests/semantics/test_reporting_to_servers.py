"""What Prometheus, its push gateway, StatsD, Graphite, OpenTelemetry and Datadog get of a job."""

from __future__ import annotations

import http.server
import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from metric_servers import Carbon, Prometheus, PushGateway, StatsD, free_port
from reporterkit import SECONDS, job_with_reporters, report, reporter, run_job, wait_until  # noqa: F401 - fixtures
from serverkit import started

FLINK = json.loads((Path(__file__).parents[1] / "unit" / "flink_prometheus.json").read_text())
pytestmark = pytest.mark.timeout(300)
API_KEY = "0123456789abcdef-secret"


class Receiver:
    """Takes what is posted."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        posts = self.posts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Not on the terminal."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def push_gateway() -> Iterator[PushGateway]:
    with started(PushGateway) as server:
        yield server


@pytest.fixture(scope="module")
def statsd() -> Iterator[StatsD]:
    with started(StatsD) as server:
        yield server


@pytest.fixture(scope="module")
def carbon() -> Iterator[Carbon]:
    with started(Carbon) as server:
        yield server


def scraped(text: str) -> dict[str, set[str]]:
    """By name the labels of what Prometheus would see."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


# Prometheus


def test_prometheus_scrapes_a_running_job_and_answers(job: Callable[..., Any]) -> None:
    factory = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    started_job = job(**reporter(factory, port=f"{free_port()}-65000"))
    (thread,) = started_job.reporting.threads
    with started(lambda: Prometheus(thread.reporter.port)) as prometheus:
        answer = wait_until(
            lambda: prometheus.query('flink_taskmanager_job_task_operator_numRecordsIn{operator_name="drop"}')
        )
        labels = answer[0]["metric"]
        assert labels["job_name"] == "State_machine_job"
        assert labels["task_name"] == "Parse____it____drop____Sink:_Print_to_Std__Out"
        assert {one["metric"]["subtask_index"] for one in answer} == {"0", "1"}
        # In more than one scrape, and what it sees grows.
        total = 'sum(flink_taskmanager_job_task_operator_parser_kind_calls{kind="json"})'
        seen = float(wait_until(lambda: prometheus.query(total))[0]["value"][1])
        assert seen > 0
        wait_until(lambda: [one for one in prometheus.query(total) if float(one["value"][1]) > seen])
        wait_until(lambda: prometheus.query("flink_jobmanager_job_numberOfCompletedCheckpoints > 0"))


def test_names_and_labels_are_those_of_flink(job: Callable[..., Any]) -> None:
    started_job = job(**reporter("prometheus", port=f"{free_port()}-65000"))
    port = started_job.reporting.threads[0].reporter.port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        found = scraped(answer.read().decode())
    flink = {name: set(labels.split(",")) for labels, names in FLINK["names_by_labels"].items() for name in names}
    ours = {name for name in found if "_firesteel_" in name}
    users = {
        "below",
        "rate",
        "rate_count",
        "parser_kind_calls",
        *(f"sizes_{p}" for p in ("count", "sum", "min", "max", "mean")),
    }
    users = {f"flink_taskmanager_job_task_operator_{name}" for name in users}
    # A source that knows it has this one, too; the recorded job has no such source.
    standard = {"flink_taskmanager_job_task_operator_pendingRecords"}
    assert users | standard <= found.keys()
    named = found.keys() - ours - users - standard
    assert named <= flink.keys(), "names that Flink does not have"
    # That these are given is what we promise.
    assert named == {
        *(f"flink_jobmanager_job_{name}" for name in JOB_NAMES),
        *(f"flink_taskmanager_job_task_{name}" for name in TASK_NAMES),
        *(f"flink_taskmanager_job_task_operator_{name}" for name in OPERATOR_NAMES),
    }
    assert {name: labels for name, labels in found.items() if name in named and labels != flink[name]} == {}
    assert {"flink_jobmanager_job_firesteel_lastBatch_tasks", "flink_jobmanager_job_firesteel_pendingRecords"} <= ours


JOB_NAMES = (
    *("uptime", "runningTime", "downtime", "restartingTime", "numRestarts"),
    *("numberOfCompletedCheckpoints", "numberOfFailedCheckpoints", "numberOfInProgressCheckpoints"),
    *("totalNumberOfCheckpoints", "lastCheckpointDuration", "lastCheckpointSize", "lastCheckpointFullSize"),
    *("lastCompletedCheckpointId", "lastCheckpointCompletedTimestamp"),
)
FLOW_NAMES = tuple(
    f"num{what}{way}{rate}" for what in ("Records", "Bytes") for way in ("In", "Out") for rate in ("", "PerSecond")
)
TASK_NAMES = (
    *FLOW_NAMES,
    *("numBuffersOut", "numBuffersOutPerSecond", "busyTimeMsPerSecond", "idleTimeMsPerSecond"),
    *("backPressuredTimeMsPerSecond", "isBackPressured", "accumulateBusyTimeMs", "currentInputWatermark"),
)
OPERATOR_NAMES = (*FLOW_NAMES, "currentInputWatermark", "currentOutputWatermark")


def test_ports_that_are_taken_are_passed_over_and_one_is_left_out(
    job: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    first = free_port()
    one = job(**reporter("prometheus", port=f"{first}-{first + 20}"))
    two = job(**reporter("prometheus", port=f"{first}-{first + 20}"))
    ports = [each.reporting.threads[0].reporter.port for each in (one, two)]
    assert ports[0] < ports[1] <= first + 20
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        three = job(**reporter("prometheus", "busy", port=str(ports[0])))
    assert three.reporting.threads == []
    assert "the metric reporter 'busy' is left out: No port of metrics.reporter.busy.port is free" in caplog.text


def test_the_push_gateway_gets_them_and_is_tidied_up(push_gateway: PushGateway) -> None:
    factory = "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory"
    url = f"http://127.0.0.1:{push_gateway.port}"
    settings = {"hostUrl": url, "jobName": "pushed", "randomJobNameSuffix": "false", "groupingKey": "shop=a;zone=b"}
    started_job = run_job("pushed job", None, **reporter(factory, **settings))
    try:
        wait_until(lambda: started_job.facade.status().batches >= 1)
        report(started_job)
        found = push_gateway.metrics()
        assert "flink_jobmanager_job_uptime{" in found
        assert all(label in found for label in ('job="pushed"', 'shop="a"', 'zone="b"'))
    finally:
        started_job.cancel().result()
    wait_until(lambda: "flink_jobmanager_job_uptime" not in push_gateway.metrics())


# Servers without labels


def test_statsd_gets_gauges(statsd: StatsD, job: Callable[..., Any]) -> None:
    scope = {
        "metrics.scope.operator": "<job_name>.<operator_name>.<subtask_index>",
        "metrics.scope.jm-job": "jm.<job_name>",
    }
    factory = "org.apache.flink.metrics.statsd.StatsDReporterFactory"
    started_job = job(**scope, **reporter(factory, host="127.0.0.1", port=str(statsd.port)))
    report(started_job)
    # StatsD leaves out what it does not like in names.
    parse, uptime = "State_machine_job.Parse_-_it", "jm.State_machine_job.uptime"
    wanted = {uptime, f"{parse}.0.below", f"{parse}.1.sizes.max", f"{parse}.1.parser.kind.json.calls"}
    # A datagram may still be under way.
    gauges = wait_until(lambda: found if wanted <= (found := statsd.gauges()).keys() else None)
    assert gauges[f"{parse}.1.parser.kind.json.calls"] > 0
    assert gauges[f"{parse}.1.sizes.max"] <= 9
    assert gauges[f"{parse}.0.below"] == -5
    total = started_job.facade.status().records
    wait_until(lambda: started_job.facade.status().records > total)
    report(started_job)
    # This one is sent behind the other.
    last = f"{parse}.1.parser.kind.json.calls"
    wait_until(lambda: statsd.gauges()[last] > gauges[last])
    assert statsd.gauges()[f"{parse}.0.below"] == -5


def test_graphite_stores_them(carbon: Carbon, job: Callable[..., Any]) -> None:
    settings = {
        "host": "127.0.0.1",
        "port": str(carbon.port),
        "filter__includes": "jobmanager.job:numRestarts,*Completed*",
    }
    factory = "org.apache.flink.metrics.graphite.GraphiteReporterFactory"
    started_job = job(**{"metrics.scope.jm.job": "shop.<job_name>"}, **reporter(factory, **settings))
    report(started_job)
    name = "shop.State_machine_job.numberOfCompletedCheckpoints"
    assert wait_until(lambda: carbon.value(name)) >= 1
    assert wait_until(lambda: carbon.value("shop.State_machine_job.numRestarts") is not None)
    assert carbon.value("shop.State_machine_job.numRestarts") == 0
    assert carbon.value("shop.State_machine_job.uptime") is None


def test_graphite_by_udp(job: Callable[..., Any]) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(SECONDS)
        port = str(listening.getsockname()[1])
        settings = {"host": "127.0.0.1", "port": port, "protocol": "UDP", "filter__includes": "*:numRestarts"}
        report(job(**reporter("graphite", **settings)))
        name, value, moment = listening.recv(2000).decode().split()
    assert name.endswith(".jobmanager.State_machine_job.numRestarts")
    assert (value, abs(int(moment) - time.time()) < 3600) == ("0", True)


# HTTP


def test_opentelemetry_gets_points_with_attributes(job: Callable[..., Any]) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    receiver = Receiver()
    try:
        factory = "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory"
        settings = {"exporter__endpoint": receiver.url, "service__name": "shop", "exporter__timeout": "60 s"}
        started_job = job(**reporter(factory, **settings))
        report(started_job)
        path, headers, body = receiver.posts[-1]
        if headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
        # While there is somebody who takes its last report.
        started_job.cancel().result()
    finally:
        receiver.close()
    assert path == "/v1/metrics"
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "shop"
    (scope,) = resource.scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    records = metrics["flink.taskmanager.job.task.operator.numRecordsIn"].sum
    attributes = [{a.key: a.value.string_value for a in point.attributes} for point in records.data_points]
    (parse,) = [
        point
        for point, a in zip(records.data_points, attributes, strict=True)
        if (a["operator_name"], a["subtask_index"]) == ("Parse -> it", "0")
    ]
    assert parse.as_int > 0
    assert records.aggregation_temporality == 2
    assert metrics["flink.taskmanager.job.task.operator.sizes.mean"].gauge.data_points
    (uptime,) = metrics["flink.jobmanager.job.uptime"].gauge.data_points
    assert uptime.as_int > 0


def test_opentelemetry_by_grpc(job: Callable[..., Any]) -> None:
    grpc = pytest.importorskip("grpc")
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc

    taken: list[Any] = []

    class Collector(metrics_service_pb2_grpc.MetricsServiceServicer):  # type: ignore[misc]
        def Export(self, request: Any, context: Any) -> Any:
            taken.append(request)
            return metrics_service_pb2.ExportMetricsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Collector(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        settings = {"exporter__endpoint": f"http://127.0.0.1:{port}", "exporter__protocol": "gRPC"}
        started_job = job(**reporter("otel", **settings, exporter__timeout="60 s"))
        report(started_job)
        (resource,) = taken[-1].resource_metrics
        started_job.cancel().result()
    finally:
        server.stop(None)
    names = {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
    assert {"flink.jobmanager.job.uptime", "flink.taskmanager.job.task.operator.numRecordsIn"} <= names


def test_datadog_gets_series_and_the_key_is_shown_nowhere(
    job: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver()
    settings = {
        "apikey": API_KEY,
        "url": f"{receiver.url}/api/v1/series",
        "tags": "team:shop",
        "maxMetricsPerRequest": "50",
    }
    factory = "org.apache.flink.metrics.datadog.DatadogHttpReporterFactory"
    started_job = job(**reporter(factory, **settings, useLogicalIdentifier="true"))
    try:
        report(started_job)
        series = [one for _, _, body in receiver.posts for one in json.loads(body)["series"]]
        assert len(receiver.posts) > 1
        assert {headers["Dd-Api-Key"] for _, headers, _ in receiver.posts} == {API_KEY}
        assert all(API_KEY not in path and API_KEY.encode() not in body for path, _, body in receiver.posts)
        (one,) = [s for s in series if s["metric"] == "flink.jobmanager.job.numRestarts"]
        assert {"team:shop", "job_name:State machine job"} <= set(one["tags"])
        counts = [s for s in series if s["metric"] == "flink.jobmanager.job.firesteel.records"]
        first = counts[0]["points"][0][1]
        assert (counts[0]["type"], first > 0) == ("count", True)
        total = started_job.facade.status().records
        receiver.posts.clear()
        wait_until(lambda: started_job.facade.status().records > total)
        report(started_job)
        later = [one for _, _, body in receiver.posts for one in json.loads(body)["series"]]
        (since,) = [s["points"][0][1] for s in later if s["metric"] == "flink.jobmanager.job.firesteel.records"]
        # What came since then, not all.
        assert 0 < since <= started_job.facade.status().records - first
    finally:
        receiver.close()
    with caplog.at_level(logging.DEBUG, logger="firesteel"):
        report(started_job)
    assert "failed, and the job goes on" in caplog.text
    assert API_KEY not in caplog.text
