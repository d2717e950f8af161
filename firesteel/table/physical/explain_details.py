"""What EXPLAIN says besides the parts of a stream: the kinds of their rows, and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.logical.plan import Aggregate, Plan
from firesteel.table.physical.changelog import changelog_mode
from firesteel.table.physical.explain import Exchange, Step, Steps, explained

__all__ = ["explained_in_detail"]

_PHYSICAL, _EXECUTION = "== Optimized Physical Plan", "\n== Optimized Execution Plan =="
_MINI_BATCH = (
    "advice[1]: [ADVICE] You might want to enable mini-batches by configuring ('table.exec.mini-batch.enabled' to "
    "'true'): groups then tell what a micro-batch has changed, not what each row has."
)

Show = Callable[[Any], Steps]


def explained_in_detail(
    plans: Sequence[Plan],
    targets: Sequence[str],
    conflicts: Sequence[str],
    modes: bool,
    advice: bool,
    costs: bool,
    mini_batch: bool,
) -> str:
    """The plans, with what is asked for."""
    advised: list[Aggregate] = []

    def noted(show: Show) -> Show:
        def with_notes(part: Plan | Step | Exchange) -> Steps:
            label, inputs = show(part)
            if advice and not mini_batch and label.startswith("GroupAggregate(") and isinstance(part, Aggregate):
                advised.append(part)
                label = label.replace("(", "(advice=[1], ", 1)
            return (f"{label[:-1]}, changelogMode={_mode(part)})" if modes else label), inputs

        return with_notes

    text = explained(plans, targets, conflicts=conflicts, noted=noted)
    notes = []
    if advice:
        text = text.replace(f"{_PHYSICAL} ==", f"{_PHYSICAL} With Advice ==", 1)
        notes.append(_MINI_BATCH if advised else "No available advice...")
    if costs:
        notes.append("No estimated cost: plans are made by rules, without statistics of tables.")
    return text.replace(_EXECUTION, "".join(f"\n{note}\n" for note in notes) + _EXECUTION, 1)


def _mode(part: Plan | Step | Exchange) -> str:
    if isinstance(part, Step):
        # A sink gives nothing on.
        return "[NONE]"
    return changelog_mode(part.input if isinstance(part, Exchange) else part)
