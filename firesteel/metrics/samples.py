"""What reporters get: one number each, with its scope, its name and what it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["COUNTER", "GAUGE", "HISTOGRAM", "METER", "Sample"]

COUNTER, GAUGE, METER, HISTOGRAM = "counter", "gauge", "meter", "histogram"


@dataclass(frozen=True)
class Sample:
    """One metric at one moment.

    >>> sample = Sample("taskmanager.job.task.operator", "numRecordsIn", 7, COUNTER, {"operator_name": "parse"},
    ...                 "web.taskmanager.web-1.orders.parse.0")
    >>> sample.identifier(), sample.logical_identifier()
    ('web.taskmanager.web-1.orders.parse.0.numRecordsIn', 'taskmanager.job.task.operator.numRecordsIn')
    """

    scope: str
    """Where it belongs, without saying to which one: ``jobmanager.job``, ``taskmanager.job.task`` or
    ``taskmanager.job.task.operator``."""
    name: str
    """With the names of the user's groups before it, and dots between."""
    value: int | float
    """The number. Of a meter it is the rate, of a histogram the mean."""
    kind: str = GAUGE
    """``counter``, ``gauge``, ``meter`` or ``histogram``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What it is of: ``job_name``, ``operator_name``, ``subtask_index``, …, and the keys of the user's groups."""
    prefix: str = ""
    """The scope as the configuration (``metrics.scope.*``) wants it."""
    parts: Mapping[str, int | float] = field(default_factory=dict)
    """All numbers of a meter (``count``, ``rate``) or histogram (``count``, ``sum``, ``min``, ``max``, ``mean``)."""
    full_name: str = ""
    """The name with the values of the user's groups in it, where that is another one."""

    def identifier(self, delimiter: str = ".") -> str:
        """The scope in the configured format, and the name."""
        name = self.full_name or self.name
        return f"{self.prefix}{delimiter}{name}" if self.prefix else name

    def logical_identifier(self, delimiter: str = ".") -> str:
        """The scope without the names of what it is of, for systems that have labels for these."""
        return f"{self.scope}.{self.name}".replace(".", delimiter)

    def numbers(self) -> Iterator[tuple[str, int | float]]:
        """Suffixes and numbers, for systems that know nothing but numbers.

        >>> list(Sample("s", "size", 2.5, HISTOGRAM, parts={"count": 2, "mean": 2.5}).numbers())
        [('count', 2), ('mean', 2.5)]
        >>> list(Sample("s", "calls", 2).numbers())
        [('', 2)]
        """
        if self.parts:
            yield from self.parts.items()
        else:
            yield "", self.value
