"""Random scenarios for complex event processing: small patterns over short inputs, the same ones for the same seed.

Patterns are drawn with little care for what is allowed, so that some are refused; ``tools/record_cep.py`` has Flink
say which, and what the others match.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["scenarios"]

Json = dict[str, Any]

KINDS = "abcd"
SKIPS = ("no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")


def scenarios(seed: int) -> Iterator[Json]:
    """Scenarios without end."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield _Drawing(chance).scenario(f"random {seed}/{number}")


class _Drawing:
    """One scenario while it is drawn."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names: list[str] = []
        # Patterns over few kinds match more often.
        self._kinds = KINDS[: chance.choice((2, 2, 3, 3, 3, 4))]
        self._windows = chance.random() < 0.25

    def scenario(self, name: str) -> Json:
        drawn: Json = {"name": name, "pattern": self._pattern()}
        if self._often(0.7):
            drawn["timeouts"] = True
        if self._often(0.1):
            drawn["comparator"] = True
        if self._often(0.1):
            drawn["time"] = "processing"
            drawn["input"] = self._input_in_processing_time()
        else:
            drawn["input"] = self._input_in_event_time()
        return drawn

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _pattern(self) -> Json:
        pattern: Json = {"steps": self._steps(self._chance.choice((1, 2, 2, 2, 2, 3, 3, 3, 3, 4)), depth=0)}
        if self._often(0.55):
            last = pattern["steps"][-1] if self._often(0.8) else self._chance.choice(pattern["steps"])
            last["within"] = self._chance.randint(3, 14)
        if self._often(0.65):
            skip: Json = {"kind": self._chance.choice(SKIPS)}
            if skip["kind"] in ("skip_to_first", "skip_to_last"):
                skip["step"] = self._chance.choice(self._names) if self._often(0.97) else "nowhere"
                if self._often(0.1):
                    skip["throw"] = True
            pattern["skip"] = skip
        return pattern

    def _steps(self, number: int, depth: int) -> list[Json]:
        return [self._step(place, number, depth) for place in range(number)]

    def _step(self, place: int, number: int, depth: int) -> Json:
        how = "begin"
        if place:
            how = self._chance.choice(("next", "followed_by", "followed_by", "followed_by_any"))
        if depth < 2 and self._often(0.14):
            step: Json = {"how": how, "group": self._steps(self._chance.choice((1, 2, 2, 3)), depth + 1)}
        else:
            if place and self._often(0.18):
                how = self._chance.choice(("not_next", "not_followed_by", "not_followed_by"))
            step = {"how": how, "name": self._name()}
            self._add_conditions(step)
        if not how.startswith("not") or self._often(0.03):
            self._add_quantifier(step)
            loops = step.get("quantifier", ["times"])[0] != "times"
            if loops and "group" in step and all(map(_may_be_absent, step["group"])):
                # Flink never comes to an end with a loop over nothing.
                step["quantifier"] = ["times", 2]
                step.pop("until", None)
        if self._windows and self._often(0.4):
            step["within_previous"] = self._chance.randint(2, 8)
        return step

    def _name(self) -> str:
        if self._names and self._often(0.01):
            return self._chance.choice(self._names)
        name = f"s{len(self._names)}"
        self._names.append(name)
        return name

    def _add_conditions(self, step: Json) -> None:
        if self._often(0.96):
            step["where"] = [self._condition()]
            if self._often(0.12):
                step["where"].append(self._condition())
        if self._often(0.08):
            step["or"] = [self._condition()]

    def _condition(self) -> Json:
        draw = self._chance.random()
        if draw < 0.72:
            return {"kind": self._chance.choice(self._kinds)}
        if draw < 0.79:
            return {"above": self._chance.randint(0, 3)}
        if draw < 0.86:
            return {"below": self._chance.randint(2, 5)}
        if draw < 0.9:
            return {"true": True}
        # Of the step itself as often as of earlier ones.
        name = self._names[-1] if self._often(0.5) else self._chance.choice(self._names)
        return {"sum_below": [name, self._chance.randint(4, 12)]} if draw < 0.95 else {"above_last": name}

    def _add_quantifier(self, step: Json) -> None:
        loops = varies = False
        if self._often(0.45):
            fewest = self._chance.randint(1, 3)
            step["quantifier"] = self._chance.choice(
                (
                    ["one_or_more"],
                    ["one_or_more"],
                    ["times", fewest],
                    ["times", self._chance.randint(0, fewest), fewest + self._chance.randint(0, 1)],
                    ["times_or_more", fewest],
                )
            )
            loops = step["quantifier"][0] != "times"
            varies = loops or len(step["quantifier"]) == 3
            if self._windows and self._often(0.4):
                step["window"] = self._chance.randint(2, 8)
            if self._often(0.25):
                step[self._chance.choice(("consecutive", "allow_combinations"))] = True
        if self._often(0.25 if loops else 0.01):
            step["until"] = self._condition()
        if self._often(0.2):
            step["optional"] = True
        if self._often(0.3 if varies else 0.01):
            step["greedy"] = True

    def _input_in_event_time(self) -> list[list[Any]]:
        keys = "xy" if self._often(0.2) else "x"
        drawn: list[list[Any]] = []
        time = newest = self._chance.randint(1, 5)
        watermark = 0
        for _ in range(self._chance.randint(5, 14)):
            time = max(1, newest - self._chance.randint(1, 3) if self._often(0.15) else newest + self._gap())
            newest = max(newest, time)
            drawn.append(["e", self._chance.choice(keys), self._kind(), self._chance.randint(0, 5), time])
            if self._often(0.35):
                watermark = max(watermark, newest - self._chance.choice((0, 0, 1, 2, 3)))
                drawn.append(["w", watermark])
        if self._often(0.3):
            drawn.append(["w", newest + self._chance.randint(0, 12)])
        return [*drawn, ["end"]]

    def _input_in_processing_time(self) -> list[list[Any]]:
        keys = "xy" if self._often(0.2) else "x"
        drawn: list[list[Any]] = []
        time = self._chance.randint(1, 5)
        drawn.append(["p", time])
        for _ in range(self._chance.randint(5, 14)):
            if gap := self._gap():
                time += gap
                drawn.append(["p", time])
            drawn.append(["e", self._chance.choice(keys), self._kind(), self._chance.randint(0, 5), time])
        return [*drawn, ["p", time + self._chance.randint(1, 20)]]

    def _gap(self) -> int:
        return self._chance.choice((0, 1, 1, 1, 2, 3))

    def _kind(self) -> str:
        return self._chance.choice(self._kinds if self._often(0.9) else KINDS)


def _may_be_absent(step: Json) -> bool:
    if step.get("optional") or step["how"].startswith("not") or step.get("quantifier", ["times"])[1:2] == [0]:
        return True
    return "group" in step and all(map(_may_be_absent, step["group"]))
