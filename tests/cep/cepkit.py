"""Runs the scenarios that were recorded on Flink (``tools/record_cep.py``) on Firesteel's matcher."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from firesteel.cep import (
    CEP,
    AfterMatchSkipStrategy,
    Pattern,
    PatternProcessFunction,
    PatternStream,
    TimedOutPartialMatchHandler,
    WithinType,
)
from firesteel.cep.automaton import compile_pattern
from firesteel.cep.errors import MissedSkipTargetError
from firesteel.cep.matching import Match, Matcher
from firesteel.common.time import Duration
from firesteel.datastream import DataStream, OutputTag
from firesteel.testing import OneInputHarness

__all__ = [
    "Event",
    "Json",
    "by_output",
    "pattern_of",
    "recorded",
    "results_of",
    "run",
    "run_on_stream",
    "wakes_otherwise",
]

DATA = Path(__file__).resolve().parent.parent / "data" / "cep"
END_OF_TIME = 2**63 - 1

Json = dict[str, Any]


class Event(NamedTuple):
    kind: str
    value: int
    time: int
    key: str

    def shown(self) -> list[Any]:
        """As in recorded results."""
        return [self.kind, self.value, self.time]


def recorded(name: str) -> list[Json]:
    """The scenarios of a file, each with what Flink made of it under ``result``."""
    return [json.loads(line) for line in gzip.decompress((DATA / name).read_bytes()).splitlines()]


# Patterns.


def pattern_of(spec: Json) -> Pattern:
    """The pattern of a scenario."""
    return _chain(spec["steps"], _skip(spec["skip"]) if "skip" in spec else None)


def _chain(steps: list[Json], skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    built: Pattern | None = None
    for step in steps:
        what = _chain(step["group"]) if "group" in step else step["name"]
        built = Pattern.begin(what, skip) if built is None else getattr(built, step["how"])(what)
        _refine(built, step)
    assert built is not None
    return built


def _refine(built: Pattern, step: Json) -> None:
    for condition in step.get("where", ()):
        built.where(_condition(condition))
    for condition in step.get("or", ()):
        built.or_(_condition(condition))
    if "quantifier" in step:
        method, *numbers = step["quantifier"]
        window = {"within": Duration.of_millis(step["window"])} if "window" in step else {}
        getattr(built, method)(*numbers, **window)
    if "until" in step:
        built.until(_condition(step["until"]))
    for method in ("optional", "greedy", "consecutive", "allow_combinations"):
        if step.get(method):
            getattr(built, method)()
    if "within" in step:
        built.within(Duration.of_millis(step["within"]))
    if "within_previous" in step:
        built.within(Duration.of_millis(step["within_previous"]), WithinType.PREVIOUS_AND_CURRENT)


def _skip(spec: Json) -> AfterMatchSkipStrategy:
    target = [spec["step"]] if "step" in spec else []
    skip: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, spec["kind"])(*target)
    return skip.throw_exception_on_miss() if spec.get("throw") else skip


def _condition(spec: Json) -> Callable[..., bool]:
    ((test, argument),) = spec.items()
    if test == "sum_below":
        step, bound = argument
        return lambda event, ctx: event.value + sum(e.value for e in ctx.get_events_for_pattern(step)) < bound
    if test == "above_last":
        return lambda event, ctx: all(event.value > e.value for e in ctx.get_events_for_pattern(argument)[-1:])
    plain: dict[str, Callable[[Event], bool]] = {
        "true": lambda event: True,
        "kind": lambda event: event.kind == argument,
        "above": lambda event: event.value > argument,
        "below": lambda event: event.value < argument,
    }
    return plain[test]


# Runs.


def run(scenario: Json) -> Json:
    """What the matcher makes of a scenario, in the form in which Flink's results are recorded."""
    driver = _Driver(scenario)
    try:
        for what, *rest in scenario["input"]:
            driver.feed(what, rest)
    except MissedSkipTargetError:
        return {"out": driver.out, "error": "FlinkRuntimeException"}
    return {"out": driver.out}


def results_of(result: Json) -> Json:
    """A result by key: keys do not depend on each other, and which one goes first at a watermark is open."""
    by_key: Json = defaultdict(list)
    for what, key, *rest in result["out"]:
        by_key[key].append([what, *rest])
    return {"out": dict(by_key), "error": result.get("error")}


class _Driver:
    """Does what Flink's operator does: events wait for the watermark, in order of time, and timers wake a key.

    There is a timer for an event that waits and one for the window of a match that begins, and none for the windows of
    single steps: that these are over is noticed when something else wakes the key.
    """

    def __init__(self, scenario: Json) -> None:
        pattern = pattern_of(scenario["pattern"])
        automaton = compile_pattern(pattern)
        self._matcher = Matcher(automaton, pattern.skip_strategy, scenario.get("timeouts", False))
        self._window = automaton.window
        self._in_processing_time = scenario.get("time") == "processing"
        self._by_value = scenario.get("comparator", False)
        self._runs = defaultdict(self._matcher.initial)
        self._waiting: dict[str, dict[int, list[Event]]] = defaultdict(lambda: defaultdict(list))
        self._timers: dict[str, set[int]] = defaultdict(set)
        self._now = -END_OF_TIME
        self.out: list[Any] = []

    def feed(self, what: str, rest: list[Any]) -> None:
        if what == "e":
            key, kind, value, time = rest
            self._event(key, Event(kind, value, time, key))
        else:
            self._time_comes_to(rest[0] if rest else END_OF_TIME)

    def _event(self, key: str, event: Event) -> None:
        if self._in_processing_time and not self._by_value:
            self._process(key, event.time, [event])
        elif event.time <= self._now and not self._in_processing_time:
            self.out.append(["late", key, event.shown()])
        else:
            self._waiting[key][event.time].append(event)
            self._set_timer(key, event.time)

    def _set_timer(self, key: str, time: int) -> None:
        # A moment on the machine's clock is over when the next one has come.
        self._timers[key].add(time + 1 if self._in_processing_time else time)

    def _time_comes_to(self, time: int) -> None:
        self._now = max(self._now, time)
        for key, timers in self._timers.items():
            if any(timer <= time for timer in timers):
                waiting = self._waiting[key]
                for due in sorted(at for at in waiting if at <= time):
                    self._process(key, due, waiting.pop(due))
                self._advance(key, time)
                timers.difference_update([timer for timer in timers if timer <= time])

    def _process(self, key: str, time: int, events: list[Event]) -> None:
        if self._by_value:
            events.sort(key=lambda event: event.value)
        self._advance(key, time)
        runs = self._runs[key]
        for event in events:
            self._emit("match", key, time, self._matcher.process(runs, event, time))
            if self._window and any(run.first == time for run in runs.partial):
                self._set_timer(key, time + self._window)

    def _advance(self, key: str, time: int) -> None:
        matches, timeouts = self._matcher.advance(self._runs[key], time)
        self._emit("match", key, time, matches)
        for match, end in timeouts:
            self._emit("timeout", key, end, [match])

    def _emit(self, what: str, key: str, time: int, matches: list[Match]) -> None:
        for match in matches:
            self.out.append([what, key, time, _steps(match)])


# Runs on a stream.

TIMED_OUT, LATE = OutputTag("timed out"), OutputTag("late")


class _Matches(PatternProcessFunction):
    def process_match(self, match: Match, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
        yield _shown(match, ctx)


class _MatchesAndTimeouts(_Matches, TimedOutPartialMatchHandler):
    def process_timed_out_match(self, match: Match, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
        yield TIMED_OUT, _shown(match, ctx)


def _shown(match: Match, ctx: PatternProcessFunction.Context) -> list[Any]:
    key = next(iter(match.values()))[0].key
    return [key, ctx.timestamp(), _steps(match)]


def _steps(match: Match) -> list[Any]:
    return [[step, [event.shown() for event in events]] for step, events in match.items()]


def wakes_otherwise(scenario: Json) -> bool:
    """Whether Firesteel's timers are not Flink's, so that it may notice at another moment that time is over."""
    window = compile_pattern(pattern_of(scenario["pattern"])).window
    times = {one[4] for one in scenario["input"] if one[0] == "e"}
    # Flink has no timers for windows of single steps, nor for what begins at time 0 or before.
    text = json.dumps(scenario["pattern"])
    if '"within_previous"' in text or '"window"' in text or min(times, default=1) <= 0:
        return True
    # Flink keeps the timer of a match that was dropped: it may wake the key at the very end of another one's time.
    ends = {time + window for time in times}
    clock = [one[1] for one in scenario["input"] if one[0] == "p"]
    return any(now in ends and any(before <= end < now for end in ends) for before, now in pairwise([0, *clock]))


def run_on_stream(scenario: Json, stored: bool) -> Json:
    """What a job gives: the entries of each output, by key. With ``stored`` a micro-batch ends after each input."""
    pattern, in_processing_time = pattern_of(scenario["pattern"]), scenario.get("time") == "processing"
    by_value: Any = (lambda one, other: one.value - other.value) if scenario.get("comparator") else None

    def build(stream: DataStream) -> DataStream:
        matched: PatternStream = CEP.pattern(stream.key_by(lambda event: event.key), pattern, by_value)
        matched = matched.side_output_late_data(LATE)
        if in_processing_time:
            matched = matched.in_processing_time()
        return matched.process(_MatchesAndTimeouts() if scenario.get("timeouts") else _Matches())

    with OneInputHarness.of(build) as job:
        for what, *rest in scenario["input"]:
            if what == "e":
                key, kind, value, time = rest
                job.process_element(Event(kind, value, time, key), timestamp=None if in_processing_time else time)
            elif what == "p":
                job.set_processing_time(rest[0])
            else:
                job.process_watermark(rest[0] if rest else END_OF_TIME)
            if stored:
                job.end_batch()
        late = [[event.key, event.shown()] for event in job.side_output(LATE)]
        return _by_key({"match": job.output, "timeout": job.side_output(TIMED_OUT), "late": late})


def by_output(result: Json) -> Json:
    """A recorded result in the form of :func:`run_on_stream`."""
    outputs: Json = {"match": [], "timeout": [], "late": []}
    for what, *rest in result["out"]:
        outputs[what].append(rest)
    return _by_key(outputs)


def _by_key(outputs: Json) -> Json:
    found: Json = defaultdict(list)
    for what, entries in outputs.items():
        for key, *rest in entries:
            found[f"{what} of {key}"].append(rest)
    return dict(found)
