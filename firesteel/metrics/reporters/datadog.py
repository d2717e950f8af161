"""Datadog, by its HTTP interface."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from firesteel.common.secret import Secret
from firesteel.metrics.reporters.contract import MetricReporter, ReporterSettings
from firesteel.metrics.samples import COUNTER, Sample

__all__ = ["DatadogReporter"]

SITES = {"US": "app.datadoghq.com", "EU": "app.datadoghq.eu"}


class DatadogReporter(MetricReporter):
    """With ``apikey``, to the site of ``dataCenter`` (US or EU), or to ``url``."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:
        self._key = Secret(settings.text("apikey"))
        site = settings.text("dataCenter", "US")
        self._url = settings.text("url", f"https://{SITES.get(site.upper(), site)}/api/v1/series")
        self._most = settings.number("maxMetricsPerRequest", 2000)
        self._logical = settings.flag("useLogicalIdentifier", False)
        self._tags = [tag.strip() for tag in settings.text("tags", "").split(",") if tag.strip()]
        self._seconds = settings.seconds("timeout", 10.0)
        self._counted: dict[tuple[str, tuple[str, ...]], int | float] = {}
        """What counters were when they were reported last: Datadog wants what came since."""
        proxies = urllib.request.ProxyHandler()
        if "proxyHost" in settings.values:
            address = f"http://{settings.text('proxyHost')}:{settings.number('proxyPort', 8080)}"
            proxies = urllib.request.ProxyHandler({"http": address, "https": address})
        self._opener = urllib.request.build_opener(proxies)

    def report(self, samples: Sequence[Sample]) -> None:
        series = list(self._series(samples, int(time.time())))
        for start in range(0, len(series), self._most):
            body = json.dumps({"series": series[start : start + self._most]}).encode()
            # The key is no part of the address: addresses are logged.
            headers = {"Content-Type": "application/json", "DD-API-KEY": self._key.reveal()}
            request = urllib.request.Request(self._url, body, headers)
            with self._opener.open(request, timeout=self._seconds) as answer:
                answer.read()

    def _series(self, samples: Sequence[Sample], now: int) -> Iterator[dict[str, Any]]:
        for sample in samples:
            base = f"flink.{sample.logical_identifier()}" if self._logical else sample.identifier()
            tags = tuple(sorted([*self._tags, *(f"{key}:{value}" for key, value in sample.variables.items())]))
            for part, number in sample.numbers():
                name = f"{base}.{part}" if part else base
                kind = "count" if sample.kind == COUNTER else "gauge"
                if kind == "count":
                    before = self._counted.get((name, tags), 0)
                    self._counted[name, tags] = number
                    number = number - before
                host = sample.variables.get("host", "")
                yield {"metric": name, "points": [[now, number]], "type": kind, "host": host, "tags": list(tags)}
