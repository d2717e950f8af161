"""Windows and joins as plain as can be: what the operators' results are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windowkit import NO_TIME, Event

FOREVER = 2**63 - 1


class Windows:
    """Tumbling and sliding windows of event time with the default trigger, over all elements."""

    def __init__(self, size: int, slide: int, offset: int, lateness: int) -> None:
        self.size, self.slide, self.offset, self.lateness = size, slide, offset, lateness
        self.watermark = NO_TIME
        self.open: dict[tuple[str, int, int], list[Any]] = {}
        self.dropped = 0

    def assigned(self, time: int) -> list[tuple[int, int]]:
        """Found by looking at every window there could be."""
        starts = range(time - self.size + 1, time + 1)
        return [(start, start + self.size) for start in reversed(starts) if (start - self.offset) % self.slide == 0]

    def play(self, events: list[Event]) -> Iterator[str]:
        for kind, key, value, time in [*events, ("watermark", None, FOREVER, NO_TIME)]:
            if kind == "record":
                yield from self.record(key, value, time)
            elif kind == "watermark" and value > self.watermark:
                yield from self.advance(value)

    def record(self, key: str, value: Any, time: int) -> Iterator[str]:
        taken = False
        for start, end in self.assigned(time):
            if end - 1 + self.lateness > self.watermark:
                taken = True
                self.open.setdefault((key, start, end), []).append(value)
                if end - 1 <= self.watermark:
                    yield self.shown((key, start, end))
        if not taken and time + self.lateness <= self.watermark:
            self.dropped += 1

    def advance(self, watermark: int) -> Iterator[str]:
        before, self.watermark = self.watermark, watermark
        for place in sorted(self.open, key=lambda place: place[2]):
            if before < place[2] - 1 <= watermark:
                yield self.shown(place)
            if place[2] - 1 + self.lateness <= watermark:
                del self.open[place]

    def shown(self, place: tuple[str, int, int]) -> str:
        key, start, end = place
        return f"{key}[{start},{end}): {' '.join(map(str, self.open[place]))}"


class Sessions(Windows):
    """Sessions with a fixed gap."""

    def __init__(self, gap: int, lateness: int) -> None:
        super().__init__(gap, 1, 0, lateness)

    def record(self, key: str, value: Any, time: int) -> Iterator[str]:
        end = time + self.size
        near = sorted(p for p in self.open if p[0] == key and p[1] <= end and time <= p[2])
        whole = (key, min([time, *(p[1] for p in near)]), max([end, *(p[2] for p in near)]))
        if whole[2] - 1 + self.lateness <= self.watermark:
            self.dropped += time + self.lateness <= self.watermark
            return
        elements = [element for place in near for element in self.open.pop(place)]
        self.open[whole] = [*elements, value]
        if whole[2] - 1 <= self.watermark:
            yield self.shown(whole)


def interval_join(events: list[Event], lower: int, upper: int) -> tuple[list[str], int]:
    """All pairs whose records were both in time and still of use to each other, and how many came too late."""
    watermark, dropped = NO_TIME, 0
    lefts: list[Any] = []
    rights: list[Any] = []
    pairs = []
    for kind, key, value, time in events:
        if kind == "watermark":
            watermark = max(watermark, value)
        elif kind == "record" and time < watermark:
            dropped += 1
        elif kind == "record" and value % 2 == 0:
            lefts.append((key, value, time))
            for other, right, there in rights:
                if other == key and lower <= there - time <= upper and there + max(-lower, 0) > watermark:
                    pairs.append(f"{key}: {value} {right} at {max(time, there)}")
        elif kind == "record":
            rights.append((key, value, time))
            for other, left, there in lefts:
                if other == key and lower <= time - there <= upper and there + max(upper, 0) > watermark:
                    pairs.append(f"{key}: {left} {value} at {max(time, there)}")
    return pairs, dropped


def window_join(events: list[Event], size: int, slide: int) -> list[str]:
    """All pairs of each key and window, of records that are all in time."""
    return [
        f"{key}: {left} {right}"
        for key, lefts, rights in _groups(events, size, slide)
        for left in lefts
        for right in rights
    ]


def co_group(events: list[Event], size: int, slide: int) -> list[str]:
    return [
        f"{key}: {' '.join(map(str, lefts))} / {' '.join(map(str, rights))}"
        for key, lefts, rights in _groups(events, size, slide)
    ]


def _groups(events: list[Event], size: int, slide: int) -> list[tuple[str, list[Any], list[Any]]]:
    windows = Windows(size, slide, 0, 0)
    found: dict[Any, tuple[list[Any], list[Any]]] = {}
    for kind, key, value, time in events:
        if kind == "record":
            for window in windows.assigned(time):
                found.setdefault((key, window), ([], []))[value % 2].append(value)
    return [(key, lefts, rights) for (key, _), (lefts, rights) in found.items()]
