"""What a reporter is, and what it is configured with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.parsing import parse_duration_ms
from firesteel.common.secret import is_secret_key
from firesteel.errors import ConfigurationError
from firesteel.metrics.samples import Sample

__all__ = ["MetricReporter", "ReporterSettings"]


@dataclass(frozen=True)
class ReporterSettings:
    """The keys ``metrics.reporter.<name>.*`` of one reporter, without that beginning.

    >>> settings = ReporterSettings("stats", {"host": "127.0.0.1", "port": "8125", "apikey": "hunter2"})
    >>> settings.text("host"), settings.number("port"), settings.flag("useLogicalIdentifier", False)
    ('127.0.0.1', 8125, False)
    >>> settings
    ReporterSettings('stats', host='127.0.0.1', port='8125', apikey=***)
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    job_name: str = ""
    job_id: str = ""
    jvm: Any = None
    """Spark's JVM, where the job runs on Spark."""

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if value is None:
            raise ConfigurationError(f"metrics.reporter.{self.name}.{key} is not set.")
        return str(value)

    def number(self, key: str, default: int | None = None) -> int:
        text = self.text(key, None if default is None else str(default))
        if not text.lstrip("-").isdigit():
            raise ConfigurationError(f"metrics.reporter.{self.name}.{key} is {text!r}: it must be a whole number.")
        return int(text)

    def flag(self, key: str, default: bool) -> bool:
        return self.text(key, str(default)).lower() == "true"

    def seconds(self, key: str, default: float) -> float:
        """A duration."""
        value = self.values.get(key)
        return default if value is None else parse_duration_ms(str(value)) / 1000

    def ports(self, key: str, default: str) -> Iterator[int]:
        """A port, or a range of them, as in ``9250-9260``; several with commas.

        >>> list(ReporterSettings("p", {"port": "9250-9252,9300"}).ports("port", "9249"))
        [9250, 9251, 9252, 9300]
        """
        for one in self.text(key, default).split(","):
            first, _, last = one.strip().partition("-")
            if not first.isdigit() or not (last or first).isdigit():
                raise ConfigurationError(
                    f"metrics.reporter.{self.name}.{key} is {self.text(key)!r}: it must be a port, or a range like "
                    "9250-9260."
                )
            yield from range(int(first), int(last or first) + 1)

    def __repr__(self) -> str:
        shown = [f"{key}={'***' if is_secret_key(key) else repr(value)}" for key, value in self.values.items()]
        return f"ReporterSettings({', '.join([repr(self.name), *shown])})"


class MetricReporter(ABC):
    """Sends a job's metrics somewhere. It lives in the job's driver, in a thread of its own; what it raises is logged
    once, and the job goes on.

    Name it in the configuration by its import path: ``metrics.reporter.mine.factory.class: my_module:MyReporter``.

    >>> class Printer(MetricReporter):
    ...     def open(self, settings, collect):
    ...         self.prefix = settings.text("prefix", "")
    ...     def report(self, samples):
    ...         for sample in samples:
    ...             print(self.prefix + sample.identifier(), sample.value)
    >>> printer = Printer()
    >>> printer.open(ReporterSettings("mine", {"prefix": "> "}), lambda: [])
    >>> printer.report([Sample("jobmanager.job", "uptime", 12, prefix="web.jobmanager.orders")])
    > web.jobmanager.orders.uptime 12
    """

    scheduled = True
    """Whether ``report`` is called every ``interval``. One that waits to be asked calls ``collect`` by itself."""

    def open(self, settings: ReporterSettings, collect: Callable[[], Sequence[Sample]]) -> None:  # noqa: B027
        """Called once, when the job starts. ``collect`` gives the metrics of the moment, from any thread."""

    @abstractmethod
    def report(self, samples: Sequence[Sample]) -> None:
        """Sends the metrics of the moment. The last time is when the job has ended."""

    def close(self) -> None:  # noqa: B027
        """Called once, when the job has ended."""
