"""What a scenario gave, and the table of all of them."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from chaos.check import Difference

__all__ = ["Outcome", "table"]

COLUMNS = ("scenario", "kills", "restarts", "records", "lost", "duplicated", "recovery", "longest", "seconds", "")


@dataclass
class Outcome:
    """What happened."""

    scenario: str
    records: int
    kills: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    """How often the driver was started again."""
    recoveries: list[float] = field(default_factory=list)
    """Seconds from each kill to the next results."""
    differences: dict[str, Difference] = field(default_factory=dict)
    """By sink."""
    left: int = 0
    """Transactions that are still prepared."""
    missed: list[str] = field(default_factory=list)
    """Crash points that the job never came to: a scenario that has not tried them shows nothing about them."""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        compared = bool(self.differences) and all(difference.none for difference in self.differences.values())
        return compared and self.left == 0 and self.kills.total() > 0 and not self.missed

    @property
    def lost(self) -> int:
        return sum(one.lost for one in self.differences.values())

    @property
    def duplicated(self) -> int:
        return sum(one.duplicated + one.unknown for one in self.differences.values())

    def row(self) -> tuple[str, ...]:
        median = f"{statistics.median(self.recoveries):.1f} s" if self.recoveries else "-"
        longest = f"{max(self.recoveries):.1f} s" if self.recoveries else "-"
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items()))
        return (
            self.scenario,
            f"{self.kills.total()} ({kinds})" if len(self.kills) < 5 else str(self.kills.total()),
            str(self.restarts),
            f"{self.records:,}",
            str(self.lost),
            str(self.duplicated),
            median,
            longest,
            f"{self.seconds:.0f}",
            "ok" if self.good else "FAILED",
        )

    def explain(self) -> list[str]:
        """A few words on what is wrong."""
        lines = [
            f"{self.scenario}, {sink}: {example}"
            for sink, difference in self.differences.items()
            for example in difference.examples
        ]
        if self.left:
            lines.append(f"{self.scenario}: {self.left} transactions are still prepared")
        lines += [f"{self.scenario}: nothing was killed at {point!r}" for point in self.missed]
        if not self.kills.total():
            lines.append(f"{self.scenario}: nothing was killed")
        return lines


def table(outcomes: list[Outcome]) -> str:
    """
    >>> print(table([Outcome("driver", 1000, Counter(driver=2), 2, [1.0, 3.0])]))  # doctest: +NORMALIZE_WHITESPACE
    scenario  kills         restarts  records  lost  duplicated  recovery  longest  seconds
    driver    2 (2 driver)  2         1,000    0     0           2.0 s     3.0 s    0        FAILED
    """
    rows = [COLUMNS, *(outcome.row() for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
