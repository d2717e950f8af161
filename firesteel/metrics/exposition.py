"""Samples in the text format that Prometheus scrapes, with the names of Flink's reporter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from firesteel.metrics.samples import METER, Sample

__all__ = ["CONTENT_TYPE", "Family", "exposition", "families", "fit"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_UNFIT = re.compile(r"[^a-zA-Z0-9:_]")


def fit(text: str) -> str:
    """A name as Prometheus allows it.

    >>> fit("Flat Map -> Sink: Print")
    'Flat_Map____Sink:_Print'
    """
    return _UNFIT.sub("_", text)


@dataclass
class Family:
    """All numbers of one name."""

    name: str
    help: str
    values: list[tuple[Mapping[str, str], int | float]] = field(default_factory=list)


def families(samples: Iterable[Sample], fit_value: Callable[[str], str] = fit) -> list[Family]:
    """Names are ``flink_``, the scope, and the metric's name; counters are gauges."""
    found: dict[str, Family] = {}
    for sample in samples:
        base = f"flink_{fit(sample.logical_identifier('_'))}"
        labels = {fit(name): fit_value(value) for name, value in sample.variables.items()}
        for part, number in sample.numbers():
            # The rate of a meter has its name alone, as in Flink.
            alone = not part or (sample.kind == METER and part == "rate")
            name = base if alone else f"{base}_{part}"
            if name not in found:
                found[name] = Family(name, f"{sample.name} (scope: {sample.scope.replace('.', '_')})")
            found[name].values.append((labels, number))
    return list(found.values())


def exposition(samples: Iterable[Sample]) -> str:
    r"""
    >>> print(exposition([Sample("jobmanager.job", "uptime", 5, variables={"job_name": 'a "b"\n'})]), end="")
    # HELP flink_jobmanager_job_uptime uptime (scope: jobmanager_job)
    # TYPE flink_jobmanager_job_uptime gauge
    flink_jobmanager_job_uptime{job_name="a__b__"} 5
    """
    lines = []
    for family in families(samples):
        text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
        lines += [f"# HELP {family.name} {text}", f"# TYPE {family.name} gauge"]
        for labels, number in family.values:
            # What is fit has nothing that must be quoted.
            shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
            lines.append(f"{family.name}{{{shown}}} {number}")
    return "\n".join(lines) + "\n"
