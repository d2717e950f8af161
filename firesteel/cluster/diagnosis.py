"""Why a job is slow or stuck, in one sentence: which operator, which key groups, which source.

A pure function of what is known of a job at one moment. Rules are asked in the order of how much they explain: a job
that fails again and again is not slow, and one whose batch does not end has no rate worth a word. The first one that
has something to say is the diagnosis; each is a function below.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Batch", "Diagnosis", "Failure", "Operator", "Picture", "Subtask", "diagnose"]

Level = Literal["good", "idle", "warning", "bad"]

STUCK_AT_LEAST = 20_000
"""A batch is called stuck after so many milliseconds, and after ten times as long as batches take."""
IDLE_AFTER = 10_000
LAG_OF_SOURCE = 60_000
"""One source holds event time back if it is so many milliseconds behind the others."""
SKEWED = 2.0
"""A subtask has too much to do if it has so many times its fair share."""
SKEW_MATTERS = 1_000
"""Records below which nothing is said about skew."""
BUSY = 0.8
MOST_OF_THE_WORK = 0.6


@dataclass(frozen=True)
class Subtask:
    """One subtask of an operator."""

    number: int
    records: int = 0
    """Records that came in, or, where that is not known, went out."""
    watermark: int | None = None


@dataclass(frozen=True)
class Operator:
    """One operator. Shares are of the time of the last batches."""

    name: str
    subtasks: tuple[Subtask, ...] = ()
    is_source: bool = False
    keyed: bool = False
    busy: float | None = None
    """Which part of the time its busiest subtask worked, from 0 to 1."""
    share: float | None = None
    """Which part of the working time of all operators is its own, all subtasks taken together."""
    backlog: int | None = None
    """Of a source: records that wait there."""
    max_parallelism: int = 128
    stage: int = 0

    @property
    def title(self) -> str:
        """Its name without what the kind says already."""
        return self.name.removeprefix("Source: ")


@dataclass(frozen=True)
class Batch:
    """One micro-batch that is done. Times are in milliseconds."""

    number: int
    began: int
    duration: int
    records: int = 0
    parts: tuple[tuple[str, int], ...] = ()
    """What it spent its time on."""


@dataclass(frozen=True)
class Failure:
    """One failure."""

    timestamp: int
    message: str
    operator: str | None = None
    line: str | None = None


@dataclass(frozen=True)
class Picture:
    """What is known of a job."""

    status: str
    now: int
    started: int
    attempt: int = 0
    bounded: bool = False
    operators: tuple[Operator, ...] = ()
    batches: tuple[Batch, ...] = ()
    """The last ones, oldest first."""
    current: tuple[int, int] | None = None
    """The batch that is running, and when it began."""
    failures: tuple[Failure, ...] = ()
    """Newest first."""
    watermark: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The sentence, how bad it is, and the operator that it is about."""

    level: Level
    text: str
    operator: str | None = None
    rule: str = ""


Rule = Callable[[Picture], Diagnosis | None]


def diagnose(picture: Picture) -> Diagnosis:
    """
    >>> busy = Operator("enrich", busy=0.93, stage=1)
    >>> batches = tuple(Batch(n, 1_000 * n, 990, records=500) for n in range(10))
    >>> source = Operator("orders", is_source=True, backlog=12_000)
    >>> print(diagnose(Picture("RUNNING", 10_000, 0, operators=(source, busy), batches=batches)).text)
    Operator 'enrich' is the bottleneck: it works 93% of the time, while 12,000 records wait in source 'orders'.
    """
    for rule in _RULES:
        found = rule(picture)
        if found is not None:
            return Diagnosis(found.level, found.text, found.operator, rule.__name__.strip("_"))
    rate = _rate(picture)
    return Diagnosis("good", f"Healthy: {_records(rate)} a second, a micro-batch takes {_took(_typical(picture))}.")


# The rules, in order.


def _failed(picture: Picture) -> Diagnosis | None:
    if picture.status not in ("FAILED", "FAILING"):
        return None
    if not picture.failures:
        return Diagnosis("bad", "The job failed, and nothing is known of why.")
    last = picture.failures[0]
    return Diagnosis("bad", f"The job failed{_where(last)}: {_line(last.message)}", last.operator)


def _ended(picture: Picture) -> Diagnosis | None:
    if picture.status in ("FINISHED", "CANCELED", "SUSPENDED"):
        how = {"FINISHED": "has read all of its input", "CANCELED": "was cancelled", "SUSPENDED": "was suspended"}
        return Diagnosis("idle", f"The job {how[picture.status]}.")
    return None


def _fails_again_and_again(picture: Picture) -> Diagnosis | None:
    """The same failure more than once, and the last one a moment ago."""
    if len(picture.failures) < 2:
        return None
    last = picture.failures[0]
    alike = [one for one in picture.failures if (one.operator, one.line) == (last.operator, last.line)]
    done_since = any(one.began + one.duration > last.timestamp for one in picture.batches)
    if len(alike) < 2 or (done_since and picture.now - last.timestamp > 60_000):
        return None
    return Diagnosis(
        "bad",
        f"The job fails again and again{_where(last)}, {len(alike)} times so far: {_line(last.message)}",
        last.operator,
    )


def _restarting(picture: Picture) -> Diagnosis | None:
    if picture.status == "RESTARTING" and picture.failures:
        last = picture.failures[0]
        return Diagnosis(
            "warning", f"The job is being restarted after a failure{_where(last)}: {_line(last.message)}", last.operator
        )
    return None


def _starting(picture: Picture) -> Diagnosis | None:
    if picture.batches or picture.current is not None:
        return None
    return Diagnosis(
        "idle", f"The job is starting, {_took(picture.now - picture.started)} so far: no micro-batch has begun."
    )


def _batch_stuck(picture: Picture) -> Diagnosis | None:
    if picture.current is None:
        return None
    number, began = picture.current
    lasts, usual = picture.now - began, _typical(picture)
    if lasts < STUCK_AT_LEAST or lasts < 10 * usual:
        return None
    before = f", while those before took {_took(usual)}" if picture.batches else ""
    busy = _busiest(picture)
    # What the batch is doing is reported when it is done; look first at the one that worked longest so far.
    suspect = f". Look at operator {busy.name!r} first, which has worked longest" if busy is not None else ""
    return Diagnosis(
        "bad",
        f"Micro-batch {number:,} does not end: it runs for {_took(lasts)}{before}{suspect}.",
        busy.name if busy else None,
    )


def _event_time_held_back(picture: Picture) -> Diagnosis | None:
    """One source, or one subtask of it, is behind the others: windows and timers wait for it."""
    marks = [
        (one.watermark, operator, one)
        for operator in picture.operators
        if operator.is_source or operator.stage == 0
        for one in operator.subtasks
        if one.watermark is None or one.watermark < _END
    ]
    known = [mark for mark, _, _ in marks if mark is not None and mark > _BEGINNING]
    if not known:
        return None
    front = max(known)
    silent = [(operator, one) for mark, operator, one in marks if mark is None or mark <= _BEGINNING]
    behind = min(
        ((mark, op, one) for mark, op, one in marks if mark is not None and mark > _BEGINNING), key=lambda e: e[0]
    )
    if silent and _needs_time(picture, silent[0][0]):
        operator, one = silent[0]
        return Diagnosis(
            "bad",
            f"Event time stands still: {_subtask_of(operator, one)} has given no record with a time yet, and windows "
            "and timers wait for it. Give its watermark strategy an idleness (with_idleness).",
            operator.name,
        )
    mark, operator, one = behind
    if front - mark >= LAG_OF_SOURCE:
        return Diagnosis(
            "warning",
            f"Event time is held back by {_subtask_of(operator, one)}, which is {_took(front - mark)} behind the "
            "others: windows and timers wait for it.",
            operator.name,
        )
    return None


def _skewed(picture: Picture) -> Diagnosis | None:
    """One subtask gets most of the records of a keyed operator, and there is work that waits."""
    worst: tuple[float, Operator, Subtask] | None = None
    for operator in picture.operators:
        total = sum(one.records for one in operator.subtasks)
        if not operator.keyed or len(operator.subtasks) < 2 or total < SKEW_MATTERS:
            continue
        largest = max(operator.subtasks, key=lambda one: one.records)
        factor = largest.records * len(operator.subtasks) / total
        # Two subtasks cannot have more than twice their share: what counts there is to have nearly all.
        limit = min(SKEWED, 0.8 * len(operator.subtasks))
        if factor >= limit and (worst is None or factor > worst[0]):
            worst = (factor, operator, largest)
    if worst is None or not _has_work_waiting(picture):
        return None
    _, operator, one = worst
    share = one.records / sum(each.records for each in operator.subtasks)
    first, last = _key_groups(one.number, len(operator.subtasks), operator.max_parallelism)
    return Diagnosis(
        "warning",
        f"Keys are spread unevenly: subtask {one.number} of operator {operator.name!r} (key groups {first} to {last}) "
        f"gets {share:.0%} of its records; spread evenly, each of {len(operator.subtasks)} subtasks would get "
        f"{1 / len(operator.subtasks):.0%}.",
        operator.name,
    )


def _bottleneck(picture: Picture) -> Diagnosis | None:
    """There is always something to do, and one operator does most of it."""
    busy = _busiest(picture)
    if busy is None or not _has_work_waiting(picture):
        return None
    if (busy.busy or 0.0) >= BUSY:
        works = f"it works {busy.busy:.0%} of the time"
    elif (busy.share or 0.0) >= MOST_OF_THE_WORK and _mostly_tasks(picture):
        works = f"{busy.share:.0%} of all operators' working time is its own"
    else:
        return None
    waiting = max((one for one in picture.operators if one.backlog), key=lambda one: one.backlog or 0, default=None)
    while_ = f", while {_records(waiting.backlog or 0)} wait in source {waiting.title!r}" if waiting is not None else ""
    return Diagnosis("warning", f"Operator {busy.name!r} is the bottleneck: {works}{while_}.", busy.name)


def _mostly_tasks(picture: Picture) -> bool:
    """Whether batches spend most of their time in operators, as far as is known."""
    parts = [part for batch in picture.batches[-10:] for part in batch.parts]
    work = sum(spent for name, spent in parts if name in _WORK)
    return not parts or work >= sum(spent for _, spent in parts) / 2


def _overhead(picture: Picture) -> Diagnosis | None:
    """Most of a batch's time goes into something that is not the users' functions."""
    recent = [one for one in picture.batches[-10:] if one.parts]
    if len(recent) < 3 or not _has_work_waiting(picture):
        return None
    sums: dict[str, int] = {}
    for batch in recent:
        for name, spent in batch.parts:
            sums[name] = sums.get(name, 0) + spent
    total = sum(sums.values())
    name, spent = max(sums.items(), key=lambda entry: entry[1])
    if not total or name in _WORK or spent < total / 2:
        return None
    what, advice = _OVERHEADS.get(name, (name, ""))
    return Diagnosis(
        "warning",
        f"{spent / total:.0%} of a micro-batch of {_took(_typical(picture))} goes into {what}, not into "
        f"operators{advice}.",
    )


def _backlog(picture: Picture) -> Diagnosis | None:
    waiting = [one for one in picture.operators if one.is_source and one.backlog]
    if not waiting:
        return None
    worst = max(waiting, key=lambda one: one.backlog or 0)
    rate = _rate(picture)
    if not rate or (worst.backlog or 0) < 10 * rate:
        return None
    left = _took(int((worst.backlog or 0) / rate * 1000))
    return Diagnosis(
        "warning",
        f"The job is behind: {_records(worst.backlog or 0)} wait in source {worst.title!r}, {left} of work at "
        f"{_records(rate)} a second.",
        worst.name,
    )


def _idle(picture: Picture) -> Diagnosis | None:
    """Nothing to do is not slow."""
    if picture.current is not None and picture.now - picture.current[1] > 1_000:
        return None
    with_records = [one for one in picture.batches if one.records]
    since = picture.now - (with_records[-1].began + with_records[-1].duration if with_records else picture.started)
    if since < IDLE_AFTER:
        return None
    sources = [one for one in picture.operators if one.is_source]
    name = (
        f"source {sources[0].title!r} has"
        if len(sources) == 1
        else f"none of {len(sources)} sources has"
        if sources
        else "no source has"
    )
    negation = "given no record" if len(sources) == 1 else "given a record"
    return Diagnosis(
        "idle",
        f"The job waits for input: {name} {negation} for {_took(since)}.",
        sources[0].name if len(sources) == 1 else None,
    )


_RULES: tuple[Rule, ...] = (
    _failed,
    _ended,
    _fails_again_and_again,
    _restarting,
    _starting,
    _batch_stuck,
    _event_time_held_back,
    _skewed,
    _bottleneck,
    _overhead,
    _backlog,
    _idle,
)

_END = (1 << 63) - 1
_BEGINNING = -(1 << 63)
_WORK = ("tasks",)
_OVERHEADS = {
    "planning": ("planning", ": larger batches (firesteel.batch.interval) make it count less"),
    "add_batch": ("Spark's work around the tasks", ": larger batches (firesteel.batch.interval) make it count less"),
    "results": ("what the driver does with results", ": is much collected or printed?"),
    "sink_commit": ("commits of sinks", ": what they write to is slow, or batches are small"),
    "wal_commit": ("Spark's log of offsets", ": is the checkpoint folder on slow storage?"),
    "commit_offsets": ("Spark's log of commits", ": is the checkpoint folder on slow storage?"),
    "latest_offset": ("asking sources what there is", ": is the system that they read from slow?"),
}
"""The parts of a micro-batch that are not the users' functions: what they are called, and what can be done."""


# What rules ask.


def _typical(picture: Picture) -> int:
    return int(statistics.median(one.duration for one in picture.batches)) if picture.batches else 0


def _rate(picture: Picture) -> float:
    """Records a second over the batches that are remembered."""
    batches = picture.batches
    if len(batches) < 2:
        return 0.0
    milliseconds = batches[-1].began - batches[0].began
    return sum(one.records for one in batches[1:]) * 1000 / milliseconds if milliseconds else 0.0


def _busiest(picture: Picture) -> Operator | None:
    return max((one for one in picture.operators if one.busy), key=lambda one: one.busy or 0.0, default=None)


def _has_work_waiting(picture: Picture) -> bool:
    """Whether the job is at work nearly all the time, or records wait for it."""
    if any((one.backlog or 0) > 0 for one in picture.operators):
        return True
    recent = picture.batches[-10:]
    if len(recent) < 3:
        return False
    span = recent[-1].began + recent[-1].duration - recent[0].began
    return span > 0 and sum(one.duration for one in recent) / span >= BUSY and any(one.records for one in recent)


def _needs_time(picture: Picture, source: Operator) -> bool:
    """Whether a source without event time matters: only if others have it, and it has had time to give some."""
    others = any(
        one.watermark is not None and one.watermark > _BEGINNING
        for operator in picture.operators
        for one in operator.subtasks
    )
    return others and len(picture.batches) >= 3 and (picture.watermark is None or picture.watermark <= _BEGINNING)


def _key_groups(subtask: int, parallelism: int, groups: int) -> tuple[int, int]:
    """The first and the last key group of a subtask.

    >>> _key_groups(1, 4, 128)
    (32, 63)
    """
    first = -(-subtask * groups // parallelism)
    return first, -(-(subtask + 1) * groups // parallelism) - 1


# Words.


def _where(failure: Failure) -> str:
    operator = f" in operator {failure.operator!r}" if failure.operator else ""
    return operator + (f" at {failure.line}" if failure.line else "")


def _line(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return first if len(first) <= 300 else first[:300] + " …"


def _subtask_of(operator: Operator, one: Subtask) -> str:
    kind = "source" if operator.is_source else "operator"
    return (
        f"subtask {one.number} of {kind} {operator.title!r}"
        if len(operator.subtasks) > 1
        else f"{kind} {operator.title!r}"
    )


def _records(count: float) -> str:
    shown = f"{count:,.0f}" if count >= 10 or count == int(count) else f"{count:.1f}"
    return f"{shown} record" if shown == "1" else f"{shown} records"


def _took(milliseconds: int) -> str:
    """
    >>> _took(340), _took(2_500), _took(75_000), _took(7_500_000)
    ('340 ms', '2.5 s', '1 min 15 s', '2 h 5 min')
    """
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
